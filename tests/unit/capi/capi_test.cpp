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
