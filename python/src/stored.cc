#include "stored.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

namespace hoplite::python {
namespace {

int get_buffer(PyObject* self, Py_buffer* buffer, int flags) {
  const Stored* stored = nb::inst_ptr<Stored>(self);
  const auto bytes = stored->view().bytes();
  static const char nothing = 0;
  const void* data = bytes.empty() ? static_cast<const void*>(&nothing) : bytes.data();
  return PyBuffer_FillInfo(buffer, self, const_cast<void*>(data), static_cast<Py_ssize_t>(bytes.size()), 1, flags);
}

PyType_Slot slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)}, {0, nullptr}};

nb::tuple shape_of(const Stored& stored) {
  const auto& shape = stored.view().array().shape;
  nb::object tuple = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(shape.size())));
  for (std::size_t i = 0; i < shape.size(); ++i)
    PyTuple_SET_ITEM(tuple.ptr(), static_cast<Py_ssize_t>(i), PyLong_FromUnsignedLongLong(shape[i]));
  return nb::borrow<nb::tuple>(tuple);
}

// The memory of any buffer for libraries that take DLPack, torch above all, as a flat array of bytes.
nb::ndarray<std::uint8_t, nb::ndim<1>> as_dlpack(nb::object buffer) {
  auto* borrowed = new Py_buffer;
  if (PyObject_GetBuffer(buffer.ptr(), borrowed, PyBUF_SIMPLE) != 0) {
    delete borrowed;
    throw nb::python_error();
  }
  const nb::capsule owner(borrowed, [](void* data) noexcept {
    auto* ended = static_cast<Py_buffer*>(data);
    PyBuffer_Release(ended);
    delete ended;
  });
  const std::size_t shape[] = {static_cast<std::size_t>(borrowed->len)};
  return {borrowed->buf, 1, shape, owner};
}

}  // namespace

void bind_stored(nb::module_& module) {
  nb::class_<Stored>(module, "Stored", nb::type_slots(slots))
      .def_prop_ro("id", [](const Stored& stored) { return stored.view().id(); })
      .def_prop_ro("metadata", [](const Stored& stored) -> const std::string& { return stored.view().metadata(); })
      .def_prop_ro("dtype", [](const Stored& stored) { return to_string(stored.view().array().type); })
      .def_prop_ro("shape", shape_of)
      .def("__len__", [](const Stored& stored) { return stored.view().size(); });
  module.def("as_dlpack", as_dlpack, nb::arg("buffer"));
}

}  // namespace hoplite::python
