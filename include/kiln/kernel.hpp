// SPDX-License-Identifier: Apache-2.0
//
// A kernel that is loaded on one device and ready to launch. A handle is two words, cheap to copy, and keeps
// its library and context alive. Launching does nothing but cuLaunchKernel: no lookup, lock or allocation,
// so it works inside graph capture and from any number of threads at once. A thread that has no current
// context is given the kernel's own at its first launch. Handles never wait for the work they queue.
#pragma once

#include <kiln/device.hpp>
#include <kiln/result.hpp>

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

struct CUfunc_st;
struct CUkern_st;
struct CUlib_st;

namespace KILN_PUBLIC kiln {

namespace cuda {
class function;
class library;
}  // namespace cuda

struct dim {
    constexpr dim(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) noexcept : x{x_}, y{y_}, z{z_} {}
    unsigned x;
    unsigned y;
    unsigned z;
};

enum class launch_start : unsigned char {
    after_previous,
    // May begin while the kernel before it in the stream still runs: programmatic dependent launch. Only for kernels that
    // execute griddepcontrol.wait (cudaGridDependencySynchronize()) before they touch global memory, after a kernel of which
    // the same is true or that was launched after_previous. An ordinary launch before sm_90 and before driver 12.3.
    early,
};

enum class grid_kind : unsigned char {
    independent,
    // All blocks run at the same time, so that cooperative_groups::this_grid().sync() works. More than fit is an error that
    // says how many do.
    cooperative,
};

// What few launches need. Nothing is left out in silence: what the device or the driver does not have is an error.
struct launch_extras {
    std::optional<int> priority = {};         // as a stream's: lower numbers go first
    std::optional<int> shared_carveout = {};  // percent of a multiprocessor's cache to prefer as shared memory
    CUevent_st* all_begun = nullptr;          // recorded when every block has begun; made without timing
    // Any others: an array of CUlaunchAttribute, read before the launch returns; at most eight.
    void const* attributes = nullptr;
    unsigned attribute_count = 0;
};

struct launch_shape {
    dim grid;                   // blocks
    dim block;                  // threads
    unsigned shared_bytes = 0;  // dynamic; more than 48 KiB needs allow_shared() once
    launch_start start = launch_start::after_previous;
    dim cluster = 1;  // blocks that run together and reach each other's shared memory: sm_90 or newer
    grid_kind kind = grid_kind::independent;
    launch_extras const* more = nullptr;  // must live until the launch returns
};

struct kernel_resources {
    int registers = 0;            // per thread
    int static_shared_bytes = 0;  // per block
    int local_bytes = 0;          // per thread
    int max_threads = 0;          // per block, with these registers
};

template <class Signature>
class kernel;

// A kernel whose parameters are not known to the compiler. Prefer kernel<void(...)>.
class untyped_kernel {
public:
    explicit untyped_kernel(std::shared_ptr<cuda::function const> function) noexcept;

    // As in the image: mangled for templates.
    [[nodiscard]] std::string_view name() const noexcept;
    [[nodiscard]] int device() const noexcept;
    [[nodiscard]] kernel_resources const& resources() const noexcept;

    // Lets launches of this kernel use up to `bytes` of dynamic shared memory, through every handle to it.
    result<void> allow_shared(std::size_t bytes) const;
    // How many blocks of this many threads run at once on one multiprocessor.
    [[nodiscard]] result<int> blocks_per_multiprocessor(unsigned threads, std::size_t shared_bytes = 0) const;

    // The driver's own handles, for graphs, profilers and whatever Kiln has no word for: a CUfunction, a CUkernel and a
    // CUlibrary, valid while a handle to this kernel lives. The last two are null where the kernel was adopted.
    [[nodiscard]] CUfunc_st* function() const noexcept;
    [[nodiscard]] CUkern_st* driver_kernel() const noexcept;
    [[nodiscard]] CUlib_st* driver_library() const noexcept;

    // Bytes of each parameter; nullopt where the driver does not tell (before 12.4).
    [[nodiscard]] result<std::optional<std::vector<std::size_t>>> parameters() const;

    // `arguments` points at one pointer per parameter; the values are copied before this returns.
    result<void> launch(stream_ref on, launch_shape const& shape, void** arguments) const;

    // Same kernel with a signature: kernel.typed<void(float*, int)>(). Number and sizes of the parameters are
    // checked where the driver can tell them (12.4 or newer): errc::invalid_argument.
    template <class Signature>
    [[nodiscard]] result<kernel<Signature>> typed() const;

private:
    [[nodiscard]] result<void> check_parameters(std::span<std::size_t const> sizes) const;

    std::shared_ptr<cuda::function const> function_;
};

template <class... Args>
class kernel<void(Args...)> : public untyped_kernel {
    static_assert((!std::is_reference_v<Args> && ...),
                  "kiln::kernel: a kernel parameter cannot be a reference; pass a pointer or a value");
    static_assert(
        (std::is_trivially_copyable_v<Args> && ...),
        "kiln::kernel: every kernel parameter must be trivially copyable, because its bytes are copied to the GPU");

public:
    using signature = void(Args...);

    // Trusts the caller about the signature; untyped_kernel::typed() checks it.
    explicit kernel(untyped_kernel trusted) noexcept : untyped_kernel{std::move(trusted)} {}

    // Queued on `on`, which must be of this kernel's device; returns before the kernel has run.
    result<void> operator()(stream_ref on, launch_shape const& shape, Args... args) const {
        void* pointers[sizeof...(Args) + 1] = {
            const_cast<void*>(static_cast<void const volatile*>(std::addressof(args)))..., nullptr};
        return launch(on, shape, pointers);
    }
};

template <class Signature>
struct parameter_sizes;
template <class... Args>
struct parameter_sizes<void(Args...)> {
    static constexpr std::array<std::size_t, sizeof...(Args)> value{sizeof(Args)...};
};

template <class Signature>
result<kernel<Signature>> untyped_kernel::typed() const {
    if (auto checked = check_parameters(parameter_sizes<Signature>::value); !checked) return std::move(checked).error();
    return kernel<Signature>{*this};
}

// A __device__, __constant__ or __managed__ variable of something that is loaded, which it keeps loaded.
class device_variable {
public:
    device_variable(std::shared_ptr<cuda::library const> owner, void* address, std::size_t bytes) noexcept
        : owner_{std::move(owner)}, address_{address}, bytes_{bytes} {}

    [[nodiscard]] void* get() const noexcept { return address_; }
    template <class T>
    [[nodiscard]] T* as() const noexcept {
        return static_cast<T*>(address_);
    }
    [[nodiscard]] std::size_t size() const noexcept { return bytes_; }
    [[nodiscard]] int device() const noexcept;

    // From its first byte on, ordered on the stream; waits for it. More than there is: errc::invalid_argument.
    result<void> upload_sync(stream_ref on, std::span<std::byte const> from) const;
    result<void> download_sync(stream_ref on, std::span<std::byte> to) const;
    // One value of the variable's own size.
    template <class T>
    result<void> write_sync(stream_ref on, T const& value) const {
        static_assert(std::is_trivially_copyable_v<T>);
        return upload_sync(on, std::as_bytes(std::span{&value, 1}));
    }
    template <class T>
    [[nodiscard]] result<T> read_sync(stream_ref on) const {
        static_assert(std::is_trivially_copyable_v<T>);
        T out{};
        if (auto read = download_sync(on, std::as_writable_bytes(std::span{&out, 1})); !read)
            return std::move(read).error();
        return out;
    }

private:
    std::shared_ptr<cuda::library const> owner_;
    void* address_ = nullptr;
    std::size_t bytes_ = 0;
};

// A kernel somebody else loaded, by its CUfunction, of this device's primary context; `keep` is let go with the last handle.
[[nodiscard]] result<untyped_kernel> adopt_kernel(CUfunc_st* function, int device = 0,
                                                  std::shared_ptr<void const> keep = {});

// Loads one kernel of a cubin, a fatbin or a PTX text onto a device, code and all, so that the first launch does not
// stall. The image is copied. `name` is as in the image: mangled for C++ kernels without extern "C".
[[nodiscard]] result<untyped_kernel> load_kernel(std::span<std::byte const> image, std::string const& name,
                                                 int device = 0);

}  // namespace kiln
