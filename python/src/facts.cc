// What a daemon says of itself, of its cluster, its objects and its reduces, as dictionaries.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include "session.h"

namespace hoplite::python {
namespace {

template <typename Duration>
double seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

nb::dict to_dict(const StoreStatus& status) {
  nb::dict facts;
  facts["node"] = status.node;
  facts["address"] = status.address;
  facts["software"] = status.software;
  facts["pid"] = status.pid;
  facts["uptime"] = seconds(status.uptime);
  facts["capacity_bytes"] = status.capacity_bytes;
  facts["used_bytes"] = status.used_bytes;
  facts["pinned_bytes"] = status.pinned_bytes;
  facts["objects"] = status.objects;
  facts["growing"] = status.growing;
  facts["clients"] = status.clients;
  facts["members"] = status.members;
  facts["joining"] = status.joining;
  facts["waiting"] = status.waiting;
  facts["bytes_in"] = status.bytes_in;
  facts["bytes_out"] = status.bytes_out;
  return facts;
}

nb::dict to_dict(const NodeStatus& status) {
  nb::dict facts;
  facts["node"] = status.node;
  facts["address"] = status.address;
  facts["alive"] = status.alive;
  facts["self"] = status.self;
  facts["rate"] = status.rate;
  facts["rtt"] = seconds(status.rtt);
  return facts;
}

nb::dict to_dict(const ObjectStatus& status) {
  nb::dict facts;
  facts["id"] = status.id;
  facts["size"] = status.size;
  facts["bytes"] = status.bytes;
  facts["state"] = to_string(status.state);
  facts["primary"] = status.primary;
  facts["views"] = status.views;
  facts["receivers"] = status.receivers;
  facts["parent"] = status.parent;
  facts["home"] = status.home;
  facts["metadata"] = nb::bytes(status.metadata.data(), status.metadata.size());
  facts["dtype"] = to_string(status.array.type);
  facts["shape"] = status.array.shape;
  return facts;
}

nb::dict to_dict(const ReduceStatus::Source& source) {
  nb::dict facts;
  facts["id"] = source.id;
  facts["state"] = to_string(source.state);
  facts["node"] = source.node;
  facts["order"] = source.order;
  return facts;
}

nb::dict to_dict(const ReduceStatus::Slot& slot) {
  nb::dict facts;
  facts["node"] = slot.node;
  facts["slice"] = slot.slice;
  facts["parent"] = slot.parent;
  facts["sources"] = slot.sources;
  facts["done"] = slot.done;
  return facts;
}

template <typename Range>
nb::list to_list(const Range& range) {
  nb::list list;
  for (const auto& item : range) list.append(to_dict(item));
  return list;
}

nb::dict to_dict(const ReduceStatus& status) {
  nb::dict facts;
  facts["id"] = status.target;
  facts["op"] = to_string(status.op);
  facts["dtype"] = to_string(status.type);
  facts["phase"] = to_string(status.phase);
  facts["error"] = status.error ? exception_of(*status.error) : nb::none();
  facts["coordinator"] = status.coordinator;
  facts["count"] = status.count;
  facts["awaited"] = status.awaited();
  facts["attempts"] = status.attempts;
  facts["size"] = status.size;
  facts["bytes"] = status.bytes;
  facts["sources"] = to_list(status.sources);
  facts["slots"] = to_list(status.slots);
  return facts;
}

}  // namespace

void bind_facts(nb::class_<Session>& session) {
  session
      .def("status",
           [](Session& self) { return to_dict(self.call([&](Client& client) { return client.status_async(); })); })
      .def("objects",
           [](Session& self) { return to_list(self.call([&](Client& client) { return client.objects_async(); })); })
      .def("nodes",
           [](Session& self) { return to_list(self.call([&](Client& client) { return client.nodes_async(); })); })
      .def(
          "reduce_status",
          [](Session& self, const ObjectId& target) {
            return to_dict(self.call([&](Client& client) { return client.reduce_status_async(target); }));
          },
          nb::arg("target"));
}

}  // namespace hoplite::python
