// SPDX-License-Identifier: Apache-2.0
//
// An image handed to the driver, and its kernels. Loading is eager: every kernel asked for is resolved and its code put
// on the device before make() returns, so the first launch is like any other. A function keeps its library alive, a
// library its context.
#pragma once

#include "cuda/context.hpp"

#include <kiln/kernel.hpp>

#include <span>
#include <string>
#include <vector>

namespace kiln::cuda {

// CUBIN or fatbin that is shorter than its own headers say, or empty: errc::corrupt. The driver takes no length and
// would read past the end.
[[nodiscard]] result<void> check_image(base::byte_span image);

class library : public std::enable_shared_from_this<library> {
public:
    // `names`: the kernels to resolve now, as in the image; empty means all of them, which needs driver 12.4. The
    // image is copied by the driver. errc::unsupported: made for another GPU; corrupt, compile_failed (PTX, with
    // the driver's log), not_found (a name).
    [[nodiscard]] static result<std::shared_ptr<library const>> make(std::shared_ptr<context const> where,
                                                                     base::byte_span image,
                                                                     std::span<std::string const> names = {});

    // Around a kernel that was loaded elsewhere and stays so while `keep` lives.
    [[nodiscard]] static result<std::shared_ptr<library const>> adopt(std::shared_ptr<context const> where,
                                                                      CUfunction function,
                                                                      std::shared_ptr<void const> keep);

    library(library const&) = delete;
    library& operator=(library const&) = delete;
    ~library();

    [[nodiscard]] int device() const noexcept { return context_->device(); }
    [[nodiscard]] context const& where() const noexcept { return *context_; }
    // Names of the resolved kernels, in the order asked for.
    [[nodiscard]] std::vector<std::string> names() const;
    // A resolved kernel; errc::not_found for any other name.
    [[nodiscard]] result<std::shared_ptr<function const>> find(std::string_view name) const;
    // A __device__, __constant__ or __managed__ variable, named as in the image; errc::not_found.
    [[nodiscard]] result<device_variable> variable(std::string const& name) const;
    // Null where it was adopted.
    [[nodiscard]] CUlibrary get() const noexcept { return handle_; }

private:
    struct resolved {
        std::string name;
        CUfunction handle = nullptr;
        CUkernel kernel = nullptr;  // null where it was adopted
        kernel_resources resources;
    };
    friend class function;

    explicit library(std::shared_ptr<context const> where) noexcept;
    [[nodiscard]] result<void> fill(base::byte_span image, std::span<std::string const> names);
    [[nodiscard]] result<void> load(base::byte_span image);
    [[nodiscard]] result<void> resolve(std::string const& name);
    [[nodiscard]] result<std::vector<std::string>> all_names() const;

    std::shared_ptr<context const> context_;
    CUlibrary handle_ = nullptr;
    std::string log_;  // the JIT writes here; empty for cubins, which it does not touch
    std::vector<resolved> kernels_;
    std::shared_ptr<void const> keep_;  // of an adopted one
};

// What a kernel handle points at: everything a launch needs, side by side.
class function {
public:
    function(std::shared_ptr<library const> owner, library::resolved const& kernel) noexcept;

    [[nodiscard]] CUfunction get() const noexcept { return handle_; }
    [[nodiscard]] CUkernel kernel() const noexcept { return kernel_.kernel; }
    [[nodiscard]] library const& owner() const noexcept { return *owner_; }
    [[nodiscard]] context const& where() const noexcept { return owner_->where(); }
    [[nodiscard]] std::string const& name() const noexcept { return kernel_.name; }
    [[nodiscard]] kernel_resources const& resources() const noexcept { return kernel_.resources; }

    [[nodiscard]] result<void> launch(CUstream stream, launch_shape const& shape, void** arguments) const {
        CUresult const status =
            is_plain(shape) ? launch_plain(stream, shape, arguments) : launch_ex(stream, shape, arguments);
        if (status == CUDA_SUCCESS) [[likely]]
            return {};
        return recover(status, stream, shape, arguments);
    }

private:
    [[nodiscard]] static bool is_plain(launch_shape const& shape) {
        return shape.start == launch_start::after_previous && shape.kind == grid_kind::independent &&
               (shape.cluster.x | shape.cluster.y | shape.cluster.z) == 1 && shape.more == nullptr;
    }
    [[nodiscard]] CUresult launch_plain(CUstream stream, launch_shape const& shape, void** arguments) const {
        return launch_(handle_, shape.grid.x, shape.grid.y, shape.grid.z, shape.block.x, shape.block.y, shape.block.z,
                       shape.shared_bytes, stream, arguments, nullptr);
    }
    // With what cannot be said in a plain one.
    [[nodiscard]] CUresult launch_ex(CUstream stream, launch_shape const& shape, void** arguments) const;
    // What to change about a launch that was refused; empty where nothing is known.
    [[nodiscard]] std::string advice(CUresult status, launch_shape const& shape) const;
    // A thread without a context, or with another device's, gets one retry; everything else becomes an error.
    [[nodiscard]] result<void> recover(CUresult status, CUstream stream, launch_shape const& shape,
                                       void** arguments) const;

    PFN_cuLaunchKernel_v4000 launch_;
    CUfunction handle_;
    std::shared_ptr<library const> owner_;
    library::resolved const& kernel_;  // inside *owner_, which never changes after make()
};

}  // namespace kiln::cuda
