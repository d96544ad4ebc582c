// SPDX-License-Identifier: Apache-2.0
#include "unit/cuda/fake_driver_test.hpp"

#include <set>

namespace kiln::cuda {
namespace {

using testing::HasSubstr;

// A library that exports everything up to a driver version, and answers cuGetProcAddress like a driver of that version.
int exported_version = 13000;
std::set<std::string> asked;

void some_function() {}

CUresult fake_get_proc(char const* symbol, void** out, int version, cuuint64_t, CUdriverProcAddressQueryResult* found) {
    asked.insert(std::string{symbol} + "@" + std::to_string(version));
    bool const there = version <= exported_version;
    *out = there ? reinterpret_cast<void*>(&some_function) : nullptr;
    *found = there ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
    return CUDA_SUCCESS;
}

CUresult fake_version(int* out) { return *out = exported_version, CUDA_SUCCESS; }

void* symbols_with_get_proc(char const* name) {
    if (std::string_view{name} == "cuGetProcAddress_v2") return reinterpret_cast<void*>(&fake_get_proc);
    if (std::string_view{name} == "cuDriverGetVersion") return reinterpret_cast<void*>(&fake_version);
    return nullptr;
}

TEST(resolve_driver, asks_for_each_entry_at_the_version_of_its_signature) {
    exported_version = 13000;
    asked.clear();
    auto const api = resolve_driver(symbols_with_get_proc);
    ASSERT_TRUE(api) << api.error().message();
    EXPECT_EQ(api->version, 13000);
    EXPECT_TRUE(asked.contains("cuMemAlloc@3020"));
    EXPECT_TRUE(asked.contains("cuDevicePrimaryCtxRelease@11000"));
    EXPECT_TRUE(asked.contains("cuLibraryLoadData@12000"));
    for (auto const& entry : driver_entries()) {
        void* slot = nullptr;
        std::memcpy(&slot, entry.slot(*api), sizeof slot);
        EXPECT_NE(slot, nullptr) << entry.symbol;
    }
}

TEST(resolve_driver, an_old_driver_lacks_the_optional_entries_only) {
    exported_version = 11080;
    auto const api = resolve_driver(symbols_with_get_proc);
    ASSERT_TRUE(api) << api.error().message();
    EXPECT_EQ(api->library_load_data, nullptr);
    EXPECT_NE(api->launch_kernel, nullptr);
    auto const called = call<&driver_api::library_unload>(*api, CUlibrary{});
    ASSERT_FALSE(called);
    EXPECT_EQ(called.error().code(), errc::unsupported);
    EXPECT_EQ(called.error().message(), "cuLibraryUnload: driver 12.0 or newer is needed; this one is 11.8");
}

TEST(resolve_driver, the_message_names_the_version_of_each_entry) {
    exported_version = 12000;
    auto const api = resolve_driver(symbols_with_get_proc);
    ASSERT_TRUE(api);
    EXPECT_EQ(missing_entry(*api, &api->func_load).message(),
              "cuFuncLoad: driver 12.4 or newer is needed; this one is 12.0");
}

TEST(resolve_driver, without_cuGetProcAddress_the_exported_names_are_used) {
    exported_version = 11020;
    std::set<std::string> names;
    auto const api = resolve_driver([&](char const* name) -> void* {
        names.insert(name);
        if (std::string_view{name} == "cuGetProcAddress_v2") return nullptr;
        if (std::string_view{name} == "cuDriverGetVersion") return reinterpret_cast<void*>(&fake_version);
        return reinterpret_cast<void*>(&some_function);
    });
    ASSERT_TRUE(api) << api.error().message();
    EXPECT_EQ(api->version, 11020);
    EXPECT_TRUE(names.contains("cuMemAlloc_v2"));
    EXPECT_FALSE(names.contains("cuMemAlloc"));
}

TEST(resolve_driver, a_library_that_is_no_driver_is_refused) {
    auto const api = resolve_driver([](char const*) -> void* { return nullptr; });
    ASSERT_FALSE(api);
    EXPECT_EQ(api.error().code(), errc::unsupported);
    EXPECT_THAT(api.error().message(), HasSubstr("cuInit: driver 12.0 or newer is needed"));
}

TEST(driver_entries, no_two_share_a_slot_or_a_name) {
    driver_api const api;
    std::set<void const*> slots;
    std::set<std::string_view> names;
    for (auto const& entry : driver_entries()) {
        EXPECT_TRUE(slots.insert(entry.slot(api)).second) << entry.symbol;
        EXPECT_TRUE(names.insert(entry.symbol).second) << entry.symbol;
        EXPECT_TRUE(std::string_view{entry.exported}.starts_with(entry.symbol));
    }
}

class call_test : public fake_driver_test {};

TEST_F(call_test, a_failing_status_becomes_an_error_with_name_words_and_number) {
    driver_.failing["stream_synchronize"] = CUDA_ERROR_INVALID_VALUE;
    auto const done = call<&driver_api::stream_synchronize>(*table(), CUstream{});
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code(), errc::driver);
    EXPECT_EQ(done.error().status(), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(done.error().message(), "cuStreamSynchronize: CUDA_ERROR_INVALID_VALUE: words");
}

TEST_F(call_test, statuses_with_a_meaning_of_their_own_have_a_code_of_their_own) {
    auto const api = table();
    auto const code = [&](CUresult status) { return driver_error(*api, &api->library_load_data, status).code(); };
    EXPECT_EQ(code(CUDA_ERROR_OUT_OF_MEMORY), errc::out_of_memory);
    EXPECT_EQ(code(CUDA_ERROR_NO_BINARY_FOR_GPU), errc::unsupported);
    EXPECT_EQ(code(CUDA_ERROR_UNSUPPORTED_PTX_VERSION), errc::unsupported);
    EXPECT_EQ(code(CUDA_ERROR_INVALID_IMAGE), errc::corrupt);
    EXPECT_EQ(code(CUDA_ERROR_INVALID_PTX), errc::compile_failed);
    EXPECT_EQ(code(CUDA_ERROR_NOT_FOUND), errc::not_found);
    EXPECT_EQ(code(CUDA_ERROR_STUB_LIBRARY), errc::no_device);
    EXPECT_EQ(code(CUDA_ERROR_LAUNCH_FAILED), errc::driver);
}

TEST_F(call_test, a_driver_without_words_is_quoted_by_number) {
    auto api = fake::table();
    api.get_error_name = nullptr;
    EXPECT_EQ(api.words(CUDA_ERROR_INVALID_VALUE), "CUDA error 1");
}

}  // namespace
}  // namespace kiln::cuda
