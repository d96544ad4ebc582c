// SPDX-License-Identifier: Apache-2.0
#include "cuda/library_search.hpp"
#include "base/files.hpp"
#include "cuda/python_places.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kiln::cuda {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::string_view sonames[] = {"libfake.so.13", "libfake.so.12"};

class library_search_test : public testing::Test {
protected:
    library_search_test() { environment_.root = root() / "system"; }

    [[nodiscard]] fs::path root() const { return directory_.path(); }
    fs::path touch(fs::path const& relative, std::string_view text = "x") const {
        auto const file = root() / relative;
        fs::create_directories(file.parent_path());
        EXPECT_TRUE(base::replace_file(file, base::as_bytes(text)));
        return file;
    }
    [[nodiscard]] std::vector<fs::path> found() const {
        std::vector<fs::path> out;
        for (auto const& c : library_search{environment_}.candidates(sonames)) out.push_back(c.file);
        return out;
    }

    base::temporary_directory directory_ = base::temporary_directory::make().value();
    search_environment environment_;
};

TEST_F(library_search_test, knows_every_layout) {
    for (auto const* layout : {"lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib", "nvidia/cu13/lib",
                               "nvidia/cuda_nvrtc/lib", "nvidia/nvjitlink/lib", "cu13/lib", "cuda_nvrtc/lib", "."}) {
        auto const toolkit = fs::path{"t"} / std::to_string(std::hash<std::string>{}(layout));
        auto const file = touch((toolkit / layout / "libfake.so.13").lexically_normal());
        environment_.kiln_cuda_path = root() / toolkit;
        EXPECT_THAT(found(), ElementsAre(file)) << layout;
    }
}

TEST_F(library_search_test, the_headers_beside_a_named_nvrtc_come_first) {
    touch("default/include/cuda_fp16.h");
    touch("default/include/cccl/cuda/std/version");
    environment_.kiln_cuda_path = root() / "default";
    auto const includes = [&](fs::path const& library) {
        environment_.kiln_nvrtc = touch(library);
        return library_search{environment_}.toolkit_includes();
    };
    touch("own/include/cuda_fp16.h");
    touch("own/include/cccl/cuda/std/version");
    EXPECT_THAT(includes("own/lib64/libnvrtc.so.13"), ElementsAre(root() / "own/include/cccl", root() / "own/include"));
    touch("site/nvidia/cuda_runtime/include/cuda_fp16.h");
    EXPECT_THAT(includes("site/nvidia/cuda_nvrtc/lib/libnvrtc.so.12"),
                ElementsAre(root() / "default/include/cccl", root() / "site/nvidia/cuda_runtime/include"))
        << "what is not beside it is looked for where it always is";
    EXPECT_THAT(includes("bare/a/b/c/libnvrtc.so.13"),
                ElementsAre(root() / "default/include/cccl", root() / "default/include"));
}

TEST_F(library_search_test, newer_sonames_first_within_a_place_and_places_in_order) {
    auto const home12 = touch("home/lib/libfake.so.12");
    auto const home13 = touch("home/targets/a/lib/libfake.so.13");
    auto const local = touch("system/usr/local/cuda/lib64/libfake.so.13");
    auto const wheel = touch("venv/lib/python3.12/site-packages/nvidia/cu13/lib/libfake.so.13");
    auto const conda = touch("conda/lib/libfake.so.13");
    auto const build = touch("build/nvidia/cu13/lib/libfake.so.13");
    environment_.cuda_home = root() / "home";
    environment_.virtual_env = root() / "venv";
    environment_.conda_prefix = root() / "conda";
    environment_.build_cuda = root() / "build";
    EXPECT_THAT(found(), ElementsAre(home13, home12, local, wheel, conda, build));

    library_search const search{environment_};
    std::vector<std::string> kinds;
    for (auto const& p : search.places()) kinds.emplace_back(name_of(p.kind));
    EXPECT_THAT(kinds, ElementsAre("CUDA_HOME", "loader path", "/usr/local/cuda", "pip", "conda", "build"));
}

TEST_F(library_search_test, what_comes_after_the_first_that_serves_is_not_looked_at) {
    auto const home = touch("home/lib64/libfake.so.13");
    touch("home/lib/libfake.so.12");
    environment_.cuda_home = root() / "home";
    environment_.virtual_env = root() / "venv";
    library_search const search{environment_};
    std::vector<fs::path> seen;
    search.visit_candidates(sonames, [&](candidate const& c) { return seen.push_back(c.file), true; });
    EXPECT_THAT(seen, ElementsAre(home));
    // Python's places were not read yet: what appears in them now is still found.
    auto const wheel = touch("venv/lib/python3.12/site-packages/nvidia/cu13/lib/libfake.so.13");
    EXPECT_EQ(search.candidates(sonames).back().file, wheel);
}

TEST_F(library_search_test, what_cannot_be_looked_at_is_tried_and_not_passed_over) {
    fs::create_directories(root() / "t/lib64");
    fs::create_symlink("libfake.so.13", root() / "t/lib64/libfake.so.13");  // a loop: neither there nor absent
    auto const older = touch("t/lib64/libfake.so.12");
    environment_.kiln_cuda_path = root() / "t";
    EXPECT_THAT(found(), ElementsAre(root() / "t/lib64/libfake.so.13", older));
}

TEST_F(library_search_test, kiln_cuda_path_is_exclusive) {
    touch("home/lib/libfake.so.13");
    touch("system/usr/local/cuda/lib64/libfake.so.13");
    environment_.cuda_home = root() / "home";
    environment_.kiln_cuda_path = root() / "nothing";
    library_search const search{environment_};
    EXPECT_THAT(search.candidates(sonames), IsEmpty());
    EXPECT_THAT(search.toolkit_includes(), IsEmpty());
    EXPECT_EQ(search.tried(), fmt::format("KILN_CUDA_PATH ({}) [no such directory]", (root() / "nothing").string()));
}

TEST_F(library_search_test, tells_where_it_looked) {
    touch("venv/lib/python3.12/site-packages/nvidia/readme");
    environment_.virtual_env = root() / "venv";
    EXPECT_THAT(library_search{environment_}.tried(),
                AllOf(HasSubstr("loader path, /usr/local/cuda ("), HasSubstr("[no such directory]"),
                      HasSubstr("pip (" + (root() / "venv/lib/python3.12/site-packages").string() + ")"),
                      HasSubstr("CUDA_HOME and KILN_CUDA_PATH are not set")));
}

// The loader's cache as ldconfig writes it, with one name.
std::string loader_cache(std::string_view soname, std::string_view path) {
    base::byte_writer w;
    w.put_raw(base::as_bytes("glibc-ld.so.cache1.1"));
    w.put_u32(1);
    for (int i = 0; i < 6; ++i) w.put_u32(0);
    constexpr std::uint32_t strings_at = 20 + 4 + 24 + 24;
    w.put_u32(3);
    w.put_u32(strings_at);
    w.put_u32(strings_at + static_cast<std::uint32_t>(soname.size()) + 1);
    for (int i = 0; i < 3; ++i) w.put_u32(0);
    for (auto const text : {soname, path}) {
        w.put_raw(base::as_bytes(text));
        w.put_u8(0);
    }
    return std::string{base::as_text(w.view())};
}

TEST_F(library_search_test, the_loader_path_is_its_variable_then_its_cache_then_the_systems_directories) {
    auto const cached = touch("system/opt/cuda/lib/libfake.so.13");
    touch("system/etc/ld.so.cache", loader_cache("libfake.so.13", "/opt/cuda/lib/libfake.so.13"));
    auto const preferred = touch("mine/libfake.so.13");
    auto const last = touch("system/usr/lib/libfake.so.13");
    environment_.ld_library_path = ":" + (root() / "mine").string();
    EXPECT_THAT(found(), ElementsAre(preferred, cached, last));
    for (auto const& c : library_search{environment_}.candidates(sonames))
        EXPECT_EQ(c.from.kind, place_kind::loader_path) << c.file;
}

TEST_F(library_search_test, a_loader_cache_cut_anywhere_is_no_cache) {
    touch("system/opt/cuda/lib/libfake.so.13");
    auto const whole = loader_cache("libfake.so.13", "/opt/cuda/lib/libfake.so.13");
    touch("system/etc/ld.so.cache", whole);
    ASSERT_FALSE(found().empty());
    for (std::size_t size = 0; size + 2 < whole.size(); ++size) {
        touch("system/etc/ld.so.cache", whole.substr(0, size));
        EXPECT_THAT(found(), IsEmpty()) << size;
    }
}

TEST_F(library_search_test, a_relative_toolkit_is_found_by_absolute_names) {
    auto const file = touch("home/lib64/libfake.so.13");
    environment_.kiln_cuda_path = fs::relative(root() / "home");
    ASSERT_EQ(found().size(), 1U);
    EXPECT_TRUE(found().front().is_absolute());
    EXPECT_TRUE(fs::equivalent(found().front(), file));
}

TEST_F(library_search_test, headers_of_a_toolkit_with_cccl_beside_them) {
    touch("home/include/cuda_fp16.h");
    touch("home/include/cccl/cuda/std/version");
    environment_.cuda_home = root() / "home";
    auto const includes = library_search{environment_}.find_includes();
    ASSERT_EQ(includes.size(), 2U);
    EXPECT_EQ(includes[0].holds, "cccl");
    EXPECT_EQ(includes[0].directory, root() / "home/include/cccl");
    EXPECT_EQ(includes[1].holds, "cuda");
    EXPECT_EQ(includes[1].from.kind, place_kind::cuda_home);
}

TEST_F(library_search_test, headers_in_one_directory_are_listed_once) {
    touch("home/targets/a/include/cuda_fp16.h");
    touch("home/targets/a/include/cub/version.cuh");
    environment_.cuda_home = root() / "home";
    EXPECT_THAT(library_search{environment_}.toolkit_includes(), ElementsAre(root() / "home/targets/a/include"));
}

TEST_F(library_search_test, headers_of_separate_wheels) {
    touch("venv/lib/python3.11/site-packages/nvidia/cuda_runtime/include/cuda_fp16.h");
    touch("venv/lib/python3.11/site-packages/nvidia/cuda_cccl/include/cuda/std/version");
    environment_.virtual_env = root() / "venv";
    auto const wheels = root() / "venv/lib/python3.11/site-packages/nvidia";
    EXPECT_THAT(library_search{environment_}.toolkit_includes(),
                ElementsAre(wheels / "cuda_cccl/include", wheels / "cuda_runtime/include"));
}

class python_places_test : public library_search_test {
protected:
    fs::path site(fs::path const& prefix, std::string const& leaf = "lib/python3.11/site-packages") const {
        touch(prefix / leaf / "nvidia/readme");
        return root() / prefix / leaf;
    }
};

TEST_F(python_places_test, python_on_path_through_links) {
    auto const packages = site("opt/python");
    auto const real = touch("opt/python/bin/python3.11");
    fs::create_directories(root() / "bin");
    fs::create_symlink(real, root() / "bin/python3");
    environment_.path = "relative:" + (root() / "empty").string() + ":" + (root() / "bin").string();
    EXPECT_THAT(python_places(environment_), ElementsAre(packages));
}

TEST_F(python_places_test, a_virtual_environment_on_path_comes_before_the_python_it_links_to) {
    auto const base_packages = site("opt/python");
    auto const packages = site("venv");
    auto const real = touch("opt/python/bin/python3.11");
    fs::create_directories(root() / "venv/bin");
    fs::create_symlink(real, root() / "venv/bin/python3");
    environment_.path = (root() / "venv/bin").string();
    EXPECT_THAT(python_places(environment_), ElementsAre(packages, base_packages));
}

TEST_F(python_places_test, pyenv_shims_lead_to_the_chosen_version_first) {
    auto const older = site("pyenv/versions/3.9.2", "lib/python3.9/site-packages");
    auto const newer = site("pyenv/versions/3.12.1", "lib/python3.12/site-packages");
    touch("pyenv/shims/python3", "#!/bin/sh\n");
    environment_.path = (root() / "pyenv/shims").string();
    EXPECT_THAT(python_places(environment_), ElementsAre(newer, older)) << "newest first without a choice";
    touch("pyenv/version", "3.9.2\n");
    EXPECT_THAT(python_places(environment_), ElementsAre(older, newer));
    environment_.pyenv_version = "3.12.1";
    EXPECT_THAT(python_places(environment_), ElementsAre(newer, older));
}

TEST_F(python_places_test, user_and_system_directories) {
    auto const user = site("ann/.local");
    auto const local = site("system/usr/local", "lib/python3.11/dist-packages");
    auto const system = site("system/usr", "lib/python3/dist-packages");
    environment_.home = root() / "ann";
    EXPECT_THAT(python_places(environment_), ElementsAre(user, local, system));
}

TEST_F(python_places_test, packages_without_nvidia_are_left_out) {
    touch("venv/lib/python3.11/site-packages/numpy/readme");
    environment_.virtual_env = root() / "venv";
    EXPECT_THAT(python_places(environment_), IsEmpty());
}

}  // namespace
}  // namespace kiln::cuda
