// SPDX-License-Identifier: Apache-2.0
#include "arrays.hpp"

#include "device_array.hpp"
#include "streams.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <limits>
#include <mutex>
#include <unordered_map>

namespace kiln::python {

namespace {

enum class way : std::uint8_t { own, exchange, torch, cupy, cuda_interface, dlpack, buffer, masked, none };
struct known_type {
    way how = way::none;
    dlpack::exchange_api const* api = nullptr;
    bool is_of_jax = false;
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

// Of torch before it had the exchange functions, and of classes made from its tensors.
bool is_of_torch(nb::handle object) {
    nb::handle const type{reinterpret_cast<PyObject*>(Py_TYPE(object.ptr()))};
    for (nb::handle const base : type.attr("__mro__"))
        if (nb::cast<std::string>(nb::str(base.attr("__module__"))) == "torch" && nb::cast<std::string>(nb::str(base.attr("__name__"))) == "Tensor") return true;
    return false;
}

// Before its version 3 the interface had no word for the stream that the array's library works on.
bool tells_its_stream(nb::handle object) {
    nb::object const about = object.attr("__cuda_array_interface__");
    if (!nb::isinstance<nb::dict>(about)) return true;  // which is told when it is read
    nb::object const version = about.attr("get")("version", 0);
    return PyLong_Check(version.ptr()) && nb::cast<std::int64_t>(version) >= 3;
}

known_type learn(nb::handle object) {
    auto* const type = Py_TYPE(object.ptr());
    if (nb::isinstance<device_array>(object)) return {way::own};
    if (auto const* const api = exchange_of(type)) return {way::exchange, api};
    if (is_of_torch(object)) return {way::torch};
    if (nb::hasattr(object, "__cuda_array_interface__")) {
        if (is_of_cupy(object)) return {way::cupy};
        return {nb::hasattr(object, "__dlpack__") && !tells_its_stream(object) ? way::dlpack : way::cuda_interface};
    }
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
    auto how = learn(object);
    if (how.how == way::none) return how;
    // JAX's arrays answer __cuda_array_interface__ without a stream, and those of the host, which are of the same type, as buffers: DLPack
    // takes both, and orders the work.
    if (is_of_jax(object)) how = {.how = way::dlpack, .is_of_jax = true};
    Py_INCREF(reinterpret_cast<PyObject*>(type));  // kept for good: the table goes by its address
    std::lock_guard const lock{mutex};
    return known.emplace(type, how).first->second;
}

}  // namespace

std::string shape_text(array const& a) {
    std::string out = "[";
    for (int i = 0; i < a.dimensions(); ++i) out += (i == 0 ? "" : ", ") + std::to_string(a.extent(i));
    return out + "]";
}

// Through the other constructor, so that what was taken is given back if reading it throws.
array::array(nb::handle object, char const* argument) : array{argument, object} {
    auto const known = way_of(object);
    try {
        if (known.how == way::own) take_own();
        if (known.how == way::exchange) take_exchange(*known.api);
        if (known.how == way::cupy) take_cupy();
        if (known.how == way::cuda_interface) take_cuda_interface();
        if (known.how == way::torch) take_torch();
        if (known.how == way::dlpack) take_dlpack(legacy_default_stream);
        if (known.is_of_jax) read_only_ = true;  // which DLPack has no word for before its version 1
        if (known.how == way::buffer) take_buffer();
        if (known.how == way::masked)
            throw error{errc::invalid_argument, std::string{argument} + " is a masked array, and its mask would be lost: pass x.filled(value) or x.compressed()"};
    } catch (std::bad_cast const&) {
        auto const* const asked = known.how == way::dlpack || known.how == way::torch ? "__dlpack_device__()" : "__cuda_array_interface__";
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
      library_{other.library_},
      lent_{std::move(other.lent_)},
      buffer_{std::exchange(other.buffer_, Py_buffer{})} {}

void array::release() noexcept {
    if (buffer_.obj != nullptr) PyBuffer_Release(&buffer_);
}

template <class Managed>
void array::keep(Managed* lent) {
    auto* const made = PyCapsule_New(lent, nullptr, [](PyObject* capsule) {
        auto* const back = static_cast<Managed*>(PyCapsule_GetPointer(capsule, nullptr));
        if (back->deleter != nullptr) back->deleter(back);
    });
    if (made == nullptr) throw nb::python_error();
    lent_ = nb::steal(made);
}

nb::object array::keeper() const {
    if (lent_.is_valid()) return nb::make_tuple(object_, lent_);
    if (buffer_.obj == nullptr) return nb::borrow(object_);
    // Somebody may make the object longer once nobody looks into it.
    auto* const view = PyMemoryView_FromObject(object_.ptr());
    if (view == nullptr) throw nb::python_error();
    return nb::steal(view);
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

// errc::invalid_argument where there is none, or items are not where such items must be, or further apart than any memory is.
void array::want_memory() const {
    constexpr auto most_apart = std::numeric_limits<std::int64_t>::max() / 1024;  // whatever bytes an item has, and dimensions there are
    for (int i = 0; i < dimensions_; ++i)
        if (items() != 0 && extent(i) > 1 && (stride(i) > most_apart / (extent(i) - 1) || stride(i) < -most_apart / (extent(i) - 1)))
            throw error{errc::invalid_argument, std::string{argument_} + " says that its items are " + std::to_string(stride(i)) + " apart in dimension " +
                                                    std::to_string(i) + ", which no memory is as large as"};
    if (data_ == nullptr && items() != 0)
        throw error{errc::invalid_argument, std::string{argument_} + " has " + std::to_string(items()) + " items and no memory"};
    // What is compiled reads items where items are; others crash it, now and then.
    auto const size = std::uintptr_t{type_.bits} / 8;
    if (items() != 0 && size > 1 && size <= 8 && reinterpret_cast<std::uintptr_t>(data_) % size != 0)
        throw error{errc::invalid_argument, std::string{argument_} + " has items of " + std::to_string(size) + " bytes that do not begin at a multiple of that: pass a copy"};
}

// One below zero would be taken for the host, which cannot read its memory.
void array::set_device(std::int64_t ordinal) {
    if (ordinal < 0 || ordinal > std::numeric_limits<int>::max())
        throw error{errc::invalid_argument, std::string{argument_} + " says that it is on device " + std::to_string(ordinal) + ", which there cannot be"};
    device_ = static_cast<int>(ordinal);
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
        case dlpack::cuda_managed: set_device(from.device.id); break;
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
    refuse_gradient();
    if (on_device()) api_ = &api;
}

// The exchange functions let it pass, and nobody would see the missing gradient.
void array::refuse_gradient() const {
    static nb::handle const requires_grad = nb::str("requires_grad").release();
    nb::object const wants = nb::steal(PyObject_GetAttr(object_.ptr(), requires_grad.ptr()));
    if (!wants.is_valid()) PyErr_Clear();
    else if (wants.ptr() == Py_True && nb::cast<bool>(nb::module_::import_("torch").attr("is_grad_enabled")()))
        throw error{errc::invalid_argument, std::string{argument_} + " requires a gradient, which this call does not carry: pass "
                                                                     "it detached, or use kiln.torch"};
}

void array::take_torch() {
    constexpr int not_ordered = -1;  // by torch: this call goes to its stream
    refuse_gradient();
    take_dlpack(not_ordered);
    if (on_device()) library_ = library::torch;
}

std::optional<CUstream_st*> array::stream() const {
    if (library_ == library::cupy) {
        static nb::handle const current = nb::object{nb::module_::import_("cupy").attr("cuda").attr("get_current_stream")}.release();
        static nb::handle const pointer = nb::str("ptr").release();
        auto* const stream = PyObject_CallNoArgs(current.ptr());
        if (stream == nullptr) throw nb::python_error();
        nb::object const held = nb::steal(stream);
        nb::object const at = nb::steal(PyObject_GetAttr(stream, pointer.ptr()));
        if (!at.is_valid()) throw nb::python_error();
        return static_cast<CUstream_st*>(PyLong_AsVoidPtr(at.ptr()));
    }
    if (library_ == library::torch) return stream_of(nb::module_::import_("torch").attr("cuda").attr("current_stream")(device_));
    if (api_ == nullptr) return stream_;
    void* current = nullptr;
    if (api_->current_stream(dlpack::cuda, device_, &current) != 0) throw nb::python_error();
    return static_cast<CUstream_st*>(current);
}

// What a library says by itself of arrays that it does not hand out, as Arrow's with nulls. What else it raises is no word about the array.
template <class Ask>
nb::object array::answer_to(char const* question, Ask ask) const {
    try {
        return ask();
    } catch (nb::python_error const& why) {
        for (auto* const refusal : {PyExc_TypeError, PyExc_ValueError, PyExc_BufferError, PyExc_NotImplementedError, PyExc_AttributeError})
            if (why.matches(refusal))
                throw error{errc::invalid_argument, std::string{argument_} + " cannot be taken by DLPack, its " + question + "() says: " +
                                                        nb::cast<std::string>(nb::str(why.value())) + "; pass an array without that, or NumPy's copy of it"};
        throw;
    }
}

// `stream`: what the producer orders its work before; -1: it does not.
void array::take_dlpack(int stream) {
    auto const device = nb::cast<std::pair<int, int>>(answer_to("__dlpack_device__", [&] { return object_.attr("__dlpack_device__")(); }));
    nb::object capsule;
    if (device.first == dlpack::cuda || device.first == dlpack::cuda_managed) {
        // The call goes there unless told otherwise.
        if (stream >= 0) stream_ = reinterpret_cast<CUstream_st*>(static_cast<std::uintptr_t>(stream));
        capsule = answer_to("__dlpack__", [&] { return object_.attr("__dlpack__")(nb::arg("stream") = stream); });
    } else {
        capsule = answer_to("__dlpack__", [&] { return object_.attr("__dlpack__")(); });
    }
    if (auto* const newer = PyCapsule_GetPointer(capsule.ptr(), "dltensor_versioned")) {
        PyCapsule_SetName(capsule.ptr(), "used_dltensor_versioned");
        auto* const lent = static_cast<dlpack::managed_versioned*>(newer);
        keep(lent);
        if (lent->version.major > 1)  // of which only the deleter is where it was
            throw error{errc::unsupported, std::string{argument_} + ": its __dlpack__() gave a tensor of DLPack " + std::to_string(lent->version.major) + ", and 1 is known"};
        read_only_ = (lent->flags & dlpack::flag_read_only) != 0;
        return take(lent->tensor);
    }
    PyErr_Clear();
    auto* const older = PyCapsule_GetPointer(capsule.ptr(), "dltensor");
    PyErr_Clear();
    if (older == nullptr)
        throw error{errc::invalid_argument, std::string{argument_} + ": its __dlpack__() gave no DLPack capsule, or one that was taken before"};
    PyCapsule_SetName(capsule.ptr(), "used_dltensor");
    auto* const lent = static_cast<dlpack::managed*>(older);
    keep(lent);
    take(lent->tensor);
}

namespace {

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
    auto const number = PyLong_AsLongLong(ordinal.of(memory).ptr());
    if (PyErr_Occurred() != nullptr) throw nb::python_error();
    set_device(number);
    want_memory();
    library_ = library::cupy;
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
        if (nb::hasattr(where, "id")) set_device(nb::cast<std::int64_t>(where.attr("id")));
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

}  // namespace kiln::python
