// SPDX-License-Identifier: Apache-2.0
// Every function of kiln.h when the n-th allocation fails, for every n: the right answer or an error, and nobody hangs or dies. This
// program's operator new does it.
#include "capi/boxes.hpp"
#include "engine/engine_state.hpp"
#include "support/fake_compiler.hpp"
#include "warmup/director.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <new>

namespace {

enum class whose { nobody, this_thread, everybody };
enum class lasting { once, for_ever };

struct shortage {
    std::atomic<whose> of{whose::nobody};
    std::atomic<lasting> how{lasting::once};
    std::atomic<long> left{0};
};
constinit shortage now;
constinit thread_local bool is_short = false;

bool fails() noexcept {
    auto const of = now.of.load();
    if (of == whose::nobody || (of == whose::this_thread && !is_short)) return false;
    auto const left = now.left.fetch_sub(1);
    return left == 1 || (left < 1 && now.how.load() == lasting::for_ever);
}

// How many allocations there were, or would have been.
template <class Body>
long with_shortage(whose of, lasting how, long nth, Body const& body) {
    now.how = how;
    now.left = nth;
    is_short = true;
    now.of = of;
    body();
    now.of = whose::nobody;
    is_short = false;
    return nth - now.left.load();
}

}  // namespace

// Not inlined: GCC would see malloc and free where it expects a pair of operators.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
    if (void* const memory = fails() ? nullptr : std::malloc(bytes != 0 ? bytes : 1)) return memory;
    throw std::bad_alloc{};
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace kiln {
namespace {

constexpr long most = 100'000;

// No answer takes as long; who hangs is told apart by it.
constexpr std::int64_t patience_ms = 20'000;

void expect_answered(kiln_error* why) {
    EXPECT_NE(kiln_error_code(why), KILN_TIMEOUT) << "nobody answered: " << kiln_error_message(why);
    EXPECT_NE(kiln_error_code(why), KILN_INTERNAL) << kiln_error_message(why);
    if (why != nullptr) {
        EXPECT_STRNE(kiln_error_message(why), "");
    }
    kiln_error_free(why);
}

// Calls `body(n)` with each allocation failing in turn, until there are no more.
template <class Body>
void walk(lasting how, Body const& body) {
    for (long n = 1; n < most && !testing::Test::HasFailure(); ++n) {
        SCOPED_TRACE("allocation " + std::to_string(n));
        if (body([&](auto const& call) { return with_shortage(whose::this_thread, how, n, call); }) < n) return;
    }
    EXPECT_FALSE(testing::Test::HasFailure()) << "it never came to an end";
}
// Here the number of allocations is not the same each time.
template <class Body>
void walk_everybody(Body const& body) {
    long usual = body([&](auto const& call) { return with_shortage(whose::everybody, lasting::once, most, call); });
    for (long n = 1; n < usual + usual / 8 && !testing::Test::HasFailure(); ++n) {
        SCOPED_TRACE("allocation " + std::to_string(n));
        body([&](auto const& call) { return with_shortage(whose::everybody, lasting::once, n, call); });
    }
}

class short_of_memory : public testing::TestWithParam<lasting> {
protected:
    // With a compiler that is none, and the cache of all of them.
    struct made_engine {
        explicit made_engine(short_of_memory& test)
            : box{engine{{.settings = {{"KILN_CACHE_DIR", (test.scratch_.path() / "cache").native()},
                                       {"KILN_CUDA_PATH", KILN_TEST_CUDA_PATH}},
                          .events = &test.events_}}} {
            auto& s = box.engine.internals();
            s.requests.reset();
            s.pool = std::make_unique<compile::worker_pool>(compiler.options(), test.events_);
            s.requests = std::make_unique<engine_detail::coordinator>(
                engine_detail::coordinator_options{},
                engine_detail::coordinator::parts{*s.store, *s.pool, test.events_, s.book});
        }
        testing_support::fake_compiler compiler;
        kiln_engine box;
    };

    kiln_unit unit_named(std::string const& name) {
        kiln_unit out = KILN_UNIT_INIT;
        out.name = name.c_str();
        out.source = "__global__ void k() {}";
        return out;
    }
    // One that no engine has seen.
    std::string const& fresh_name() { return name_ = "unit" + std::to_string(++names_); }
    static kiln_wait patient() {
        kiln_wait out = KILN_WAIT_INIT;
        out.deadline_ms = patience_ms;
        return out;
    }
    kiln_artifact* some_artifact(kiln_engine& from) {
        kiln_artifact* out = nullptr;
        auto const unit = unit_named("kept");
        auto const wait = patient();
        auto* const why = kiln_artifact_sync(&from, &unit, "sm_90", KILN_CUBIN, &wait, &out);
        EXPECT_EQ(why, nullptr) << kiln_error_message(why);
        EXPECT_EQ(kiln_flush_sync(&from, patience_ms), nullptr);
        return out;
    }
    static void expect_whole(kiln_artifact* made, std::string const& name) {
        EXPECT_EQ(kiln_artifact_unit(made), name);
        std::size_t size = 0;
        auto const* const image = static_cast<char const*>(kiln_artifact_image(made, &size));
        EXPECT_EQ(std::string(image, size), "__global__ void k() {}");
        kiln_artifact_free(made);
    }

    // An artifact that is whole, or an error.
    static void expect_made_or_told(kiln_artifact* made, kiln_error* why, std::string const& name) {
        EXPECT_EQ(made == nullptr, why != nullptr) << "an artifact or an error";
        if (made != nullptr) expect_whole(made, name);
        expect_answered(why);
    }
    // Asks for a unit by this name while memory is short; returns how many allocations there were.
    template <class Shortly>
    long ask(kiln_engine& of, std::string const& name, Shortly const& shortly) {
        auto const unit = unit_named(name);
        auto const wait = patient();
        kiln_artifact* made = nullptr;
        kiln_error* why = nullptr;
        auto const n = shortly([&] { why = kiln_artifact_sync(&of, &unit, "sm_90", KILN_CUBIN, &wait, &made); });
        expect_made_or_told(made, why, name);
        return n;
    }

    base::temporary_directory scratch_ = base::temporary_directory::make("kiln-short-of-memory").value();
    event_log events_;
    int names_ = 0;
    std::string name_;
};

}  // namespace

TEST_P(short_of_memory, an_engine_is_made_and_freed) {
    auto const cache = (scratch_.path() / "cache").native();
    kiln_setting const settings[] = {{"KILN_CACHE_DIR", cache.c_str()}, {"KILN_CUDA_PATH", KILN_TEST_CUDA_PATH}};
    walk(GetParam(), [&](auto const& shortly) {
        kiln_engine* made = nullptr;
        kiln_error* why = nullptr;
        auto const n = shortly([&] {
            why = kiln_engine_make(settings, 2, &made);
            kiln_engine_free(made);
        });
        EXPECT_EQ(made == nullptr, why != nullptr) << "an engine or an error";
        expect_answered(why);
        return n;
    });
}

TEST_P(short_of_memory, an_artifact_is_found) {
    {
        made_engine first{*this};
        kiln_artifact_free(some_artifact(first.box));
    }
    walk(GetParam(), [&](auto const& shortly) {
        made_engine here{*this};
        return ask(here.box, "kept", shortly);
    });
}

TEST_P(short_of_memory, an_artifact_is_made) {
    made_engine here{*this};
    kiln_artifact_free(some_artifact(here.box));  // what is found out once is not counted for each
    walk(GetParam(), [&](auto const& shortly) {
        auto const n = ask(here.box, fresh_name(), shortly);
        // Whoever comes after is served, or told why not: no flight is left without a leader.
        ask(here.box, name_, [](auto const& call) { return call(), 0L; });
        return n;
    });
}

TEST_P(short_of_memory, an_answer_comes_later) {
    made_engine here{*this};
    kiln_artifact_free(some_artifact(here.box));
    walk(GetParam(), [&](auto const& shortly) {
        auto const unit = unit_named(fresh_name());
        kiln_pending* asked = nullptr;
        kiln_error* why = nullptr;
        auto n = shortly([&] { why = kiln_artifact_later(&here.box, &unit, "sm_90", KILN_CUBIN, &asked); });
        expect_answered(why);
        if (asked == nullptr) return n;
        kiln_artifact* made = nullptr;
        expect_answered(kiln_pending_artifact_sync(asked, patience_ms, &made));
        if (made != nullptr) expect_whole(made, name_);
        made = nullptr;
        n = std::max(n, shortly([&] { why = kiln_pending_artifact_sync(asked, patience_ms, &made); }));
        if (made != nullptr) expect_whole(made, name_);
        expect_answered(why);
        kiln_pending_free(asked);
        return n;
    });
}

TEST_P(short_of_memory, what_is_demanded) {
    made_engine here{*this};
    kiln_artifact_free(some_artifact(here.box));
    char const* const archs[] = {"sm_90"};
    kiln_demand_options options = KILN_DEMAND_OPTIONS_INIT;
    walk(GetParam(), [&](auto const& shortly) {
        auto const unit = unit_named(fresh_name());
        long n = 0;
        for (std::size_t const targets : {0, 1}) {
            options.archs = archs;
            options.arch_count = targets;
            kiln_demanded* asked = nullptr;
            kiln_error* why = nullptr;
            n = std::max(n, shortly([&] {
                             why = kiln_demand(&here.box, &unit, 1, nullptr, 0, &options, &asked);
                             kiln_demanded_raise(asked, KILN_PLANNED);
                             kiln_demanded_cancel(asked);
                         }));
            expect_answered(why);
            kiln_demanded_free(asked);
        }
        char* json = nullptr;
        EXPECT_EQ(kiln_status_json(&here.box, &json), nullptr);
        kiln_free(json);
        return n;
    });
}

TEST_P(short_of_memory, what_an_engine_tells_of_itself) {
    made_engine here{*this};
    kiln_artifact_free(some_artifact(here.box));
    walk(GetParam(), [&](auto const& shortly) {
        char* json = nullptr;
        kiln_engine_status status = KILN_ENGINE_STATUS_INIT;
        kiln_error *why = nullptr, *of_status = nullptr, *of_flush = nullptr;
        auto n = shortly([&] { why = kiln_status_json(&here.box, &json); });
        n = std::max(n, shortly([&] { of_status = kiln_engine_get_status(&here.box, &status); }));
        n = std::max(n, shortly([&] { of_flush = kiln_flush_sync(&here.box, patience_ms); }));
        EXPECT_EQ(json == nullptr, why != nullptr);
        if (json != nullptr) {
            EXPECT_NE(std::string_view{json}.find("\"kept\""), std::string_view::npos);
        }
        kiln_free(json);
        for (auto* const one : {why, of_status, of_flush}) expect_answered(one);
        return n;
    });
}

TEST_P(short_of_memory, artifacts_and_bytes) {
    made_engine here{*this};
    auto* const kept = some_artifact(here.box);
    walk(GetParam(), [&](auto const& shortly) {
        void* bytes = nullptr;
        std::size_t size = 0;
        kiln_error* why = nullptr;
        auto n = shortly([&] { why = kiln_artifact_to_bytes(kept, &bytes, &size); });
        EXPECT_EQ(bytes == nullptr, why != nullptr);
        expect_answered(why);
        if (bytes == nullptr) return n;
        kiln_artifact* again = nullptr;
        n = std::max(n, shortly([&] { why = kiln_artifact_from_bytes(bytes, size, &again); }));
        if (again != nullptr) expect_whole(again, "kept");
        expect_answered(why);
        kiln_free(bytes);
        return n;
    });
    kiln_artifact_free(kept);
}

TEST_P(short_of_memory, what_is_linked) {
    made_engine here{*this};
    auto* const kept = some_artifact(here.box);
    kiln_link what = KILN_LINK_INIT;
    what.arch = "sm_90";
    what.inputs = const_cast<kiln_artifact const* const*>(&kept);
    what.input_count = 1;
    auto const wait = patient();
    walk(GetParam(), [&](auto const& shortly) {
        what.name = fresh_name().c_str();
        kiln_artifact* made = nullptr;
        kiln_error* why = nullptr;
        auto const n = shortly([&] { why = kiln_link_sync(&here.box, &what, &wait, &made); });
        expect_made_or_told(made, why, name_);
        return n;
    });
    kiln_artifact_free(kept);
}

TEST_P(short_of_memory, events_are_subscribed_to) {
    auto& log = event_log::process();
    walk(GetParam(), [&](auto const& shortly) {
        kiln_subscription* token = nullptr;
        kiln_error* why = nullptr;
        auto const n = shortly([&] {
            why = kiln_subscribe([](kiln_event const*, void*) {}, nullptr, &token);
            log.emit({.kind = event_kind::note, .unit = "somebody listens"});
            kiln_subscription_free(token);
        });
        EXPECT_EQ(token == nullptr, why != nullptr);
        expect_answered(why);
        return n;
    });
}

TEST_P(short_of_memory, machines_without_a_device) {
    made_engine here{*this};
    auto* const kept = some_artifact(here.box);
    auto const unit = unit_named("kept");
    auto const wait = patient();
    walk(GetParam(), [&](auto const& shortly) {
        std::size_t count = 0;
        kiln_device_info info = KILN_DEVICE_INFO_INIT;
        kiln_stream* stream = nullptr;
        kiln_memory* memory = nullptr;
        kiln_loaded* loaded = nullptr;
        kiln_kernel* kernel = nullptr;
        kiln_pending* later = nullptr;
        kiln_error* why[8] = {};
        long n = 0;
        auto const shortly_too = [&](auto const& call) { n = std::max(n, shortly(call)); };
        shortly_too([&] { why[0] = kiln_device_count(&count); });
        shortly_too([&] { why[1] = kiln_device(0, &info); });
        shortly_too([&] { why[2] = kiln_stream_make(0, &stream); });
        shortly_too([&] { why[3] = kiln_memory_make(16, 0, &memory); });
        shortly_too([&] { why[4] = kiln_get_sync(&here.box, &unit, 0, &wait, &loaded); });
        shortly_too([&] { why[5] = kiln_load_artifact_sync(&here.box, kept, 0, &loaded); });
        shortly_too([&] { why[6] = kiln_kernel_load("image", 5, "k", 0, &kernel); });
        shortly_too([&] { why[7] = kiln_get_later(&here.box, &unit, 0, &later); });
        if (later != nullptr) {
            loaded = nullptr;
            expect_answered(kiln_pending_loaded_sync(later, patience_ms, &loaded));
            kiln_loaded_free(loaded);
            kiln_pending_free(later);
        }
        for (auto* const one : why) expect_answered(one);
        kiln_stream_free(stream);
        kiln_memory_free(memory);
        kiln_kernel_free(kernel);
        return n;
    });
    kiln_artifact_free(kept);
}

INSTANTIATE_TEST_SUITE_P(capi, short_of_memory, testing::Values(lasting::once, lasting::for_ever),
                         [](auto const& how) { return how.param == lasting::once ? "once" : "for_ever"; });

// On whichever thread it happens.
class short_of_memory_anywhere : public short_of_memory {};

TEST_P(short_of_memory_anywhere, an_artifact_is_made) {
    made_engine here{*this};
    kiln_artifact_free(some_artifact(here.box));
    walk_everybody([&](auto const& shortly) { return ask(here.box, fresh_name(), shortly); });
}

TEST_P(short_of_memory_anywhere, an_answer_comes_later) {
    made_engine here{*this};
    kiln_artifact_free(some_artifact(here.box));
    walk_everybody([&](auto const& shortly) {
        auto const unit = unit_named(fresh_name());
        kiln_pending* asked = nullptr;
        kiln_artifact* made = nullptr;
        kiln_error *why = nullptr, *later = nullptr;
        auto const n = shortly([&] {
            why = kiln_artifact_later(&here.box, &unit, "sm_90", KILN_CUBIN, &asked);
            if (asked != nullptr) later = kiln_pending_artifact_sync(asked, patience_ms, &made);
        });
        if (made != nullptr) expect_whole(made, name_);
        expect_answered(why);
        expect_answered(later);
        kiln_pending_free(asked);
        return n;
    });
}

TEST_P(short_of_memory_anywhere, what_is_demanded_is_settled) {
    made_engine here{*this};
    kiln_artifact_free(some_artifact(here.box));
    char const* const archs[] = {"sm_90"};
    kiln_demand_options options = KILN_DEMAND_OPTIONS_INIT;
    options.archs = archs;
    options.arch_count = 1;
    walk_everybody([&](auto const& shortly) {
        auto const unit = unit_named(fresh_name());
        kiln_demanded* asked = nullptr;
        kiln_error* why = nullptr;
        bool settled = true;
        auto const n = shortly([&] {
            why = kiln_demand(&here.box, &unit, 1, nullptr, 0, &options, &asked);
            if (asked == nullptr) return;
            auto const& batch = asked->what.internals();
            settled = batch->by.lock()->wait_until(*batch, base::clock::now() + std::chrono::milliseconds{patience_ms});
        });
        EXPECT_TRUE(settled) << "whoever waits for a plan would wait for ever";
        expect_answered(why);
        kiln_demanded_free(asked);
        return n;
    });
}

TEST_P(short_of_memory_anywhere, an_engine_goes_while_it_works) {
    walk_everybody([&](auto const& shortly) {
        auto here = std::make_unique<made_engine>(*this);
        auto const unit = unit_named(fresh_name());
        here->compiler.hold();
        kiln_pending* asked = nullptr;
        EXPECT_EQ(kiln_artifact_later(&here->box, &unit, "sm_90", KILN_CUBIN, &asked), nullptr);
        here->compiler.wait_for_begun(1);
        auto const n = shortly([&] { here->box.engine.internals().shut_down(); });
        kiln_artifact* made = nullptr;
        expect_answered(kiln_pending_artifact_sync(asked, patience_ms, &made));
        kiln_artifact_free(made);
        kiln_pending_free(asked);
        return n;
    });
}

INSTANTIATE_TEST_SUITE_P(capi, short_of_memory_anywhere, testing::Values(lasting::once),
                         [](auto const&) { return "once"; });

}  // namespace kiln
