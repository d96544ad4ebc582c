// SPDX-License-Identifier: Apache-2.0
#include "unit/cuda/fake_driver_test.hpp"

#include <thread>

namespace kiln::cuda {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class kernel_test : public fake_driver_test {
protected:
    [[nodiscard]] untyped_kernel load(std::string const& name) {
        auto const loaded = library::make(context_on(table()), fake::cubin()).value();
        static_cast<void>(driver_.take());
        return untyped_kernel{loaded->find(name).value()};
    }
    void enter_kernels_context() { fake::stack.push_back(fake::handle<CUcontext>(100)); }
};

using one_signature = void(int*, int);

TEST_F(kernel_test, a_launch_is_one_driver_call) {
    auto const one = load("one").typed<one_signature>().value();
    enter_kernels_context();
    EXPECT_TRUE(one({}, {.grid = 2, .block = {32, 2}}, nullptr, 42));
    EXPECT_THAT(driver_.take(), ElementsAre("launch"));
    EXPECT_THAT(driver_.launched, ElementsAre(42));
}

TEST_F(kernel_test, an_early_start_is_one_driver_call_that_says_so) {
    auto const one = load("one").typed<one_signature>().value();
    enter_kernels_context();
    auto const on = stream_ref{fake::handle<CUstream>(7)};
    launch_shape const shape{.grid = {2, 3, 4}, .block = {32, 2}, .shared_bytes = 16, .start = launch_start::early};
    EXPECT_TRUE(one(on, shape, nullptr, 42));
    EXPECT_THAT(driver_.take(), ElementsAre("launch_ex grid 2x3x4 block 32x2x1 shared 16 stream 7 early"));
    EXPECT_THAT(driver_.launched, ElementsAre(42));
}

TEST_F(kernel_test, an_early_start_is_an_ordinary_launch_where_there_is_no_such_thing) {
    auto const load_with = [&](driver_api how, int device) {
        auto const loaded = library::make(context_on(table(std::move(how)), device), fake::cubin()).value();
        static_cast<void>(driver_.take());
        return untyped_kernel{loaded->find("two").value()}.typed<void()>().value();
    };
    launch_shape const early{.grid = 1, .block = 1, .start = launch_start::early};
    auto old = fake::table();
    old.version = 12020;
    auto without = fake::table();
    without.launch_kernel_ex = nullptr;
    for (auto const& api : {old, without}) {
        auto const two = load_with(api, 0);
        fake::stack.assign(1, fake::handle<CUcontext>(100));
        EXPECT_TRUE(two({}, early));
        EXPECT_THAT(driver_.take(), ElementsAre("launch"));
    }
    // Device 1 is an sm_80, whose context the fake launch does not take: what matters is which one was asked.
    auto const two = load_with(fake::table(), 1);
    fake::stack.assign(1, fake::handle<CUcontext>(100));
    EXPECT_TRUE(two({}, early));
    EXPECT_THAT(driver_.take(), ElementsAre("launch"));
    // A driver that has it and will not.
    auto const refused = load_with(fake::table(), 0);
    driver_.failing["launch_ex"] = CUDA_ERROR_NOT_SUPPORTED;
    EXPECT_TRUE(refused({}, early));
    EXPECT_THAT(driver_.take(), ElementsAre(testing::StartsWith("launch_ex"), "launch"));
}

TEST_F(kernel_test, a_cluster_is_one_driver_call_that_says_so) {
    auto const one = load("one").typed<one_signature>().value();
    enter_kernels_context();
    launch_shape shape{.grid = {2, 3, 8}, .block = 32, .cluster = {1, 1, 8}};
    EXPECT_TRUE(one({}, shape, nullptr, 42));
    EXPECT_THAT(driver_.take(), ElementsAre("launch_ex grid 2x3x8 block 32x1x1 shared 0 stream 0 cluster 1x1x8"));
    shape.start = launch_start::early;
    EXPECT_TRUE(one({}, shape, nullptr, 42));
    EXPECT_THAT(driver_.take(), ElementsAre("launch_ex grid 2x3x8 block 32x1x1 shared 0 stream 0 cluster 1x1x8 early"));
}

TEST_F(kernel_test, a_cluster_is_never_left_out) {
    auto old = fake::table();
    old.launch_kernel_ex = nullptr;
    auto const loaded = library::make(context_on(table(std::move(old)), 0), fake::cubin()).value();
    auto const two = untyped_kernel{loaded->find("two").value()}.typed<void()>().value();
    static_cast<void>(driver_.take());
    fake::stack.assign(1, fake::handle<CUcontext>(100));
    auto const refused = two({}, {.grid = 8, .block = 1, .cluster = 8});
    ASSERT_FALSE(refused.has_value());
    EXPECT_THAT(refused.error().message(), testing::HasSubstr("sm_90 or newer"));
    EXPECT_THAT(driver_.take(), testing::IsEmpty());
    // Without the early start where the driver will not have both.
    auto const one = load("one").typed<one_signature>().value();
    driver_.failing["launch_ex"] = CUDA_ERROR_NOT_SUPPORTED;
    EXPECT_FALSE(one({}, {.grid = 8, .block = 1, .start = launch_start::early, .cluster = 8}, nullptr, 42));
    EXPECT_THAT(driver_.take(), ElementsAre(testing::EndsWith("cluster 8x1x1 early"), testing::EndsWith("8x1x1")));
}

TEST_F(kernel_test, an_early_start_without_a_context_is_recovered) {
    auto const one = load("one").typed<one_signature>().value();
    std::thread{[&] {
        EXPECT_TRUE(one({}, {.grid = 1, .block = 1, .start = launch_start::early}, nullptr, 1));
    }}.join();
    EXPECT_THAT(driver_.take(), ElementsAre("set_current 100", "launch"));
}

TEST_F(kernel_test, a_cooperative_launch_says_so_and_is_never_an_ordinary_one) {
    auto const one = load("one").typed<one_signature>().value();
    enter_kernels_context();
    launch_shape shape{.grid = 8, .block = 32, .kind = grid_kind::cooperative};
    EXPECT_TRUE(one({}, shape, nullptr, 42));
    EXPECT_THAT(driver_.take(), ElementsAre("launch_ex grid 8x1x1 block 32x1x1 shared 0 stream 0 cooperative"));
    driver_.failing["launch_ex"] = CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
    shape.grid = 10000;
    auto const refused = one({}, shape, nullptr, 42);
    ASSERT_FALSE(refused.has_value());
    EXPECT_THAT(refused.error().message(), HasSubstr("8448 blocks of this size run at once, not 10000"));
}

TEST_F(kernel_test, launch_extras_are_all_handed_over) {
    auto const one = load("one").typed<one_signature>().value();
    enter_kernels_context();
    CUlaunchAttribute own{};
    own.id = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN;
    own.value.memSyncDomain = CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE;
    launch_extras more{.priority = -2,
                       .shared_carveout = 50,
                       .all_begun = fake::handle<CUevent>(8),
                       .attributes = &own,
                       .attribute_count = 1};
    launch_shape const shape{.grid = 8, .block = 32, .start = launch_start::early, .more = &more};
    EXPECT_TRUE(one({}, shape, nullptr, 42));
    EXPECT_THAT(driver_.take(), ElementsAre(testing::EndsWith("priority -2 carveout 50 begun 8 domain 1 early")));
    // A thread without a context gets the same launch again, all but the early start.
    fake::stack.clear();
    EXPECT_TRUE(one({}, shape, nullptr, 42));
    EXPECT_THAT(driver_.take(),
                ElementsAre("set_current 100", testing::EndsWith("priority -2 carveout 50 begun 8 domain 1")));
    more.attribute_count = 9;
    auto const refused = one({}, shape, nullptr, 42);
    ASSERT_FALSE(refused.has_value());
    EXPECT_THAT(refused.error().message(), HasSubstr("at most 8 attributes"));
    EXPECT_THAT(driver_.take(), IsEmpty());
}

TEST_F(kernel_test, gives_the_drivers_handles) {
    auto const one = load("one");
    EXPECT_EQ(one.function(), fake::handle<CUfunction>(31));
    EXPECT_EQ(one.driver_kernel(), fake::handle<CUkernel>(31));
    EXPECT_EQ(one.driver_library(), fake::handle<CUlibrary>(20));
}

TEST_F(kernel_test, an_adopted_kernel_launches_and_keeps_what_it_came_with) {
    auto const kept = std::make_shared<int>(1);
    {
        auto const owner = library::adopt(context_on(table()), fake::handle<CUfunction>(77), kept).value();
        untyped_kernel const foreign{owner->find("foreign").value()};
        EXPECT_EQ(foreign.name(), "foreign");
        EXPECT_EQ(foreign.driver_library(), nullptr);
        EXPECT_EQ(kept.use_count(), 2);
        enter_kernels_context();
        static_cast<void>(driver_.take());
        EXPECT_TRUE(foreign.launch({}, {.grid = 1, .block = 1}, nullptr));
        EXPECT_THAT(driver_.take(), ElementsAre("launch"));
        EXPECT_EQ(owner->variable("taps").error().code(), errc::not_found);
    }
    EXPECT_EQ(kept.use_count(), 1);
    EXPECT_THAT(driver_.take(), ElementsAre("release 0"));  // and nothing was unloaded
    EXPECT_FALSE(library::adopt(context_on(table()), fake::handle<CUfunction>(5), {}).has_value());
    EXPECT_EQ(library::adopt(context_on(table()), nullptr, {}).error().code(), errc::invalid_argument);
}

TEST_F(kernel_test, variables_are_found_by_name_and_copied_in_and_out) {
    auto const loaded = library::make(context_on(table()), fake::cubin()).value();
    auto const taps = loaded->variable("taps").value();
    EXPECT_EQ(taps.size(), 16U);
    EXPECT_EQ(taps.get(), reinterpret_cast<void*>(8192));
    static_cast<void>(driver_.take());
    auto const on = stream_ref{fake::handle<CUstream>(7)};
    EXPECT_TRUE(taps.write_sync(on, std::array<float, 4>{}));
    EXPECT_TRUE(taps.read_sync<float>(on));
    EXPECT_THAT(driver_.take(), ElementsAre("htod 16 on 7", "stream_synchronize", "dtoh 4 on 7", "stream_synchronize"));
    EXPECT_EQ(taps.write_sync(on, std::array<float, 5>{}).error().code(), errc::invalid_argument);
    EXPECT_EQ(loaded->variable("shared_table").value().size(), 4U);
    auto const absent = loaded->variable("tapz");
    ASSERT_FALSE(absent.has_value());
    EXPECT_THAT(absent.error().message(), HasSubstr("variable 'tapz'"));
    auto old = fake::table();
    old.library_get_global = nullptr;
    auto const before = library::make(context_on(table(std::move(old))), fake::cubin()).value();
    EXPECT_EQ(before->variable("taps").error().code(), errc::unsupported);
}

TEST_F(kernel_test, knows_its_name_device_and_resources) {
    auto const one = load("one");
    EXPECT_EQ(one.name(), "one");
    EXPECT_EQ(one.device(), 0);
    EXPECT_EQ(one.resources().registers, 24);
    EXPECT_EQ(one.resources().max_threads, 1024);
    EXPECT_EQ(one.blocks_per_multiprocessor(256).value(), 8);
}

TEST_F(kernel_test, without_parameters) {
    auto const two = load("two").typed<void()>().value();
    enter_kernels_context();
    EXPECT_TRUE(two({}, {}));
}

TEST_F(kernel_test, copies_share_one_library_and_the_last_unloads_it) {
    {
        auto const one = load("one");
        auto const typed = one.typed<one_signature>().value();
        auto const copy = typed;
    }
    EXPECT_THAT(driver_.take(), ElementsAre("library_unload", "release 0"));
}

TEST_F(kernel_test, a_thread_without_a_context_is_given_one_once) {
    auto const one = load("one").typed<one_signature>().value();
    std::thread{[&] {
        EXPECT_TRUE(one({}, {}, nullptr, 1));
        EXPECT_TRUE(one({}, {}, nullptr, 2));
    }}.join();
    EXPECT_THAT(driver_.take(), ElementsAre("set_current 100", "launch", "launch"));
}

TEST_F(kernel_test, another_devices_context_is_put_back) {
    auto const one = load("one").typed<one_signature>().value();
    fake::stack.push_back(fake::handle<CUcontext>(101));
    EXPECT_TRUE(one({}, {}, nullptr, 1));
    EXPECT_THAT(fake::stack, ElementsAre(fake::handle<CUcontext>(101)));
}

TEST_F(kernel_test, a_launch_that_fails_is_not_repeated) {
    auto const one = load("one").typed<one_signature>().value();
    enter_kernels_context();
    driver_.failing["launch"] = CUDA_ERROR_INVALID_HANDLE;
    auto const done = one({}, {}, nullptr, 1);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().status(), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_THAT(driver_.take(), ElementsAre("launch"));
}

TEST_F(kernel_test, the_error_tells_the_shape_and_the_remedy) {
    auto const one = load("one").typed<one_signature>().value();
    enter_kernels_context();
    driver_.failing["launch"] = CUDA_ERROR_INVALID_VALUE;
    auto const large = one({}, {.grid = 1, .block = 32, .shared_bytes = 65536}, nullptr, 1);
    EXPECT_THAT(large.error().message(),
                HasSubstr("launch of 'one' on device 0 (grid 1x1x1, block 32x1x1, 65536 bytes shared"));
    EXPECT_THAT(large.error().message(), HasSubstr("call allow_shared(65536) once before"));
    auto const wide = one({}, {.grid = 1, .block = {1024, 2}}, nullptr, 1);
    EXPECT_THAT(wide.error().message(), HasSubstr("can have 1024 threads, not 2048"));
}

TEST_F(kernel_test, allow_shared_asks_the_driver) {
    auto const one = load("one");
    EXPECT_TRUE(one.allow_shared(100000));
    EXPECT_THAT(driver_.take(), ElementsAre("func_set_attribute 100000"));
    EXPECT_EQ(one.allow_shared(std::size_t{1} << 40).error().code(), errc::invalid_argument);
    EXPECT_THAT(driver_.take(), IsEmpty());
}

TEST_F(kernel_test, a_wrong_signature_is_refused) {
    auto const one = load("one");
    auto const size = one.typed<void(int*, long)>();
    auto const more = one.typed<void(int*, int, int)>();
    auto const fewer = one.typed<void(int*)>();
    ASSERT_FALSE(size);
    ASSERT_FALSE(more);
    ASSERT_FALSE(fewer);
    EXPECT_EQ(size.error().message(), "kernel 'one': parameter 2 has 4 bytes, in the signature 8");
    EXPECT_EQ(more.error().message(), "kernel 'one' has 2 parameters, the signature 3");
    EXPECT_EQ(fewer.error().message(), "kernel 'one' has 2 parameters, the signature 1");
}

TEST_F(kernel_test, a_driver_that_cannot_tell_parameters_is_trusted) {
    auto old = fake::table();
    old.func_get_param_info = nullptr;
    auto const loaded = library::make(context_on(table(old)), fake::cubin()).value();
    EXPECT_TRUE(untyped_kernel{loaded->find("one").value()}.typed<void()>());
}

TEST_F(kernel_test, many_threads_launch_one_handle) {
    auto const one = load("one").typed<one_signature>().value();
    std::vector<std::jthread> threads;
    for (int t = 0; t < 8; ++t) {
        threads.emplace_back([one] {
            for (int i = 0; i < 100; ++i) EXPECT_TRUE(one({}, {}, nullptr, i));
        });
    }
    threads.clear();
    EXPECT_EQ(driver_.launched.size(), 800U);
}

}  // namespace
}  // namespace kiln::cuda
