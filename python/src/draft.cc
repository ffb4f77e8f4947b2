#include "draft.h"

#include <nanobind/stl/optional.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

namespace hoplite::python {
namespace {

constexpr std::size_t kPage = 4096;

int get_buffer(PyObject* self, Py_buffer* buffer, int flags) {
  const Draft* draft = nb::inst_ptr<Draft>(self);
  static char nothing = 0;
  void* data = draft->size() == 0 ? static_cast<void*>(&nothing) : draft->data();
  return PyBuffer_FillInfo(buffer, self, data, static_cast<Py_ssize_t>(draft->size()), draft->writable() ? 0 : 1,
                           flags);
}

PyType_Slot slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)}, {0, nullptr}};

}  // namespace

Draft::Draft(ObjectWriter writer) : writer_(std::move(writer)), id_(writer_->id()) {
  const auto window = writer_->buffer();
  size_ = window.size();
  if (size_ == 0) return;
  // An old size of 0 makes a second mapping of shared pages.
  void* again = ::mremap(window.data(), 0, mapped_bytes(), MREMAP_MAYMOVE);
  if (again == MAP_FAILED)
    throw Failure{{Code::kUnavailable,
                   std::string("the system refuses another mapping of shared memory: ") + std::strerror(errno)}};
  memory_ = static_cast<std::byte*>(again);
#ifdef MADV_POPULATE_WRITE
  ::madvise(memory_, mapped_bytes(), MADV_POPULATE_WRITE);  // a fault for many pages costs less than one for each
#endif
}

// In a forked child what needs the client's lock is left alone.
Draft::~Draft() {
  if (memory_ != nullptr) ::munmap(memory_, mapped_bytes());
  if (generation_ == fork_generation()) return;
  new View(std::move(view_));
  if (writer_) new ObjectWriter(*std::move(writer_));
}

std::size_t Draft::mapped_bytes() const { return (size_ + kPage - 1) / kPage * kPage; }

void Draft::protect() {
  writable_ = false;
  if (memory_ != nullptr) ::mprotect(memory_, mapped_bytes(), PROT_READ);
}

// The pages are not ours any more.
void Draft::forget() {
  if (memory_ != nullptr)
    ::mmap(memory_, mapped_bytes(), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
}

void Draft::seal(Session& session, Timeout timeout) {
  if (!writer_)
    throw Failure{{Code::kInvalidArgument, "object " + id_.to_string() + " was sealed or given up already"}};
  protect();
  ObjectWriter writer = *std::exchange(writer_, std::nullopt);
  try {
    // Nobody can have deleted what is not committed; who deletes it between the two leaves zeros here.
    wait_for_value(writer.seal_async(timeout));
    view_ = session.call([&](Client& client) { return client.get_async(id_, {.timeout = timeout}); });
  } catch (...) {
    forget();
    throw;
  }
}

void Draft::abort() {
  if (!writer_) return;
  protect();
  forget();
  writer_.reset();
}

nb::object create(Session& session, std::size_t size, const PutOptions& options) {
  ObjectWriter writer = session.call([&](Client& client) { return client.create_async(size, options); });
  return nb::cast(new Draft(std::move(writer)), nb::rv_policy::take_ownership);
}

void bind_draft(nb::module_& module) {
  nb::class_<Draft>(module, "Draft", nb::type_slots(slots))
      .def_prop_ro("id", &Draft::id)
      .def_prop_ro("writable", &Draft::writable)
      .def(
          "seal",
          [](Draft& self, Session& session, std::optional<double> timeout) { self.seal(session, to_timeout(timeout)); },
          nb::arg("session"), nb::arg("timeout").none())
      .def("abort", &Draft::abort);
}

}  // namespace hoplite::python
