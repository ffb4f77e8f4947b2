// Reductions.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "session.h"

namespace hoplite::python {
namespace {

ReduceOptions reduce_options(const std::optional<ObjectId>& target, const std::string& op, const std::string& dtype,
                             std::optional<std::size_t> count, bool more, bool wait_if_lost,
                             std::optional<double> timeout, const std::string& priority) {
  ReduceOptions options;
  const auto parsed_op = parse_reduce_op(op);
  if (!parsed_op)
    throw Failure{{Code::kInvalidArgument,
                   "there is no reduction \"" + op + "\"; there are sum, product, min, max, mean and median"}};
  const auto type = parse_dtype(dtype);
  if (!type || *type == DType::kBytes)
    throw Failure{{Code::kInvalidArgument, "elements of type \"" + dtype + "\" cannot be reduced"}};
  const auto parsed_priority = parse_priority(priority);
  if (!parsed_priority)
    throw Failure{
        {Code::kInvalidArgument, "the priority is \"low\", \"normal\" or \"high\", not \"" + priority + "\""}};
  options.target = target.value_or(ObjectId{});
  options.op = *parsed_op;
  options.type = *type;
  options.count = count;
  options.more_sources_follow = more;
  options.on_lost = wait_if_lost ? OnLost::kWait : OnLost::kFail;
  options.timeout = to_timeout(timeout);
  options.priority = *parsed_priority;
  return options;
}

template <auto Start>
auto starting() {
  return [](Session& self, const std::vector<ObjectId>& sources, const std::optional<ObjectId>& target,
            const std::string& op, const std::string& dtype, std::optional<std::size_t> count, bool more,
            bool wait_if_lost, std::optional<double> timeout, const std::string& priority) {
    const auto options = reduce_options(target, op, dtype, count, more, wait_if_lost, timeout, priority);
    return self.call([&](Client& client) { return (client.*Start)(ObjectIds(sources), options); });
  };
}

template <auto Start>
void bind_start(nb::class_<Session>& session, const char* name) {
  session.def(name, starting<Start>(), nb::arg("sources"), nb::arg("target").none(), nb::arg("op"), nb::arg("dtype"),
              nb::arg("count").none(), nb::arg("more_sources_follow"), nb::arg("wait_if_lost"),
              nb::arg("timeout").none(), nb::arg("priority"));
}

}  // namespace

void bind_collectives(nb::class_<Session>& session) {
  bind_start<&Client::reduce_async>(session, "reduce");
  bind_start<&Client::allreduce_async>(session, "allreduce");
  bind_start<&Client::reduce_scatter_async>(session, "reduce_scatter");
  session.def(
      "add_sources",
      [](Session& self, const ObjectId& target, const std::vector<ObjectId>& sources) {
        self.call([&](Client& client) { return client.add_sources_async(target, sources); });
      },
      nb::arg("target"), nb::arg("sources"));
}

}  // namespace hoplite::python
