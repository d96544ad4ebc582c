// SPDX-License-Identifier: Apache-2.0
//
// Opens and resolves the driver, NVRTC and nvJitLink, each at first need and once. What the driver said is remembered even
// if it failed; a compiler that could not be opened is tried again. The process's loader is never destroyed and never closes
// a library. Safe from any thread: those who need the same library wait for one load.
#pragma once

#include "base/fork_guard.hpp"
#include "cuda/context.hpp"
#include "cuda/driver_api.hpp"
#include "cuda/nvjitlink_api.hpp"
#include "cuda/nvrtc_api.hpp"

#include <map>
#include <mutex>
#include <optional>

namespace kiln::cuda {

struct loader_options {
    std::vector<std::string> driver_names = {"libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"};
};

class loader {
public:
    [[nodiscard]] static loader& process();

    explicit loader(loader_options options);

    [[nodiscard]] result<std::shared_ptr<driver_api const>> driver();
    [[nodiscard]] result<std::shared_ptr<driver_api const>> started_driver();
    [[nodiscard]] result<std::shared_ptr<nvrtc_api const>> nvrtc_at(std::filesystem::path const& file,
                                                                    base::load_watcher watcher = nullptr);
    [[nodiscard]] result<std::shared_ptr<nvjitlink_api const>> nvjitlink_at(std::filesystem::path const& file,
                                                                            base::load_watcher watcher = nullptr);
    [[nodiscard]] result<std::shared_ptr<context const>> context_of(int ordinal);

    // From here on handles of this loader's driver do not call it. Runs by itself when the process exits.
    void note_exit() noexcept;

private:
    // Held while a library is loaded or a driver starts, however long that takes: fork() does not wait for it, and a child has another.
    using of_each_process = base::per_process<std::mutex>;
    static std::unique_ptr<std::mutex> make_mutex() { return std::make_unique<std::mutex>(); }
    template <class T>
    struct once {
        of_each_process mutex{&make_mutex};
        std::optional<result<std::shared_ptr<T const>>> answer;
    };

    template <class T>
    [[nodiscard]] once<T>& at(std::map<std::filesystem::path, once<T>>& files, std::filesystem::path const& file);

    loader_options options_;
    once<driver_api> driver_;
    once<driver_api> started_;
    std::atomic<driver_state*> ending_{nullptr};
    base::forkable_mutex files_mutex_;
    std::map<std::filesystem::path, once<nvrtc_api>> nvrtc_files_;
    std::map<std::filesystem::path, once<nvjitlink_api>> nvjitlink_files_;
    of_each_process contexts_mutex_{&make_mutex};
    std::map<int, std::shared_ptr<context const>> contexts_;
};

}  // namespace kiln::cuda
