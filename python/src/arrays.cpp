// SPDX-License-Identifier: Apache-2.0
#include "arrays.hpp"

#include "device_array.hpp"
#include "gil.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <map>
#include <mutex>
#include <unordered_map>

namespace kiln::python {

namespace {

enum class way : std::uint8_t { own, exchange, cupy, cuda_interface, dlpack, buffer, masked, none };
struct known_type {
    way how = way::none;
    dlpack::exchange_api const* api = nullptr;
};

dlpack::exchange_api const* exchange_of(PyTypeObject* type) {
    auto const* const name = "__dlpack_c_exchange_api__";
    auto const held = nb::handle{reinterpret_cast<PyObject*>(type)};
    if (!nb::hasattr(held, name)) return nullptr;
    nb::object const given = held.attr(name);
    void const* address = nullptr;
    if (PyCapsule_CheckExact(given.ptr())) address = PyCapsule_GetPointer(given.ptr(), "dlpack_exchange_api");
    else if (PyLong_Check(given.ptr())) address = PyLong_AsVoidPtr(given.ptr());
    PyErr_Clear();
    auto const* api = static_cast<dlpack::exchange_api const*>(address);
    // A later major version may be another structure; it says where the older one is.
    while (api != nullptr && api->header.version.major > 1)
        api = reinterpret_cast<dlpack::exchange_api const*>(api->header.previous);
    return api != nullptr && api->to_tensor != nullptr && api->current_stream != nullptr ? api : nullptr;
}

// CuPy makes a dictionary for each question of __cuda_array_interface__; its attributes say the same in a third of the time.
bool is_of_cupy(nb::handle object) {
    nb::handle const type{reinterpret_cast<PyObject*>(Py_TYPE(object.ptr()))};
    if (!nb::cast<std::string>(nb::str(type.attr("__module__"))).starts_with("cupy")) return false;
    for (auto const* const name : {"data", "dtype", "shape", "_c_contiguous"})
        if (!nb::hasattr(object, name)) return false;
    return nb::hasattr(object.attr("data"), "ptr") && nb::hasattr(object.attr("data"), "device_id");
}

known_type learn(nb::handle object) {
    auto* const type = Py_TYPE(object.ptr());
    if (nb::isinstance<device_array>(object)) return {way::own};
    if (auto const* const api = exchange_of(type)) return {way::exchange, api};
    if (nb::hasattr(object, "__cuda_array_interface__")) return {is_of_cupy(object) ? way::cupy : way::cuda_interface};
    if (nb::hasattr(object, "mask") && nb::hasattr(object, "filled") && nb::hasattr(object, "compressed")) return {way::masked};  // NumPy's
    if (PyObject_CheckBuffer(object.ptr()) != 0) return {way::buffer};
    if (nb::hasattr(object, "__dlpack__")) return {way::dlpack};
    return {};
}

bool is_of_jax(nb::handle object) {
    nb::handle const type{reinterpret_cast<PyObject*>(Py_TYPE(object.ptr()))};
    auto const name = nb::cast<std::string>(nb::str(type.attr("__module__")));
    return name == "jax" || name == "jaxlib" || name.starts_with("jax.") || name.starts_with("jaxlib.");
}

known_type way_of(nb::handle object) {
    static std::mutex mutex;
    static std::unordered_map<PyTypeObject*, known_type> known;
    // Arrays of one call are mostly of one type.
    thread_local std::pair<PyTypeObject*, known_type> last{};
    auto* const type = Py_TYPE(object.ptr());
    if (last.first == type) return last.second;
    {
        std::lock_guard const lock{mutex};
        if (auto const at = known.find(type); at != known.end()) return (last = *at).second;
    }
    auto const found = learn(object);
    // JAX's arrays answer __cuda_array_interface__ without a stream: DLPack orders the work.
    auto const how = found.how == way::cuda_interface && is_of_jax(object) ? known_type{way::dlpack} : found;
    if (how.how == way::none) return how;
    Py_INCREF(reinterpret_cast<PyObject*>(type));  // kept for good: the table goes by its address
    std::lock_guard const lock{mutex};
    return known.emplace(type, how).first->second;
}

struct type_name {
    dlpack::data_type type;
    char const* name;
    std::optional<scalar> kind;
};
constexpr type_name names[] = {
    {{0, 8, 1}, "int8", scalar::i8},       {{1, 8, 1}, "uint8", scalar::u8},    {{0, 16, 1}, "int16", scalar::i16},
    {{1, 16, 1}, "uint16", scalar::u16},   {{0, 32, 1}, "int32", scalar::i32},  {{1, 32, 1}, "uint32", scalar::u32},
    {{0, 64, 1}, "int64", scalar::i64},    {{1, 64, 1}, "uint64", scalar::u64}, {{2, 16, 1}, "float16", scalar::f16},
    {{4, 16, 1}, "bfloat16", scalar::bf16}, {{2, 32, 1}, "float32", scalar::f32}, {{2, 64, 1}, "float64", scalar::f64},
    {{6, 8, 1}, "bool", scalar::u8},       {{5, 64, 1}, "complex64", {}},       {{5, 128, 1}, "complex128", {}},
};

// "<i4", "|u1", "=f8" and the letters of the buffer protocol.
dlpack::data_type parse_type(char kind, int bytes, char const* argument, char const* whole) {
    constexpr int most_bytes = 16;
    bool const is_size = bytes > 0 && bytes <= most_bytes && (bytes & (bytes - 1)) == 0;
    auto const bits = static_cast<std::uint8_t>(is_size ? bytes * 8 : 0);
    switch (is_size ? kind : '?') {
        case 'i': return {dlpack::signed_int, bits, 1};
        case 'u': return {dlpack::unsigned_int, bits, 1};
        case 'f': return {dlpack::floating, bits, 1};
        case 'b': return {dlpack::boolean, 8, 1};
        case 'c': return {dlpack::complex_number, bits, 1};
        default: break;
    }
    throw error{errc::unsupported, std::string{argument} + ": items of type '" + whole + "' are not known here"};
}

dlpack::data_type of_interface(std::string const& text, char const* argument) {
    if (text.size() < 3 || text[0] == '>')
        throw error{errc::unsupported, std::string{argument} + ": items of type '" + text + "' are in another byte order"};
    return parse_type(text[1], std::atoi(text.c_str() + 2), argument, text.c_str());
}

dlpack::data_type of_buffer(char const* format, std::size_t size, char const* argument) {
    if (format == nullptr) return {dlpack::unsigned_int, 8, 1};
    auto const* letter = format;
    if (*letter == '>' || *letter == '!')
        throw error{errc::unsupported, std::string{argument} + ": items of type '" + format + "' are in another byte order"};
    if (*letter == '@' || *letter == '=' || *letter == '<') ++letter;
    auto const bytes = static_cast<int>(size);
    if (letter[0] == 'Z') return parse_type('c', bytes, argument, format);
    if (letter[1] != '\0') return parse_type('?', bytes, argument, format);
    switch (*letter) {
        case 'b': case 'h': case 'i': case 'l': case 'q': case 'n': return parse_type('i', bytes, argument, format);
        case 'B': case 'H': case 'I': case 'L': case 'Q': case 'N': case 'c': return parse_type('u', bytes, argument, format);
        case 'e': case 'f': case 'd': return parse_type('f', bytes, argument, format);
        case '?': return parse_type('b', bytes, argument, format);
        default: return parse_type('x', bytes, argument, format);
    }
}

std::string shape_text(array const& a) {
    std::string out = "[";
    for (int i = 0; i < a.dimensions(); ++i) out += (i == 0 ? "" : ", ") + std::to_string(a.extent(i));
    return out + "]";
}

std::string strides_text(array const& a) {
    std::string out = "[";
    for (int i = 0; i < a.dimensions(); ++i) out += (i == 0 ? "" : ", ") + std::to_string(a.stride(i));
    return out + "]";
}

}  // namespace

std::string name_of(dlpack::data_type type) {
    for (auto const& row : names)
        if (row.type == type) return row.name;
    return "type " + std::to_string(type.code) + " of " + std::to_string(type.bits) + " bits";
}

scalar scalar_of(dlpack::data_type type, char const* argument) {
    for (auto const& row : names)
        if (row.type == type && row.kind) return *row.kind;
    throw error{errc::unsupported, std::string{argument} + " holds " + name_of(type) +
                                       "; integers of 8 to 64 bits, float16, bfloat16, float32, float64 and bool can be used"};
}

dlpack::data_type type_of(scalar kind) {
    for (auto const& row : names)
        if (row.kind == kind) return row.type;
    return {dlpack::unsigned_int, 8, 1};
}

// Through the other constructor, so that what was taken is given back if reading it throws.
array::array(nb::handle object, char const* argument) : array{argument, object} {
    auto const known = way_of(object);
    try {
        if (known.how == way::own) take_own();
        if (known.how == way::exchange) take_exchange(*known.api);
        if (known.how == way::cupy) take_cupy();
        if (known.how == way::cuda_interface) take_cuda_interface();
        if (known.how == way::dlpack) take_dlpack();
        if (known.how == way::buffer) take_buffer();
        if (known.how == way::masked)
            throw error{errc::invalid_argument, std::string{argument} + " is a masked array, and its mask would be lost: pass x.filled(value) or x.compressed()"};
    } catch (std::bad_cast const&) {
        auto const* const asked = known.how == way::dlpack ? "__dlpack_device__()" : "__cuda_array_interface__";
        throw nb::type_error((std::string{argument} + " says nothing that makes sense of itself by " + asked).c_str());
    }
    if (known.how != way::none) return;
    nb::object const type = nb::borrow(reinterpret_cast<PyObject*>(Py_TYPE(object.ptr())));
    auto const text = std::string{argument} + " is a " + nb::cast<std::string>(nb::str(type.attr("__name__"))) +
                      ", not an array: it has neither __dlpack__ nor __cuda_array_interface__ nor the buffer protocol";
    throw nb::type_error(text.c_str());
}

array::array(array&& other) noexcept
    : object_{other.object_},
      argument_{other.argument_},
      data_{other.data_},
      device_{other.device_},
      dimensions_{other.dimensions_},
      shape_{other.shape_},
      strides_{other.strides_},
      type_{other.type_},
      read_only_{other.read_only_},
      stream_{other.stream_},
      api_{other.api_},
      of_cupy_{other.of_cupy_},
      legacy_{std::exchange(other.legacy_, nullptr)},
      versioned_{std::exchange(other.versioned_, nullptr)},
      buffer_{std::exchange(other.buffer_, Py_buffer{})} {}

void array::release() noexcept {
    if (legacy_ != nullptr && legacy_->deleter != nullptr) legacy_->deleter(legacy_);
    if (versioned_ != nullptr && versioned_->deleter != nullptr) versioned_->deleter(versioned_);
    if (buffer_.obj != nullptr) PyBuffer_Release(&buffer_);
    legacy_ = nullptr;
    versioned_ = nullptr;
}

// Sets shape and strides, with one item after the other.
template <class Extent>
void array::set_shape(std::int64_t dimensions, Extent extent) {
    if (dimensions < 0 || dimensions > most_dimensions)
        throw error{errc::unsupported, std::string{argument_} + " has " + std::to_string(dimensions) + " dimensions; there can be " +
                                           std::to_string(most_dimensions)};
    constexpr auto most_items = std::numeric_limits<std::int64_t>::max() / 64;  // of any type
    dimensions_ = static_cast<int>(dimensions);
    std::int64_t next = 1;
    for (auto i = static_cast<std::size_t>(dimensions); i-- > 0;) {
        std::int64_t const n = extent(static_cast<Py_ssize_t>(i));
        if (n < 0 || (n > 0 && next > most_items / n))
            throw error{errc::invalid_argument, std::string{argument_} + " cannot have " + std::to_string(n) + " items in dimension " + std::to_string(i)};
        shape_[i] = n, strides_[i] = next;
        if (n > 0) next *= n;
    }
}

// By strides in bytes, which need not be multiples of an item: a field of records lies between the others.
template <class Bytes>
void array::set_strides(Bytes bytes) {
    auto const size = type_.bits / 8;
    for (std::size_t i = 0; i < static_cast<std::size_t>(dimensions_); ++i) {
        if (shape_[i] < 2) continue;  // no second item to be anywhere
        std::int64_t const apart = bytes(static_cast<Py_ssize_t>(i));
        if (apart % size != 0)
            throw error{errc::invalid_argument, std::string{argument_} + " has items of " + std::to_string(size) + " bytes that lie " + std::to_string(apart) +
                                                    " bytes apart: pass a copy in order"};
        strides_[i] = apart / size;
    }
}

// errc::invalid_argument where there is none, or items are not where such items must be.
void array::want_memory() const {
    if (data_ == nullptr && items() != 0)
        throw error{errc::invalid_argument, std::string{argument_} + " has " + std::to_string(items()) + " items and no memory"};
    // What is compiled reads items where items are; others crash it, now and then.
    auto const size = std::uintptr_t{type_.bits} / 8;
    if (items() != 0 && size > 1 && size <= 8 && reinterpret_cast<std::uintptr_t>(data_) % size != 0)
        throw error{errc::invalid_argument, std::string{argument_} + " has items of " + std::to_string(size) + " bytes that do not begin at a multiple of that: pass a copy"};
}

void array::take(dlpack::tensor const& from) {
    type_ = from.dtype;
    set_shape(from.ndim, [&](auto i) { return from.shape[i]; });
    if (from.strides != nullptr) std::copy_n(from.strides, from.ndim, strides_.begin());
    data_ = static_cast<char*>(from.data) + from.byte_offset;
    switch (from.device.type) {
        case dlpack::cpu:
        case dlpack::cuda_host: device_ = -1; break;
        case dlpack::cuda:
        case dlpack::cuda_managed: device_ = from.device.id; break;
        default:
            throw error{errc::unsupported, std::string{argument_} + " is on a device of another kind than the host and CUDA"};
    }
    want_memory();
}

void array::take_own() {
    auto const& from = nb::cast<device_array const&>(object_);
    type_ = from.type;
    read_only_ = from.read_only;
    set_shape(std::ssize(from.shape), [&](auto i) { return from.shape[static_cast<std::size_t>(i)]; });
    data_ = from.memory.data();
    if (!from.on_device()) return;
    device_ = from.memory.device();
    stream_ = default_stream.get();
}

void array::take_exchange(dlpack::exchange_api const& api) {
    dlpack::tensor t{};
    if (api.to_tensor(object_.ptr(), &t) != 0) throw nb::python_error();
    take(t);
    // The exchange functions let it pass, and nobody would see the missing gradient.
    static nb::handle const requires_grad = nb::str("requires_grad").release();
    nb::object const wants = nb::steal(PyObject_GetAttr(object_.ptr(), requires_grad.ptr()));
    if (!wants.is_valid()) PyErr_Clear();
    else if (wants.ptr() == Py_True && nb::cast<bool>(nb::module_::import_("torch").attr("is_grad_enabled")()))
        throw error{errc::invalid_argument, std::string{argument_} + " requires a gradient, which this call does not carry: pass "
                                                                     "it detached, or use kiln.torch"};
    if (on_device()) api_ = &api;
}

std::optional<CUstream_st*> array::stream() const {
    if (of_cupy_) {
        static nb::handle const current = nb::object{nb::module_::import_("cupy").attr("cuda").attr("get_current_stream")}.release();
        static nb::handle const pointer = nb::str("ptr").release();
        auto* const stream = PyObject_CallNoArgs(current.ptr());
        if (stream == nullptr) throw nb::python_error();
        nb::object const held = nb::steal(stream);
        nb::object const at = nb::steal(PyObject_GetAttr(stream, pointer.ptr()));
        if (!at.is_valid()) throw nb::python_error();
        return static_cast<CUstream_st*>(PyLong_AsVoidPtr(at.ptr()));
    }
    if (api_ == nullptr) return stream_;
    void* current = nullptr;
    if (api_->current_stream(dlpack::cuda, device_, &current) != 0) throw nb::python_error();
    return static_cast<CUstream_st*>(current);
}

void array::take_dlpack() {
    auto const device = nb::cast<std::pair<int, int>>(object_.attr("__dlpack_device__")());
    nb::object capsule;
    if (device.first == dlpack::cuda || device.first == dlpack::cuda_managed) {
        // The producer orders its work before the legacy default stream, which is where this call goes unless told otherwise.
        stream_ = reinterpret_cast<CUstream_st*>(1);
        capsule = object_.attr("__dlpack__")(nb::arg("stream") = 1);
    } else {
        capsule = object_.attr("__dlpack__")();
    }
    if (auto* const newer = PyCapsule_GetPointer(capsule.ptr(), "dltensor_versioned")) {
        PyCapsule_SetName(capsule.ptr(), "used_dltensor_versioned");
        versioned_ = static_cast<dlpack::managed_versioned*>(newer);
        if (versioned_->version.major > 1)  // of which only the deleter is where it was
            throw error{errc::unsupported, std::string{argument_} + ": its __dlpack__() gave a tensor of DLPack " + std::to_string(versioned_->version.major) + ", and 1 is known"};
        read_only_ = (versioned_->flags & dlpack::flag_read_only) != 0;
        return take(versioned_->tensor);
    }
    PyErr_Clear();
    auto* const older = PyCapsule_GetPointer(capsule.ptr(), "dltensor");
    PyErr_Clear();
    if (older == nullptr)
        throw error{errc::invalid_argument, std::string{argument_} + ": its __dlpack__() gave no DLPack capsule, or one that was taken before"};
    PyCapsule_SetName(capsule.ptr(), "used_dltensor");
    legacy_ = static_cast<dlpack::managed*>(older);
    take(legacy_->tensor);
}

namespace {

// The stream with this address. errc::invalid_argument for what is none.
CUstream_st* stream_at(nb::handle address, char const* argument) {
    auto* const at = PyLong_Check(address.ptr()) ? PyLong_AsVoidPtr(address.ptr()) : nullptr;
    bool const is_address = PyLong_Check(address.ptr()) && PyErr_Occurred() == nullptr;
    PyErr_Clear();
    if (!is_address) throw error{errc::invalid_argument, std::string{argument} + ": " + nb::cast<std::string>(nb::repr(address)) + " is no stream's address"};
    return static_cast<CUstream_st*>(at);
}

// An attribute by a name that is made once.
class attribute_name {
public:
    explicit attribute_name(char const* name) : name_{PyUnicode_InternFromString(name)} {}
    [[nodiscard]] nb::object of(nb::handle object) const {
        auto* const value = PyObject_GetAttr(object.ptr(), name_);
        if (value == nullptr) throw nb::python_error();
        return nb::steal(value);
    }

private:
    PyObject* name_;
};

// NumPy has one object for each plain type.
dlpack::data_type type_of_dtype(nb::handle dtype, char const* argument) {
    static std::mutex mutex;
    static auto& known = *new std::unordered_map<PyObject*, dlpack::data_type>;
    std::lock_guard const lock{mutex};
    if (auto const at = known.find(dtype.ptr()); at != known.end()) return at->second;
    auto const found = of_interface(nb::cast<std::string>(dtype.attr("str")), argument);
    if (known.size() < 256) known.emplace(dtype.inc_ref().ptr(), found);  // kept for good: the table goes by its address
    return found;
}

}  // namespace

void array::take_cupy() {
    static attribute_name const data{"data"}, pointer{"ptr"}, ordinal{"device_id"}, type{"dtype"}, extents{"shape"}, in_order{"_c_contiguous"};
    if (in_order.of(object_).ptr() != Py_True) {
        take_cuda_interface();  // which tells strides
        return;
    }
    auto const memory = data.of(object_);
    auto const at = pointer.of(memory);
    auto const shape = extents.of(object_);
    type_ = type_of_dtype(type.of(object_), argument_);
    set_shape(PyTuple_Size(shape.ptr()), [&](auto i) { return PyLong_AsLongLong(PyTuple_GetItem(shape.ptr(), i)); });
    data_ = PyLong_AsVoidPtr(at.ptr());
    device_ = static_cast<int>(PyLong_AsLong(ordinal.of(memory).ptr()));
    if (PyErr_Occurred() != nullptr) throw nb::python_error();
    want_memory();
    of_cupy_ = true;
}

void array::take_cuda_interface() {
    auto const about = nb::cast<nb::dict>(object_.attr("__cuda_array_interface__"));
    for (auto const* const word : {"shape", "data", "typestr"})
        if (!about.contains(word))
            throw error{errc::invalid_argument, std::string{argument_} + ": its __cuda_array_interface__ has no '" + word + "'"};
    if (about.contains("mask") && !nb::object{about["mask"]}.is_none())
        throw error{errc::unsupported, std::string{argument_} + " has a mask, which would be lost: pass what it leaves"};
    nb::object const shape = about["shape"];
    nb::object const data = about["data"];
    type_ = of_interface(nb::cast<std::string>(about["typestr"]), argument_);
    set_shape(static_cast<std::int64_t>(nb::len(shape)), [&](auto i) { return nb::cast<std::int64_t>(shape[i]); });
    nb::object const strides = about.contains("strides") ? nb::object{about["strides"]} : nb::none();
    if (!strides.is_none()) set_strides([&](auto i) { return nb::cast<std::int64_t>(strides[i]); });
    data_ = PyLong_AsVoidPtr(nb::object{data[0]}.ptr());
    if (data_ == nullptr && PyErr_Occurred() != nullptr) throw nb::python_error();
    read_only_ = nb::cast<bool>(data[1]);
    want_memory();
    device_ = 0;
    if (nb::hasattr(object_, "device")) {
        nb::object const where = object_.attr("device");
        if (nb::hasattr(where, "id")) device_ = nb::cast<int>(where.attr("id"));
    }
    if (about.contains("stream") && !nb::object{about["stream"]}.is_none())
        stream_ = stream_at(nb::object{about["stream"]}, argument_);
    // CuPy leaves it out where its current stream is the default one.
    else stream_ = reinterpret_cast<CUstream_st*>(1);
}

void array::take_buffer() {
    if (PyObject_GetBuffer(object_.ptr(), &buffer_, PyBUF_FULL_RO) != 0) {
        if (PyErr_ExceptionMatches(PyExc_ValueError) == 0) throw nb::python_error();
        PyErr_Clear();  // NumPy's, of dates: a buffer has no word for them
        throw error{errc::unsupported, std::string{argument_} + " has items that no buffer can describe, such as dates: convert them to numbers"};
    }
    type_ = of_buffer(buffer_.format, static_cast<std::size_t>(buffer_.itemsize), argument_);
    set_shape(buffer_.ndim, [&](auto i) { return buffer_.shape[i]; });
    set_strides([&](auto i) { return buffer_.strides[i]; });
    data_ = buffer_.buf;
    read_only_ = buffer_.readonly != 0;
    want_memory();
}

std::size_t array::items() const noexcept {
    std::size_t n = 1;
    for (int i = 0; i < dimensions_; ++i) n *= static_cast<std::size_t>(shape_[static_cast<std::size_t>(i)]);
    return n;
}

bool array::contiguous() const noexcept {
    std::int64_t next = 1;
    for (int i = dimensions_ - 1; i >= 0; --i) {
        if (extent(i) != 1 && stride(i) != next) return items() == 0;
        next *= extent(i);
    }
    return true;
}

std::string array::describe() const {
    return name_of(type_) + shape_text(*this) + (on_device() ? " on cuda:" + std::to_string(device_) : " on the host");
}

void want_contiguous(array const& a) {
    if (a.contiguous()) return;
    throw error{errc::invalid_argument, std::string{a.argument()} + " is not contiguous: shape " + shape_text(a) + ", strides " +
                                            strides_text(a) + "; pass " + a.argument() + ".contiguous(), or a copy in order"};
}

void want_writable(array const& a) {
    if (a.read_only()) throw error{errc::invalid_argument, std::string{a.argument()} + " cannot be written to: " + a.describe()};
}

std::span<std::byte> whole_of(array const& of) {
    if (of.items() == 0) return {};
    std::int64_t low = 0, high = 1;
    for (int i = 0; i < of.dimensions(); ++i) (of.stride(i) < 0 ? low : high) += (of.extent(i) - 1) * of.stride(i);
    auto const width = static_cast<std::int64_t>(of.type().bits / 8U * of.type().lanes);
    return {static_cast<std::byte*>(of.data()) + low * width, static_cast<std::size_t>((high - low) * width)};
}

namespace {

// How many bytes an array takes of each `apart` of them, where it goes on by multiples of that; nullopt where it takes more than there are.
std::optional<std::int64_t> taken_of_each(std::int64_t apart, array const& a) {
    auto const width = static_cast<std::int64_t>(a.type().bits / 8U * a.type().lanes);
    auto taken = width;
    for (int i = 0; i < a.dimensions(); ++i) {
        auto const step = std::abs(a.stride(i)) * width;
        if (a.extent(i) > 1 && step % apart != 0) taken += (a.extent(i) - 1) * step;
    }
    return taken <= apart ? std::optional{taken} : std::nullopt;
}

// Whether two arrays lie beside each other in every row of one that holds both, as halves of a matrix do.
bool are_columns_apart(array const& a, array const& b) {
    for (auto const* of : {&a, &b}) {
        for (int i = 0; i < of->dimensions(); ++i) {
            auto const apart = std::abs(of->stride(i)) * static_cast<std::int64_t>(of->type().bits / 8U * of->type().lanes);
            if (of->extent(i) < 2 || apart == 0) continue;
            auto const one = taken_of_each(apart, a), other = taken_of_each(apart, b);
            if (!one || !other) continue;
            auto const between = (whole_of(b).data() - whole_of(a).data()) % apart;
            auto const from_a = between < 0 ? between + apart : between;
            if (from_a >= *one && from_a + *other <= apart) return true;
        }
    }
    return false;
}

}  // namespace

void want_no_item_twice(array const& out) {
    std::vector<std::pair<std::int64_t, std::int64_t>> dimensions;  // step, extent
    for (int i = 0; i < out.dimensions(); ++i)
        if (out.extent(i) > 1) dimensions.emplace_back(std::abs(out.stride(i)), out.extent(i));
    std::ranges::sort(dimensions);
    std::int64_t taken = 1;
    for (auto const& [step, extent] : dimensions) {
        if (step < taken && out.items() != 0) throw error{errc::invalid_argument, std::string{out.argument()} + " overlaps itself: write to another array"};
        taken += (extent - 1) * step;
    }
}

void want_apart(array const& out, std::initializer_list<array const*> inputs, in_place same) {
    auto const to = whole_of(out);
    for (auto const* in : inputs) {
        if (in == nullptr) continue;
        if (same == in_place::allowed && in->data() == out.data()) continue;
        auto const from = whole_of(*in);
        if (from.data() < to.data() + to.size() && to.data() < from.data() + from.size() && !are_columns_apart(out, *in))
            throw error{errc::invalid_argument, std::string{out.argument()} + " and " + in->argument() + " overlap: " + out.describe() +
                                                    (same == in_place::allowed ? "; write to the same array or to another one" : "; write to another array")};
    }
}

namespace {

std::atomic<bool> gpu_used{false};
std::atomic<bool> forked_after_use{false};

// Objects of torch, CuPy and cuda.core say which device their stream is of.
void want_stream_of(nb::handle asked, int device) {
    if (PyLong_Check(asked.ptr()) || !nb::hasattr(asked, "device")) return;
    nb::object const where = asked.attr("device");
    for (auto const* const name : {"index", "device_id", "id"}) {
        if (!nb::hasattr(where, name)) continue;
        nb::object const ordinal = where.attr(name);
        if (PyLong_Check(ordinal.ptr()) && nb::cast<int>(ordinal) != device)
            throw error{errc::invalid_argument, "stream is of cuda:" + std::to_string(nb::cast<int>(ordinal)) + ", the arrays are on cuda:" +
                                                    std::to_string(device) + ": pass a stream of their device"};
        return;
    }
}

}  // namespace

void note_gpu_use() noexcept {
    if (gpu_used.exchange(true, std::memory_order_relaxed)) return;
    ::pthread_atfork(nullptr, nullptr, [] { forked_after_use.store(true, std::memory_order_relaxed); });
}

CUstream_st* stream_of(nb::handle asked) {
    if (PyLong_Check(asked.ptr())) return stream_at(asked, "stream");
    if (nb::hasattr(asked, "__cuda_stream__")) {
        nb::object const given = asked.attr("__cuda_stream__")();
        return stream_at(nb::object{given[1]}, "stream");
    }
    for (auto const* const name : {"cuda_stream", "ptr", "handle"}) {  // torch's, CuPy's, others'
        if (!nb::hasattr(asked, name)) continue;
        nb::object const value = asked.attr(name);
        if (PyLong_Check(value.ptr())) return stream_at(value, "stream");
    }
    throw nb::type_error("stream must be an int or an object with __cuda_stream__");
}

namespace {

// For callers whose arrays say nothing of a stream.
stream_ref own_stream(int device) {
    static std::mutex mutex;
    static auto& made = *new std::map<int, stream>;  // outlives the interpreter: the driver may be gone by then
    std::lock_guard const lock{mutex};
    auto at = made.find(device);
    if (at == made.end()) at = made.emplace(device, stream::make(device).value()).first;
    return at->second;
}

// null and 1 both mean the legacy default stream.
bool same_stream(CUstream_st* a, CUstream_st* b) {
    auto const plain = [](CUstream_st* s) { return s == nullptr ? reinterpret_cast<CUstream_st*>(1) : s; };
    return plain(a) == plain(b);
}

}  // namespace

void order(int device, stream_ref first, stream_ref then) {
    auto mark = device_event::make(device, event_timing::off).value();
    mark.record(first).value();
    mark.hold(then).value();
}

call_stream::call_stream(nb::handle asked, std::span<array const* const> arrays) {
    if (forked_after_use.load(std::memory_order_relaxed))
        throw error{errc::no_device, "this process was forked after its parent used the GPU, and cannot use it: start processes with 'spawn' or "
                                     "'forkserver', or fork before the first use"};
    array const* first = nullptr;
    for (auto const* a : arrays) {
        if (a == nullptr) continue;
        if (first == nullptr) first = a;
        if (a->device() != first->device())
            throw error{errc::invalid_argument, std::string{first->argument()} + " is " + first->describe() + ", " + a->argument() +
                                                    " is " + a->describe() + ": bring them to one place"};
    }
    if (first != nullptr) device_ = std::max(first->device(), 0);
    bool const named = asked.is_valid() && !asked.is_none();
    auto const own = first != nullptr && !named ? first->stream() : std::nullopt;
    if (named) want_stream_of(asked, device_), on_ = stream_of(asked);
    else if (own) on_ = *own;
    else on_ = own_stream(device_);
    for (auto const* a : arrays) {
        // The first one's stream is the call's; arrays of its library work on the same.
        if (a == nullptr || (own && (a == first || a->shares_stream_with(*first)))) continue;
        auto const theirs = a->stream();
        if (!theirs || same_stream(*theirs, on_.get())) continue;
        auto* const other = *theirs;
        if (std::ranges::find(others_, other) != others_.end()) continue;
        others_.push_back(other);
        order(device_, other, on_);
    }
}

void call_stream::done() {
    for (auto* const other : others_) order(device_, on_, other);
}

}  // namespace kiln::python
