// SPDX-License-Identifier: Apache-2.0
#include "cuda/nvrtc_api.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace kiln::cuda {
namespace {

using testing::HasSubstr;

int major_version = 13;
int minor_version = 0;
nvrtcResult fake_version(int* major, int* minor) {
    return *major = major_version, *minor = minor_version, NVRTC_SUCCESS;
}
void some_function() {}

symbol_source library_without(std::set<std::string> missing) {
    return [missing = std::move(missing)](char const* name) -> void* {
        if (missing.contains(name)) return nullptr;
        return std::string_view{name} == "nvrtcVersion" ? reinterpret_cast<void*>(&fake_version)
                                                        : reinterpret_cast<void*>(&some_function);
    };
}

class nvrtc_api_test : public testing::Test {
protected:
    nvrtc_api_test() { set(13, 0); }
    static void set(int major, int minor) { major_version = major, minor_version = minor; }
};

TEST_F(nvrtc_api_test, versions_from_12_8_on_are_taken) {
    for (auto const& [major, minor] : {std::pair{12, 8}, {12, 9}, {13, 0}, {13, 3}}) {
        set(major, minor);
        auto const api = resolve_nvrtc(library_without({}));
        ASSERT_TRUE(api) << api.error().message();
        EXPECT_EQ(api->major, major);
        EXPECT_EQ(api->minor, minor);
    }
}

TEST_F(nvrtc_api_test, older_ones_are_refused_by_version) {
    for (auto const& [major, minor] : {std::pair{12, 7}, {12, 0}, {11, 9}}) {
        set(major, minor);
        auto const api = resolve_nvrtc(library_without({}));
        ASSERT_FALSE(api);
        EXPECT_EQ(api.error().code(), errc::unsupported);
        EXPECT_EQ(api.error().message(), fmt::format("NVRTC 12.8 or newer is needed; this one is {}.{}", major, minor));
    }
}

TEST_F(nvrtc_api_test, an_old_library_is_refused_for_its_age_and_not_for_what_it_lacks) {
    set(11, 0);
    EXPECT_EQ(resolve_nvrtc(library_without({"nvrtcGetLTOIR"})).error().code(), errc::unsupported);
}

TEST_F(nvrtc_api_test, optional_entries_stay_null) {
    auto const api = resolve_nvrtc(library_without({"nvrtcGetPCHHeapSize", "nvrtcSetFlowCallback"}));
    ASSERT_TRUE(api);
    EXPECT_EQ(api->get_pch_heap_size, nullptr);
    EXPECT_EQ(api->set_flow_callback, nullptr);
    EXPECT_NE(api->set_pch_heap_size, nullptr);
}

TEST_F(nvrtc_api_test, a_missing_entry_is_named) {
    auto const api = resolve_nvrtc(library_without({"nvrtcGetCUBIN"}));
    ASSERT_FALSE(api);
    EXPECT_THAT(api.error().message(), HasSubstr("nvrtcGetCUBIN: NVRTC 13.0"));
}

TEST_F(nvrtc_api_test, something_else_under_that_name) {
    EXPECT_FALSE(resolve_nvrtc([](char const*) -> void* { return nullptr; }));
}

}  // namespace
}  // namespace kiln::cuda
