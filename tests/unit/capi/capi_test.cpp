// SPDX-License-Identifier: Apache-2.0
#include <kiln/kiln.h>
#include <kiln/version.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>

namespace kiln {

namespace {

struct free_error {
    void operator()(kiln_error* e) const { kiln_error_free(e); }
};
using owned_error = std::unique_ptr<kiln_error, free_error>;

kiln_code code_of(kiln_error* why) { return kiln_error_code(owned_error{why}.get()); }

kiln_unit saxpy() {
    kiln_unit u = KILN_UNIT_INIT;
    u.name = "saxpy";
    u.source = "extern \"C\" __global__ void saxpy() {}";
    return u;
}

}  // namespace

TEST(capi, versions_are_those_of_the_headers) {
    EXPECT_EQ(kiln_c_version(), static_cast<unsigned>(KILN_C_VERSION));
    EXPECT_EQ(kiln_version(), version);
}

TEST(capi, a_link_of_nothing_is_refused) {
    kiln_link what = KILN_LINK_INIT;
    what.name = "empty";
    what.arch = "sm_90";
    kiln_artifact* made = nullptr;
    EXPECT_EQ(code_of(kiln_link_sync(nullptr, &what, nullptr, &made)), KILN_INVALID_ARGUMENT);
    EXPECT_EQ(made, nullptr);
}

TEST(capi, null_is_no_error_and_may_be_freed) {
    EXPECT_EQ(kiln_error_code(nullptr), KILN_OK);
    EXPECT_STREQ(kiln_error_message(nullptr), "");
    kiln_error_free(nullptr);
    kiln_free(nullptr);
    kiln_artifact_free(nullptr);
    kiln_engine_free(nullptr);
    kiln_subscription_free(nullptr);
    EXPECT_STREQ(kiln_code_name(KILN_COMPILE_FAILED), "compile-failed");
    EXPECT_STREQ(kiln_code_name(99), "unknown");
    EXPECT_STREQ(kiln_event_kind_name(KILN_EVENT_NOTE), "note");
}

TEST(capi, what_is_asked_of_null_is_nothing) {
    std::size_t size = 1;
    EXPECT_STREQ(kiln_artifact_unit(nullptr), "");
    EXPECT_STREQ(kiln_artifact_arch(nullptr), "");
    EXPECT_EQ(kiln_artifact_kind(nullptr), KILN_CUBIN);
    EXPECT_STREQ(kiln_artifact_key(nullptr), "");
    EXPECT_STREQ(kiln_artifact_compiler(nullptr), "");
    EXPECT_STREQ(kiln_artifact_toolchain(nullptr), "");
    EXPECT_STREQ(kiln_artifact_log(nullptr), "");
    EXPECT_EQ(kiln_artifact_from(nullptr), KILN_FROM_COMPILER);
    EXPECT_EQ(kiln_artifact_image(nullptr, &size), nullptr);
    EXPECT_EQ(size, 0u);
    EXPECT_EQ(kiln_artifact_image(nullptr, nullptr), nullptr);
    EXPECT_EQ(kiln_artifact_kernel_count(nullptr), 0u);
    EXPECT_EQ(kiln_artifact_constant(nullptr, "c", &size), nullptr);
    EXPECT_EQ(kiln_stream_handle(nullptr), nullptr);
    EXPECT_EQ(kiln_memory_address(nullptr), nullptr);
    EXPECT_EQ(kiln_loaded_from(nullptr), KILN_FROM_COMPILER);
    EXPECT_EQ(kiln_loaded_kernel_count(nullptr), 0u);
    EXPECT_STREQ(kiln_kernel_name(nullptr), "");
    EXPECT_EQ(kiln_kernel_device(nullptr), -1);
    EXPECT_EQ(kiln_kernel_cu_function(nullptr), nullptr);
    EXPECT_EQ(kiln_kernel_cu_kernel(nullptr), nullptr);
    EXPECT_EQ(kiln_kernel_cu_library(nullptr), nullptr);
    EXPECT_EQ(kiln_variable_address(nullptr), nullptr);
    EXPECT_EQ(kiln_variable_size(nullptr), 0u);
    EXPECT_EQ(kiln_pending_ready(nullptr), 0);
    kiln_demanded_raise(nullptr, KILN_BLOCKING);
    kiln_demanded_cancel(nullptr);
    kiln_stream_free(nullptr);
    kiln_memory_free(nullptr);
    kiln_loaded_free(nullptr);
    kiln_kernel_free(nullptr);
    kiln_variable_free(nullptr);
    kiln_pending_free(nullptr);
    kiln_demanded_free(nullptr);
}

// Each pointer of each function that cannot do without it.
TEST(capi, what_cannot_be_null_is_refused) {
    auto const u = saxpy();
    auto const expect_refused = [](kiln_error* why) { EXPECT_EQ(code_of(why), KILN_INVALID_ARGUMENT); };
    kiln_artifact* artifact = nullptr;
    kiln_loaded* loaded = nullptr;
    kiln_kernel* kernel = nullptr;
    kiln_variable* variable = nullptr;
    kiln_pending* pending = nullptr;
    kiln_kernel_info info = KILN_KERNEL_INFO_INIT;
    kiln_kernel_resources resources = KILN_KERNEL_RESOURCES_INIT;
    kiln_link link = KILN_LINK_INIT;
    std::size_t size = 0;
    std::int32_t number = 0;
    void* bytes = nullptr;
    char byte = 0;
    kiln_setting const nameless{nullptr, "1"};
    kiln_engine* engine = nullptr;

    expect_refused(kiln_engine_make(nullptr, 0, nullptr));
    expect_refused(kiln_engine_make(nullptr, 1, &engine));
    expect_refused(kiln_engine_make(&nameless, 1, &engine));
    expect_refused(kiln_engine_get_status(nullptr, nullptr));
    expect_refused(kiln_status_json(nullptr, nullptr));
    expect_refused(kiln_artifact_sync(nullptr, &u, nullptr, KILN_CUBIN, nullptr, &artifact));
    expect_refused(kiln_artifact_kernel(nullptr, 0, &info));
    expect_refused(kiln_artifact_to_bytes(nullptr, &bytes, &size));
    expect_refused(kiln_artifact_from_bytes(&byte, 1, nullptr));
    expect_refused(kiln_link_sync(nullptr, nullptr, nullptr, &artifact));
    expect_refused(kiln_link_sync(nullptr, &link, nullptr, nullptr));
    expect_refused(kiln_device_count(nullptr));
    expect_refused(kiln_stream_make(0, nullptr));
    expect_refused(kiln_stream_wait_sync(nullptr));
    expect_refused(kiln_memory_make(1, 0, nullptr));
    expect_refused(kiln_memory_upload_sync(nullptr, nullptr, &byte, 1));
    expect_refused(kiln_memory_download_sync(nullptr, nullptr, &byte, 1));
    expect_refused(kiln_get_sync(nullptr, nullptr, 0, nullptr, &loaded));
    expect_refused(kiln_get_sync(nullptr, &u, 0, nullptr, nullptr));
    expect_refused(kiln_load_artifact_sync(nullptr, nullptr, 0, &loaded));
    expect_refused(kiln_loaded_kernel_info(nullptr, 0, &info));
    expect_refused(kiln_loaded_kernel(nullptr, "k", &kernel));
    expect_refused(kiln_kernel_load(nullptr, 1, "k", 0, &kernel));
    expect_refused(kiln_kernel_load(&byte, 1, nullptr, 0, &kernel));
    expect_refused(kiln_kernel_load(&byte, 1, "k", 0, nullptr));
    expect_refused(kiln_kernel_adopt(nullptr, 0, &kernel));
    expect_refused(kiln_kernel_adopt(&byte, 0, nullptr));
    expect_refused(kiln_kernel_get_resources(nullptr, &resources));
    expect_refused(kiln_kernel_allow_shared(nullptr, 1));
    expect_refused(kiln_kernel_blocks_per_multiprocessor(nullptr, 1, 0, &number));
    expect_refused(kiln_loaded_variable(nullptr, "v", &variable));
    expect_refused(kiln_variable_upload_sync(nullptr, nullptr, &byte, 1));
    expect_refused(kiln_variable_download_sync(nullptr, nullptr, &byte, 1));
    expect_refused(kiln_artifact_later(nullptr, &u, "sm_90", KILN_CUBIN, nullptr));
    expect_refused(kiln_get_later(nullptr, &u, 0, nullptr));
    expect_refused(kiln_get_later(nullptr, nullptr, 0, &pending));
    expect_refused(kiln_pending_then(
        nullptr, [](void*) {}, nullptr));
    expect_refused(kiln_pending_artifact_sync(nullptr, 0, &artifact));
    expect_refused(kiln_pending_loaded_sync(nullptr, 0, &loaded));
    expect_refused(kiln_demand(nullptr, nullptr, 1, nullptr, 0, nullptr, nullptr));
    expect_refused(kiln_demand(nullptr, nullptr, 0, nullptr, 1, nullptr, nullptr));
    expect_refused(kiln_subscribe(nullptr, nullptr, nullptr));
    expect_refused(kiln_subscribe([](kiln_event const*, void*) {}, nullptr, nullptr));
}

TEST(capi, what_is_missing_is_named) {
    auto u = saxpy();
    kiln_artifact* out = nullptr;
    EXPECT_EQ(code_of(kiln_artifact_sync(nullptr, &u, "sm_90", KILN_CUBIN, nullptr, nullptr)), KILN_INVALID_ARGUMENT);
    EXPECT_EQ(code_of(kiln_artifact_sync(nullptr, nullptr, "sm_90", KILN_CUBIN, nullptr, &out)), KILN_INVALID_ARGUMENT);
    EXPECT_EQ(code_of(kiln_artifact_sync(nullptr, &u, "nonsense", KILN_CUBIN, nullptr, &out)), KILN_INVALID_ARGUMENT);
    EXPECT_EQ(code_of(kiln_artifact_sync(nullptr, &u, "sm_90", 7, nullptr, &out)), KILN_INVALID_ARGUMENT);
    u.kernel_count = 2;
    owned_error const why{kiln_artifact_sync(nullptr, &u, "sm_90", KILN_CUBIN, nullptr, &out)};
    EXPECT_NE(std::string{kiln_error_message(why.get())}.find("kernels"), std::string::npos);
    EXPECT_EQ(out, nullptr) << "written only on success";
}

TEST(capi, structs_of_other_versions_are_taken_as_far_as_they_are_understood) {
    kiln_unit never_begun{};
    kiln_pending* out = nullptr;
    EXPECT_EQ(code_of(kiln_artifact_later(nullptr, &never_begun, "sm_90", KILN_CUBIN, &out)), KILN_INVALID_ARGUMENT);

    kiln_unit within_a_field = saxpy();
    within_a_field.size = sizeof(std::size_t) + sizeof(char*) + 1;
    EXPECT_EQ(code_of(kiln_artifact_later(nullptr, &within_a_field, "sm_90", KILN_CUBIN, &out)), KILN_INVALID_ARGUMENT);

    // A newer caller: more fields, of which this library knows nothing.
    struct newer {
        kiln_unit known;
        char const* more;
    } n{saxpy(), nullptr};
    n.known.size = sizeof n;
    n.known.name = nullptr;
    EXPECT_EQ(code_of(kiln_artifact_later(nullptr, &n.known, "sm_90", KILN_CUBIN, &out)), KILN_INVALID_ARGUMENT)
        << "read, and found to have no name";
    n.more = "something";
    EXPECT_EQ(code_of(kiln_artifact_later(nullptr, &n.known, "sm_90", KILN_CUBIN, &out)), KILN_UNSUPPORTED);

    // An older caller, whose struct ends early: nothing beyond it is touched.
    kiln_engine_status status = KILN_ENGINE_STATUS_INIT;
    std::memset(&status, 0x5a, sizeof status);
    status.size = offsetof(kiln_engine_status, compiled);
    EXPECT_EQ(code_of(kiln_engine_get_status(nullptr, &status)), KILN_OK);
    EXPECT_EQ(status.requests, 0u);
    EXPECT_EQ(status.compiled, 0x5a5a5a5a5a5a5a5au);
    EXPECT_EQ(status.size, offsetof(kiln_engine_status, compiled));
}

TEST(capi, bytes_that_are_no_artifact_are_refused) {
    kiln_artifact* out = nullptr;
    EXPECT_EQ(code_of(kiln_artifact_from_bytes("nonsense", 8, &out)), KILN_CORRUPT);
    EXPECT_EQ(code_of(kiln_artifact_from_bytes(nullptr, 0, &out)), KILN_CORRUPT);
    EXPECT_EQ(code_of(kiln_artifact_from_bytes(nullptr, 8, &out)), KILN_INVALID_ARGUMENT);
}

TEST(capi, an_engine_of_ones_own_hears_of_a_setting_that_does_not_exist) {
    struct heard {
        int warned = 0;
    } ears;
    kiln_subscription* listening = nullptr;
    ASSERT_EQ(code_of(kiln_subscribe(
                  [](kiln_event const* e, void* context) {
                      if (e->kind == KILN_EVENT_WARNED && std::strcmp(e->reason, "config") == 0 &&
                          std::strstr(e->detail, "KILN_NO_SUCH") != nullptr)
                          ++static_cast<heard*>(context)->warned;
                  },
                  &ears, &listening)),
              KILN_OK);
    kiln_setting const settings[] = {{"KILN_NO_SUCH", "1"}, {"KILN_DISABLE", "1"}};
    kiln_engine* engine = nullptr;
    ASSERT_EQ(code_of(kiln_engine_make(settings, 2, &engine)), KILN_OK);
    EXPECT_EQ(ears.warned, 1);
    kiln_subscription_free(listening);
    kiln_engine* deaf = nullptr;
    ASSERT_EQ(code_of(kiln_engine_make(settings, 2, &deaf)), KILN_OK);
    EXPECT_EQ(ears.warned, 1) << "freed is freed";
    char* json = nullptr;
    ASSERT_EQ(code_of(kiln_status_json(engine, &json)), KILN_OK);
    EXPECT_EQ(json[0], '{');
    kiln_free(json);
    kiln_engine_free(engine);
    kiln_engine_free(deaf);
}

TEST(capi, a_launch_that_says_what_no_version_knows_is_refused) {
    kiln_launch const shape = KILN_LAUNCH_INIT;
    EXPECT_EQ(code_of(kiln_kernel_launch(nullptr, nullptr, &shape, nullptr)), KILN_INVALID_ARGUMENT);
}

}  // namespace kiln
