// SPDX-License-Identifier: Apache-2.0
#include "runtime/signals.hpp"

#include <map>
#include <mutex>

namespace kiln::runtime {

namespace {

constexpr std::size_t bytes = signal_words * sizeof(std::uint32_t);
constexpr int streams_at_once = 16;

struct all_signals {
    struct room {
        CUdeviceptr next = 0;
        int left = 0;
    };
    std::mutex mutex;
    std::map<int, room> rooms;  // by device
    std::map<std::pair<int, unsigned long long>, CUdeviceptr> by_stream;
};
all_signals& all() {
    static auto* const signals = new all_signals;  // other threads may call until the very end
    return *signals;
}

// The number of a stream, which no other ever has; false where it cannot be told, or the stream is being captured.
bool identify(cuda::driver_api const& api, stream_ref on, unsigned long long& id) {
    if (api.stream_get_id == nullptr) return false;
    auto const capture = cuda::capture_of(api, on);
    return capture && *capture == 0 && api.stream_get_id(on.get(), &id) == CUDA_SUCCESS;
}

}  // namespace

std::uint32_t* signals_of(cuda::context const& where, stream_ref on) noexcept try {
    auto const& api = where.api();
    std::pair<int, unsigned long long> key{where.device(), 0};
    if (!identify(api, on, key.second)) return nullptr;
    thread_local std::pair<std::pair<int, unsigned long long>, std::uint32_t*> last{{-1, 0}, nullptr};
    if (last.first == key) return last.second;
    auto const scope = cuda::current_context::enter(where);
    if (!scope) return nullptr;
    auto& signals = all();
    std::scoped_lock const lock{signals.mutex};
    auto found = signals.by_stream.find(key);
    if (found == signals.by_stream.end()) {
        auto& room = signals.rooms[key.first];
        if (room.left == 0) {
            if (!cuda::call<&cuda::driver_api::mem_alloc>(api, &room.next, bytes * streams_at_once)) return nullptr;
            room.left = streams_at_once;
        }
        if (!cuda::call<&cuda::driver_api::memset_d8_async>(api, room.next, static_cast<unsigned char>(0), bytes,
                                                            on.get()))
            return nullptr;
        found = signals.by_stream.emplace(key, room.next).first;
        room.next += bytes;
        --room.left;
    }
    last = {key, reinterpret_cast<std::uint32_t*>(found->second)};
    return last.second;
} catch (std::bad_alloc const&) {
    return nullptr;  // the work is done without them
}

}  // namespace kiln::runtime
