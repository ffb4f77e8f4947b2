// hoplite._core: the C++ client, as plainly as Python can call it. What users see is the Python around it.
#include <nanobind/operators.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include "draft.h"
#include "session.h"
#include "stored.h"

namespace hoplite::python {
namespace {

void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Failure& failure) {
    const nb::object exception = exception_of(failure.error);
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
  }
}

void bind_object_id(nb::module_& module) {
  nb::class_<ObjectId>(module, "ObjectId")
      .def_static("named", [](const std::string& name) { return ObjectId::named(name); })
      .def_static("parse", [](const std::string& text) { return ObjectId::parse(text); })
      .def_prop_ro("is_named", &ObjectId::is_named)
      .def("__str__", &ObjectId::to_string)
      .def("__hash__", [](const ObjectId& id) { return std::hash<ObjectId>()(id); })
      .def("__eq__", [](const ObjectId& id, nb::handle other) {
        return nb::isinstance<ObjectId>(other) && id == nb::cast<ObjectId>(other);
      });
}

}  // namespace

NB_MODULE(_core, module) {
  nb::register_exception_translator(translate);
  bind_object_id(module);
  bind_stored(module);
  bind_draft(module);
  bind_session(module);
}

}  // namespace hoplite::python
