// Puts, gets, waits and deletes.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "draft.h"
#include "session.h"
#include "stored.h"

namespace hoplite::python {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kSmall = 64 << 10;     // travels in the request, as far as the daemon takes it
constexpr std::size_t kStepBytes = 8 << 20;  // readers elsewhere can follow a put at this grain, and Ctrl-C ends it

// The memory of a Python object, for as long as this lives. With the GIL.
class Borrowed {
 public:
  explicit Borrowed(nb::handle object) {
    if (PyObject_GetBuffer(object.ptr(), &buffer_, PyBUF_SIMPLE) != 0) throw nb::python_error();
  }
  Borrowed(Borrowed&& other) noexcept : buffer_(std::exchange(other.buffer_, {})) {}
  Borrowed& operator=(Borrowed&&) = delete;
  ~Borrowed() {
    if (buffer_.obj != nullptr) PyBuffer_Release(&buffer_);
  }
  std::span<const std::byte> bytes() const {
    return {static_cast<const std::byte*>(buffer_.buf), static_cast<std::size_t>(buffer_.len)};
  }

 private:
  Py_buffer buffer_{};
};

struct Part {
  std::size_t offset;
  Borrowed memory;
};

DType dtype_named(const std::string& name) {
  if (const auto type = parse_dtype(name)) return *type;
  throw Failure{{Code::kInvalidArgument, "there is no element type \"" + name + "\""}};
}

Priority priority_named(const std::string& name) {
  if (const auto priority = parse_priority(name)) return *priority;
  throw Failure{{Code::kInvalidArgument, "the priority is \"low\", \"normal\" or \"high\", not \"" + name + "\""}};
}

PutOptions put_options(const std::optional<ObjectId>& id, std::string metadata, const std::string& dtype,
                       std::vector<std::uint64_t> shape, std::optional<double> timeout, const std::string& priority) {
  return {.id = id.value_or(ObjectId{}),
          .metadata = std::move(metadata),
          .array = {dtype_named(dtype), std::move(shape)},
          .timeout = to_timeout(timeout),
          .priority = priority_named(priority)};
}

GetOptions get_options(std::optional<double> timeout, bool wait_if_lost, const std::string& priority) {
  return {.timeout = to_timeout(timeout),
          .on_lost = wait_if_lost ? OnLost::kWait : OnLost::kFail,
          .priority = priority_named(priority)};
}

// Copies in steps without the GIL, and tells readers elsewhere how far it is. What lies between parts becomes zero.
void fill(ObjectWriter& writer, const std::vector<Part>& parts) {
  std::byte* const to = writer.buffer().data();
  std::size_t at = 0;
  const auto zero_until = [&](std::size_t end) {
    if (end > at) std::memset(to + at, 0, end - at);
    at = end;
  };
  for (const Part& part : parts) {
    zero_until(part.offset);
    const auto bytes = part.memory.bytes();
    for (std::size_t done = 0; done < bytes.size(); at = part.offset + done) {
      const std::size_t step = std::min(kStepBytes, bytes.size() - done);
      {
        const nb::gil_scoped_release release;
        std::memcpy(to + part.offset + done, bytes.data() + done, step);
        done += step;
        if (!writer.advance(part.offset + done)) return;  // the seal says why
      }
      if (step == kStepBytes && PyErr_CheckSignals() != 0) throw nb::python_error();
    }
  }
  zero_until(writer.buffer().size());
}

ObjectId put_large(Session& self, std::size_t size, const std::vector<Part>& parts, const PutOptions& options) {
  const auto begin = Clock::now();
  ObjectWriter writer = self.call([&](Client& client) { return client.create_async(size, options); });
  fill(writer, parts);
  Timeout left = options.timeout;
  if (left) left = std::max(*left - (Clock::now() - begin), std::chrono::nanoseconds(0));
  return wait_for_value(writer.seal_async(left));
}

ObjectId put_small(Session& self, std::span<const std::byte> bytes, const PutOptions& options) {
  return self.call([&](Client& client) { return client.put_async(bytes, options); });
}

ObjectId put(Session& self, nb::handle object, const std::optional<ObjectId>& id, std::string metadata,
             const std::string& dtype, std::vector<std::uint64_t> shape, std::optional<double> timeout,
             const std::string& priority) {
  const auto options = put_options(id, std::move(metadata), dtype, std::move(shape), timeout, priority);
  Borrowed memory(object);
  const auto bytes = memory.bytes();
  if (bytes.size() <= kSmall) return put_small(self, bytes, options);
  std::vector<Part> parts;
  parts.push_back({0, std::move(memory)});
  return put_large(self, bytes.size(), parts, options);
}

// Several buffers in one object: (offset, buffer), ascending.
ObjectId put_parts(Session& self, std::size_t size, nb::sequence pairs, const std::optional<ObjectId>& id,
                   std::string metadata, std::optional<double> timeout, const std::string& priority) {
  const auto options = put_options(id, std::move(metadata), "bytes", {}, timeout, priority);
  std::vector<Part> parts;
  std::size_t end = 0;
  for (nb::handle pair : pairs) {
    const auto offset = nb::cast<std::size_t>(pair[0]);
    parts.push_back({offset, Borrowed(pair[1])});
    if (offset < end || offset > size || parts.back().memory.bytes().size() > size - offset)
      throw Failure{{Code::kInvalidArgument, "the parts of the object overlap, or do not fit into it"}};
    end = offset + parts.back().memory.bytes().size();
  }
  if (size > kSmall) return put_large(self, size, parts, options);
  std::string whole(size, '\0');
  for (const Part& part : parts)
    std::copy_n(reinterpret_cast<const char*>(part.memory.bytes().data()), part.memory.bytes().size(),
                whole.begin() + static_cast<std::ptrdiff_t>(part.offset));
  return put_small(self, std::as_bytes(std::span(whole)), options);
}

nb::object to_stored(View view) { return nb::cast(new Stored(std::move(view)), nb::rv_policy::take_ownership); }

nb::object get(Session& self, const ObjectId& id, std::optional<double> timeout, bool wait_if_lost,
               const std::string& priority) {
  const auto options = get_options(timeout, wait_if_lost, priority);
  return to_stored(self.call([&](Client& client) { return client.get_async(id, options); }));
}

nb::list gather(Session& self, const std::vector<ObjectId>& ids, std::optional<double> timeout, bool wait_if_lost,
                const std::string& priority) {
  const auto options = get_options(timeout, wait_if_lost, priority);
  nb::list list;
  for (View& view : self.call([&](Client& client) { return client.gather_async(ids, options); }))
    list.append(to_stored(std::move(view)));
  return list;
}

// Copies without the GIL; `out` is writable and has the object's size.
void copy(const Stored& stored, nb::handle out) {
  Py_buffer buffer;
  if (PyObject_GetBuffer(out.ptr(), &buffer, PyBUF_WRITABLE) != 0) throw nb::python_error();
  const auto bytes = stored.view().bytes();
  const bool fits = static_cast<std::size_t>(buffer.len) == bytes.size();
  if (fits && !bytes.empty()) {
    const nb::gil_scoped_release release;
    std::memcpy(buffer.buf, bytes.data(), bytes.size());
  }
  PyBuffer_Release(&buffer);
  if (!fits) throw Failure{{Code::kInvalidArgument, "the memory to fill has another size than the object"}};
}

}  // namespace

void bind_objects(nb::class_<Session>& session) {
  session
      .def("put", put, nb::arg("data"), nb::arg("id").none(), nb::arg("metadata"), nb::arg("dtype"), nb::arg("shape"),
           nb::arg("timeout").none(), nb::arg("priority"))
      .def("put_parts", put_parts, nb::arg("size"), nb::arg("parts"), nb::arg("id").none(), nb::arg("metadata"),
           nb::arg("timeout").none(), nb::arg("priority"))
      .def(
          "create",
          [](Session& self, std::size_t size, const std::optional<ObjectId>& id, std::string metadata,
             const std::string& dtype, std::vector<std::uint64_t> shape, std::optional<double> timeout,
             const std::string& priority) {
            return create(self, size, put_options(id, std::move(metadata), dtype, std::move(shape), timeout, priority));
          },
          nb::arg("size"), nb::arg("id").none(), nb::arg("metadata"), nb::arg("dtype"), nb::arg("shape"),
          nb::arg("timeout").none(), nb::arg("priority"))
      .def("get", get, nb::arg("id"), nb::arg("timeout").none(), nb::arg("wait_if_lost"), nb::arg("priority"))
      .def("gather", gather, nb::arg("ids"), nb::arg("timeout").none(), nb::arg("wait_if_lost"), nb::arg("priority"))
      .def(
          "get_then",
          [](Session& self, const ObjectId& id, nb::object callback, std::optional<double> timeout, bool wait_if_lost,
             const std::string& priority) {
            const auto options = get_options(timeout, wait_if_lost, priority);
            return call_back(self.begin([&](Client& client) { return client.get_async(id, options); }),
                             std::move(callback), to_stored);
          },
          nb::arg("id"), nb::arg("callback"), nb::arg("timeout").none(), nb::arg("wait_if_lost"), nb::arg("priority"))
      .def(
          "wait",
          [](Session& self, const std::vector<ObjectId>& ids, std::size_t count, std::optional<double> timeout) {
            return self.call([&](Client& client) { return client.wait_async(ids, count, to_timeout(timeout)); });
          },
          nb::arg("ids"), nb::arg("count"), nb::arg("timeout").none())
      .def(
          "wait_then",
          [](Session& self, const std::vector<ObjectId>& ids, std::size_t count, nb::object callback,
             std::optional<double> timeout) {
            auto future =
                self.begin([&](Client& client) { return client.wait_or_gone_async(ids, count, to_timeout(timeout)); });
            // What is deleted or lost has ended, too: a get says why.
            return call_back(std::move(future), std::move(callback), [](const Waited& waited) {
              std::vector<ObjectId> ended = waited.ready;
              for (const GoneObject& gone : waited.gone) ended.push_back(gone.id);
              return nb::cast(ended);
            });
          },
          nb::arg("ids"), nb::arg("count"), nb::arg("callback"), nb::arg("timeout").none())
      .def(
          "remove",
          [](Session& self, const ObjectId& id, std::optional<double> timeout) {
            return self.call([&](Client& client) { return client.remove_async(id, to_timeout(timeout)); });
          },
          nb::arg("id"), nb::arg("timeout").none())
      .def(
          "prioritize",
          [](Session& self, const ObjectId& id, const std::string& priority) {
            const Priority named = priority_named(priority);
            return self.call([&](Client& client) { return client.prioritize_async(id, named); });
          },
          nb::arg("id"), nb::arg("priority"))
      .def_static("copy", copy, nb::arg("stored"), nb::arg("out"));
}

}  // namespace hoplite::python
