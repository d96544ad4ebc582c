// SPDX-License-Identifier: Apache-2.0
#include "cuda/nvjitlink_api.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace kiln::cuda {
namespace {

using testing::HasSubstr;

constexpr char const* functions[] = {
    "Create",           "Destroy",      "AddData",         "Complete",    "GetLinkedCubinSize", "GetLinkedCubin",
    "GetLinkedPtxSize", "GetLinkedPtx", "GetErrorLogSize", "GetErrorLog", "GetInfoLogSize",     "GetInfoLog"};

template <unsigned Major, unsigned Minor>
nvJitLinkResult version_is(unsigned* major, unsigned* minor) {
    return *major = Major, *minor = Minor, NVJITLINK_SUCCESS;
}

// A library that exports every function under these endings ("_12_0"; "" is the bare name), each at an address of its own.
class fake_library {
public:
    fake_library& exporting(std::string const& ending) {
        for (auto const* function : functions)
            add((ending.empty() ? "nvJitLink" : "__nvJitLink") + std::string{function} + ending);
        return *this;
    }
    fake_library& version(nvJitLinkResult (*function)(unsigned*, unsigned*)) {
        symbols_["nvJitLinkVersion"] = reinterpret_cast<void*>(function);
        return *this;
    }
    [[nodiscard]] void* operator()(std::string const& name) const {
        auto const at = symbols_.find(name);
        return at == symbols_.end() ? nullptr : at->second;
    }
    [[nodiscard]] symbol_source source() const {
        return [*this](char const* name) { return (*this)(name); };
    }

private:
    void add(std::string const& name) { symbols_[name] = reinterpret_cast<void*>(0x1000 + symbols_.size()); }
    std::map<std::string, void*> symbols_;
};

template <class Function>
void* address(Function f) {
    return reinterpret_cast<void*>(f);
}

TEST(resolve_nvjitlink, takes_the_names_of_the_librarys_own_version) {
    auto const library = fake_library{}.exporting("").exporting("_13_0").exporting("_13_1").version(version_is<13, 1>);
    auto const api = resolve_nvjitlink(library.source());
    ASSERT_TRUE(api) << api.error().message();
    EXPECT_EQ(api->major, 13U);
    EXPECT_EQ(api->minor, 1U);
    EXPECT_EQ(address(api->create), library("__nvJitLinkCreate_13_1"));
    EXPECT_EQ(address(api->get_info_log), library("__nvJitLinkGetInfoLog_13_1"));
}

TEST(resolve_nvjitlink, falls_back_to_earlier_versions_of_the_same_release) {
    auto const library = fake_library{}.exporting("").exporting("_12_0").exporting("_12_4").version(version_is<12, 8>);
    EXPECT_EQ(address(resolve_nvjitlink(library.source()).value().create), library("__nvJitLinkCreate_12_4"));
}

TEST(resolve_nvjitlink, the_first_releases_cannot_tell_their_version) {
    auto const library = fake_library{}.exporting("_12_0");
    auto const api = resolve_nvjitlink(library.source());
    ASSERT_TRUE(api) << api.error().message();
    EXPECT_EQ(api->version, nullptr);
    EXPECT_EQ(api->major, 12U);
}

TEST(resolve_nvjitlink, bare_names_do_too) {
    auto const library = fake_library{}.exporting("").version(version_is<13, 0>);
    EXPECT_EQ(address(resolve_nvjitlink(library.source()).value().complete), library("nvJitLinkComplete"));
}

TEST(resolve_nvjitlink, what_is_missing_is_named) {
    auto const api = resolve_nvjitlink(fake_library{}.version(version_is<13, 2>).source());
    ASSERT_FALSE(api);
    EXPECT_EQ(api.error().code(), errc::unsupported);
    EXPECT_THAT(api.error().message(), HasSubstr("neither __nvJitLinkCreate_13_2 nor nvJitLinkCreate"));
}

TEST(nvjitlink_words, every_status_has_words) {
    for (int status = 0; status <= NVJITLINK_ERROR_LTO_NOT_ENABLED; ++status) {
        EXPECT_NE(words(static_cast<nvJitLinkResult>(status)), "unknown status") << status;
    }
    EXPECT_EQ(words(NVJITLINK_ERROR_LTO_NOT_ENABLED), "lto not enabled");
    EXPECT_EQ(words(NVJITLINK_ERROR_NULL_INPUT), "null input");
}

}  // namespace
}  // namespace kiln::cuda
