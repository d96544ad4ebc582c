// SPDX-License-Identifier: Apache-2.0
// Products on the device against the independent reference (small shapes) and against the CPU variant, which the unit
// tests hold to the same reference (large shapes).
#include "cuda/context.hpp"
#include "device/graph_api.hpp"
#include "device/prims/prims_fixture.hpp"
#include "support/tropical_reference.hpp"
#include "tropical/units.hpp"

#include <filesystem>
#include <map>
#include <thread>

namespace kiln::device_tests {

namespace {

using namespace tropical;
using namespace tropical_tests;
using tropical_tests::make_data;

constexpr semiring all_semirings[] = {semiring::max_plus, semiring::min_plus, semiring::max_mul, semiring::and_or,
                                      semiring::plus_times};
constexpr kernel_choice all_choices[] = {kernel_choice::automatic, kernel_choice::generic, kernel_choice::large,
                                         kernel_choice::small, kernel_choice::split};

template <class T>
class tropical_product : public on_device {
protected:
    void SetUp() override {
        on_device::SetUp();
        if (!IsSkipped()) stream_.emplace(stream::make().value());
    }
    stream const& on() const { return *stream_; }

    // The host's arrays become the device's results. There are many thousands of small cases: one copy each way.
    void run(product_handle<T> const& by, random_case<T>& c, bool with_arg) {
        std::fill(c.host_c.begin(), c.host_c.end(), T{77});
        std::fill(c.host_arg.begin(), c.host_arg.end(), 12345);
        std::vector<std::byte> staged;
        auto const add = [&](auto const& from) {
            auto const at = staged.size(), bytes = from.size() * sizeof(from[0]);
            staged.resize((at + bytes + 255) / 256 * 256);
            if (bytes > 0) std::memcpy(staged.data() + at, from.data(), bytes);
            return at;
        };
        auto const at_c = add(c.host_c), at_arg = add(c.host_arg);
        auto const results = staged.size();
        auto const at_a = add(c.host_a), at_b = add(c.host_b);
        if (!memory_ || memory_->size() < staged.size())
            memory_ = device_memory::make(std::max<std::size_t>(2 * staged.size(), 1)).value();
        memory_->upload_sync(on(), staged).value();
        auto* const base = memory_->template as<std::byte>();
        auto da = c.a, db = c.b;
        auto dc = c.c;
        auto dx = c.arg;
        da.data = reinterpret_cast<T const*>(base + at_a), db.data = reinterpret_cast<T const*>(base + at_b);
        dc.data = reinterpret_cast<T*>(base + at_c);
        dx.data = with_arg ? base + at_arg : nullptr;
        made(by(on(), c.size, da, db, dc, {.arg = dx}));
        staged.resize(results);
        memory_->download_sync(on(), staged).value();
        if (!c.host_c.empty()) std::memcpy(c.host_c.data(), staged.data() + at_c, c.host_c.size() * sizeof(T));
        if (!c.host_arg.empty())
            std::memcpy(c.host_arg.data(), staged.data() + at_arg, c.host_arg.size() * sizeof(c.host_arg[0]));
    }
    static void made(result<void> r) { ASSERT_TRUE(r.has_value()) << r.error().message(); }

    struct variant {
        semiring s;
        with_winners arg;
        kernel_choice choice;
    };
    static bool exists(variant const& v) {
        if (v.s == semiring::plus_times && v.arg == with_winners::yes) return false;
        if (v.choice == kernel_choice::large) return tuning_of(v.s, scalar_of<T>(), v.arg).large.has_value();
        return true;
    }
    void check(variant const& v, std::int64_t m, std::int64_t n, std::int64_t k, data_kind kind, std::uint64_t seed) {
        auto const at = std::tuple{v.s, v.arg, v.choice};
        if (!handles_.contains(at))
            handles_.emplace(at, device_tests::made(tropical::product<T>(v.s, {.arg = v.arg, .choice = v.choice})));
        random_case<T> c{v.s, m, n, k, kind, seed};
        run(handles_.at(at), c, v.arg == with_winners::yes);
        EXPECT_EQ(c.difference(c.expected(v.s), v.arg == with_winners::yes), "")
            << tropical::name_of(v.s) << ", kernel " << static_cast<int>(v.choice) << ", data "
            << static_cast<int>(kind);
    }

private:
    std::optional<stream> stream_;
    std::optional<device_memory> memory_;
    std::map<std::tuple<semiring, with_winners, kernel_choice>, product_handle<T>> handles_;
};
using element_types = testing::Types<float, double, std::int32_t, std::int64_t>;
TYPED_TEST_SUITE(tropical_product, element_types);

}  // namespace

TYPED_TEST(tropical_product, every_small_shape_is_right) {
    std::uint64_t seed = 1;
    std::int64_t const most = quickest() ? 2 : quick() ? 6 : 20;
    for (auto const s : all_semirings) {
        for (auto const arg : {with_winners::no, with_winners::yes}) {
            for (std::int64_t m = 1; m <= most; ++m) {
                for (std::int64_t n = 1; n <= most; ++n) {
                    // All three sizes meet all kernels; the five kernels take turns.
                    for (std::int64_t k = 0; k <= most; k += quickest() ? 2 : quick() ? 5 : 1) {
                        auto const choice = all_choices[seed % std::size(all_choices)];
                        auto const kind = all_kinds[seed / 5 % std::size(all_kinds)];
                        if (this->exists({s, arg, choice})) this->check({s, arg, choice}, m, n, k, kind, seed);
                        ++seed;
                        if (this->HasFailure()) return;
                    }
                }
            }
        }
    }
}

TYPED_TEST(tropical_product, primes_are_right_by_every_kernel) {
    std::uint64_t seed = 1;
    std::vector<std::tuple<int, int, int>> shapes{{67, 129, 131}, {131, 61, 257}};
    if (quickest()) shapes = {{67, 129, 70}};
    if (!quick())
        shapes.insert(shapes.end(), {{293, 101, 83}, {1, 283, 299}, {271, 1, 149}, {128, 256, 64}, {65, 257, 37}});
    for (auto const s : all_semirings) {
        for (auto const arg : {with_winners::no, with_winners::yes}) {
            for (auto const choice : all_choices) {
                if (!this->exists({s, arg, choice})) continue;
                for (auto const& [m, n, k] : shapes) {
                    for (auto const kind : all_kinds) {
                        if (quick() && seed % (quickest() ? 11 : 3) != 0 && ++seed != 0) continue;
                        this->check({s, arg, choice}, m, n, k, kind, seed++);
                        if (this->HasFailure()) return;
                    }
                }
            }
        }
    }
}

TYPED_TEST(tropical_product, large_ones_equal_the_cpu_bit_for_bit) {
    std::uint64_t seed = 1;
    for (auto const s : {semiring::max_plus, semiring::min_plus, semiring::max_mul}) {
        for (auto const kind : {data_kind::mixed, data_kind::positive, data_kind::negative, data_kind::rare}) {
            auto const by = device_tests::made(tropical::product<TypeParam>(s, {.arg = with_winners::yes}));
            auto const plain = device_tests::made(tropical::product<TypeParam>(s));
            if (quickest() && kind != data_kind::rare) continue;
            auto const n = quick() ? 140 : 700;
            random_case<TypeParam> c{s, n, n + 13, n + 29, kind, seed++};
            c.size.batch = 1;
            tropical::cpu::product<TypeParam>(s, c.size, c.a, c.b, c.c, c.arg).value();
            auto const want_c = c.host_c;
            auto const want_k = c.host_arg;
            this->run(by, c, true);
            EXPECT_TRUE(equals("values with winners", want_c, c.host_c)) << tropical::name_of(s) << " " << c.describe();
            EXPECT_TRUE(equals("winners", want_k, c.host_arg)) << tropical::name_of(s) << " " << c.describe();
            this->run(plain, c, false);
            EXPECT_TRUE(equals("values", want_c, c.host_c)) << tropical::name_of(s) << " " << c.describe();
            if (this->HasFailure()) return;
        }
    }
}

TYPED_TEST(tropical_product, tiles_that_are_left_are_shared) {
    using T = TypeParam;
    struct shared_case {
        int m, n, k;
        kernel_choice kernel = kernel_choice::small;
    };
    // With rounds of whole tiles before and without; odd and even; two streams at once, which must not meet in their signals.
    std::vector<shared_case> cases{{300, 200, 100, kernel_choice::large}};
    if (!quickest()) cases.push_back({800, 780, 520});
    if (!quick()) {
        cases.insert(cases.end(), {{1024, 1024, 1024},
                                   {1301, 1103, 777},
                                   {1401, 1100, 300, kernel_choice::large},
                                   {3000, 1500, 300, kernel_choice::large}});
    }
    device_facts const facts{
        .multiprocessors = device(0).value().multiprocessors, .has_large = true, .has_split = true};
    auto const other = stream::make().value();
    for (auto const s : {semiring::max_plus, semiring::min_plus, semiring::and_or}) {
        auto const& tuned = tuning_of(s, scalar_of<T>(), with_winners::no);
        for (auto const& [m, n, k, kernel] : cases) {
            if (kernel == kernel_choice::large && !tuned.large) continue;
            auto const by = device_tests::made(tropical::product<T>(s, {.choice = kernel}));
            shape const size{.m = m, .n = n, .k = k};
            auto const cells = static_cast<std::size_t>(m) * static_cast<std::size_t>(n);
            auto const a = make_data<T>(static_cast<std::size_t>(m) * static_cast<std::size_t>(k), data_kind::mixed, 1);
            auto const b = make_data<T>(static_cast<std::size_t>(k) * static_cast<std::size_t>(n), data_kind::mixed, 2);
            auto const before = make_data<T>(cells, data_kind::rare, 3);
            problem p{};
            p.m = m, p.n = n, p.k = k, p.batch = 1;
            EXPECT_TRUE(choose(tuned, p, kernel, facts).shares) << m << ", " << n << ": the test shows nothing";
            std::vector<T> want(cells), onto = before;
            tropical::cpu::product<T>(s, size, {a.data()}, {b.data()}, {want.data()}).value();
            tropical::cpu::product<T>(s, size, {a.data()}, {b.data()}, {onto.data()}, {}, accumulation::into_c).value();
            device_vector<T> const da{this->on(), a}, db{this->on(), b}, dc{this->on(), before};
            device_vector<T> dd{cells};
            dd.poison(this->on());
            this->on().wait_sync().value();
            for (int i = 0; i < (quickest() ? 1 : 10); ++i) {
                this->made(by(this->on(), size, {da.data()}, {db.data()}, {dc.data()}, {.into = accumulation::into_c}));
                this->made(by(other, size, {da.data()}, {db.data()}, {dd.data()}));
            }
            other.wait_sync().value();
            EXPECT_TRUE(equals("onto C", onto, dc.get(this->on()))) << tropical::name_of(s) << " " << m;
            EXPECT_TRUE(equals("values", want, dd.get(this->on()))) << tropical::name_of(s) << " " << m;
            if (this->HasFailure()) return;
        }
    }
}

TYPED_TEST(tropical_product, accumulates_and_batches_by_pointer) {
    using T = TypeParam;
    auto const by = device_tests::made(tropical::product<T>(semiring::min_plus, {.arg = with_winners::yes}));
    shape const size{.m = 70, .n = 33, .k = 50, .batch = 3};
    auto const a = make_data<T>(70 * 50 * 3, data_kind::mixed, 1), b = make_data<T>(50 * 33 * 3, data_kind::mixed, 2);
    auto c = make_data<T>(70 * 33 * 3, data_kind::negative, 3);
    device_vector<T> const da{this->on(), a}, db{this->on(), b}, dc{this->on(), c};
    device_vector<std::int64_t> const dk{70 * 33 * 3};
    std::vector<T const*> pa, pb;
    std::vector<T*> pc;
    std::vector<std::int64_t*> pk;
    // Backwards, so that pointers and strides cannot be mistaken for one another.
    for (int w = 2; w >= 0; --w) {
        pa.push_back(da.data() + w * 70 * 50);
        pb.push_back(db.data() + w * 50 * 33);
        pc.push_back(dc.data() + w * 70 * 33);
        pk.push_back(dk.data() + w * 70 * 33);
    }
    device_vector<T const*> const dpa{this->on(), pa}, dpb{this->on(), pb};
    device_vector<T*> const dpc{this->on(), pc};
    device_vector<std::int64_t*> const dpk{this->on(), pk};
    this->made(by.by_pointer(this->on(), size, {dpa.data()}, {dpb.data()}, {dpc.data()},
                             {.arg = {.data = dpk.data(), .width = index_width::i64}, .into = accumulation::into_c}));
    std::vector<std::int64_t> k(c.size());
    tropical::cpu::product<T>(semiring::min_plus, size, {a.data()}, {b.data()}, {c.data()},
                              {.data = k.data(), .width = index_width::i64}, accumulation::into_c)
        .value();
    EXPECT_TRUE(equals("values", c, dc.get(this->on())));
    EXPECT_TRUE(equals("winners", k, dk.get(this->on())));
    EXPECT_NE(std::ranges::count(k, -1), 0) << "C was never kept: the test shows nothing";
}

namespace {
class tropical_products : public tropical_product<float> {};
}  // namespace

TEST_F(tropical_products, offsets_beyond_32_bits_are_right) {
    if (quick()) GTEST_SKIP() << "needs 17 GiB and a minute under the sanitizer";
    // Room for more than 2^32 elements.
    std::int64_t const apart = (std::int64_t{1} << 31) + 64;
    auto const memory = device_memory::make(static_cast<std::size_t>(2 * apart) * 4);
    if (!memory) GTEST_SKIP() << memory.error().message();
    auto const by = device_tests::made(tropical::product<float>(semiring::max_plus, {.arg = with_winners::yes}));
    // One row of A, and of the C that puts it there, per 2^25 elements: from row 64 on they lie beyond 2^31.
    std::int64_t const ld = std::int64_t{1} << 25;
    shape const size{.m = 100, .n = 40, .k = 30};
    auto const rows = make_data<float>(100 * 30, data_kind::mixed, 1),
               b = make_data<float>(30 * 40, data_kind::mixed, 2);
    auto* const base = memory->as<float>();
    auto const scatter = device_tests::made(tropical::product<float>(semiring::max_plus));
    // Puts the rows in place with a product by the unit of the semiring: 0 on the diagonal, -inf elsewhere.
    std::vector<float> unit_matrix(30 * 30, -std::numeric_limits<float>::infinity());
    for (std::size_t i = 0; i < 30; ++i) unit_matrix[i * 31] = 0;
    device_vector<float> const dense{on(), rows}, one{on(), unit_matrix}, db{on(), b}, c{100 * 40};
    device_vector<std::int32_t> const k{100 * 40};
    made(scatter(on(), {.m = 100, .n = 30, .k = 30}, {dense.data()}, {one.data()}, {base, ld}));
    made(by(on(), size, {base, ld}, {db.data()}, {c.data()}, {.arg = {.data = k.data()}}));
    std::vector<float> want(100 * 40);
    std::vector<std::int32_t> want_k(100 * 40);
    tropical::cpu::product<float>(semiring::max_plus, size, {rows.data()}, {b.data()}, {want.data()},
                                  {.data = want_k.data()})
        .value();
    EXPECT_TRUE(equals("values", want, c.get(on())));
    EXPECT_TRUE(equals("winners", want_k, k.get(on())));
}

TEST_F(tropical_products, can_be_captured_and_replayed) {
    auto const api = graph_api::load();
    auto const context = cuda::context::of(0).value();
    auto const scope = cuda::current_context::enter(*context).value();
    auto const by = device_tests::made(tropical::product<float>(semiring::max_plus, {.arg = with_winners::yes}));
    auto const plain = device_tests::made(tropical::product<float>(semiring::max_plus));
    by.wait_tuned_sync();
    plain.wait_tuned_sync();
    // Of a size whose tiles would be shared outside of a capture.
    shape const size{.m = 200, .n = 200, .k = 200}, large{.m = 800, .n = 780, .k = 520};
    auto const c = make_data<float>(800 * 520, data_kind::mixed, 3),
               d = make_data<float>(520 * 780, data_kind::mixed, 4);
    std::vector<float> want_large(800 * 780);
    tropical::cpu::product<float>(semiring::max_plus, large, {c.data()}, {d.data()}, {want_large.data()}).value();
    device_vector<float> const dc{on(), c}, dd{on(), d};
    device_vector<float> out_large{800 * 780};
    auto const a = make_data<float>(200 * 200, data_kind::mixed, 1);
    std::vector<float> want(200 * 200);
    std::vector<std::int32_t> want_k(200 * 200);
    tropical::cpu::product<float>(semiring::max_plus, size, {a.data()}, {a.data()}, {want.data()},
                                  {.data = want_k.data()})
        .value();
    device_vector<float> const in{on(), a};
    device_vector<float> out{200 * 200};
    device_vector<std::int32_t> k{200 * 200};
    ASSERT_EQ(api.begin(on().get(), CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    auto const captured = by(on(), size, {in.data()}, {in.data()}, {out.data()}, {.arg = {.data = k.data()}});
    auto const captured_large = plain(on(), large, {dc.data()}, {dd.data()}, {out_large.data()});
    CUgraph graph = nullptr;
    ASSERT_EQ(api.end(on().get(), &graph), CUDA_SUCCESS);
    made(captured);
    made(captured_large);
    CUgraphExec exec = nullptr;
    ASSERT_EQ(api.instantiate(&exec, graph, 0), CUDA_SUCCESS);
    out.poison(on());
    k.poison(on());
    out_large.poison(on());
    on().wait_sync().value();
    for (int i = 0; i < 3; ++i) ASSERT_EQ(api.launch(exec, on().get()), CUDA_SUCCESS);
    EXPECT_TRUE(equals("values", want, out.get(on())));
    EXPECT_TRUE(equals("winners", want_k, k.get(on())));
    EXPECT_TRUE(equals("large", want_large, out_large.get(on())));
    api.destroy_exec(exec);
    api.destroy(graph);
}

TEST_F(tropical_products, can_be_used_by_threads) {
    auto const by = device_tests::made(tropical::product<float>(semiring::max_plus, {.arg = with_winners::yes}));
    auto const a = make_data<float>(200 * 200, data_kind::mixed, 1);
    std::vector<float> want(200 * 200);
    std::vector<std::int32_t> want_k(200 * 200);
    tropical::cpu::product<float>(semiring::max_plus, {.m = 200, .n = 200, .k = 200}, {a.data()}, {a.data()},
                                  {want.data()}, {.data = want_k.data()})
        .value();
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&] {
            auto const mine = stream::make().value();
            device_vector<float> const in{mine, a}, out{200 * 200};
            device_vector<std::int32_t> const k{200 * 200};
            for (int i = 0; i < (quickest() ? 1 : 20); ++i)
                by(mine, {.m = 200, .n = 200, .k = 200}, {in.data()}, {in.data()}, {out.data()},
                   {.arg = {.data = k.data()}})
                    .value();
            EXPECT_TRUE(equals("values", want, out.get(mine)));
            EXPECT_TRUE(equals("winners", want_k, k.get(mine)));
        });
    }
}

TEST_F(tropical_products, generic_and_tuned_kernels_change_over_unseen) {
    // Without shipped kernels or cache the generic one answers first, and the tuned one takes over in the background.
    auto const folder = testing::TempDir() + "tropical-cold";
    std::filesystem::remove_all(folder);
    engine cold{{.settings = {{"KILN_CACHE_DIR", folder}, {"KILN_RECACHE", "1"}, {"KILN_WORKER", KILN_TEST_WORKER}}}};
    auto const by = device_tests::made(tropical::product<float>(semiring::min_plus, {.engine = &cold}));
    auto const a = make_data<float>(300 * 300, data_kind::rare, 1);
    device_vector<float> const in{on(), a}, first{300 * 300}, second{300 * 300};
    shape const size{.m = 300, .n = 300, .k = 300};
    made(by(on(), size, {in.data()}, {in.data()}, {first.data()}));
    EXPECT_TRUE(by.wait_tuned_sync());
    made(by(on(), size, {in.data()}, {in.data()}, {second.data()}));
    EXPECT_TRUE(by.tuned());
    EXPECT_TRUE(equals("both", first.get(on()), second.get(on())));
}

}  // namespace kiln::device_tests
