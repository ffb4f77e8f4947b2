#include "worker/collectives.h"

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "worker/pattern.h"

namespace hoplite::bench {
namespace {

const ArrayType kArray{.type = DType::kF32};

}  // namespace

Json Collectives::mint(std::istream&) { return Json().add("id", client_.new_id().to_string()); }

Json Collectives::put_array(std::istream& words) {
  const auto size = next<std::uint64_t>(words);
  const auto seed = next<std::uint64_t>(words);
  auto writer = value_of(client_.create(size, {.array = kArray, .timeout = kPatience}));
  fill_array(writer.buffer(), seed);
  return Json().add("id", value_of(writer.seal(kPatience)).to_string());
}

Json Collectives::stage(std::istream& words) {
  staged_.resize(next<std::size_t>(words));
  fill_array(staged_, next<std::uint64_t>(words));
  staged_id_ = client_.new_id();
  return Json().add("id", staged_id_.to_string());
}

Json Collectives::put_staged(std::istream& words) {
  sleep_until(next<std::int64_t>(words));
  const std::int64_t start_ns = now_ns();
  value_of(client_.put(staged_, {.id = staged_id_, .array = kArray, .timeout = kPatience}));
  Json answer;
  return add_times(answer, start_ns, now_ns());
}

Json Collectives::reduce(std::istream& words) {
  const ObjectId target = next_id(words);
  const auto at_ns = next<std::int64_t>(words);
  const auto count = next<std::size_t>(words);
  const std::vector<ObjectId> sources = next_ids(words);
  sleep_until(at_ns);
  const std::int64_t start_ns = now_ns();
  value_of(client_.reduce(sources, {.target = target, .type = DType::kF32, .count = count, .timeout = kPatience}));
  return get_target(target, start_ns);
}

Json Collectives::allreduce(std::istream& words) {
  const ObjectId target = next_id(words);
  const auto at_ns = next<std::int64_t>(words);
  const std::vector<ObjectId> sources = next_ids(words);
  sleep_until(at_ns);
  const std::int64_t start_ns = now_ns();
  value_of(client_.allreduce(sources, {.target = target, .type = DType::kF32, .timeout = kPatience}));
  return get_target(target, start_ns);
}

Json Collectives::get_target(ObjectId target, std::int64_t start_ns) {
  views_ = {value_of(client_.get(target, {.timeout = kPatience}))};
  Json answer;
  return add_times(answer, start_ns, now_ns());
}

Json Collectives::reduce_status(std::istream& words) {
  const ReduceStatus status = value_of(client_.reduce_status(next_id(words)));
  std::vector<Json> sources;
  for (const ReduceStatus::Source& source : status.sources)
    sources.push_back(Json().add("id", source.id.to_string()).add("state", std::string(to_string(source.state))));
  std::vector<Json> slots;
  for (const ReduceStatus::Slot& slot : status.slots) {
    Json described = Json().add("node", slot.node).add("slice", std::uint64_t{slot.slice});
    if (slot.parent) described.add("parent", std::uint64_t{*slot.parent});
    slots.push_back(described);
  }
  return Json()
      .add("phase", std::string(to_string(status.phase)))
      .add("attempts", std::uint64_t{status.attempts})
      .add("sources", sources)
      .add("slots", slots);
}

Json Collectives::gather(std::istream& words) {
  const auto at_ns = next<std::int64_t>(words);
  const std::vector<ObjectId> ids = next_ids(words);
  sleep_until(at_ns);
  const std::int64_t start_ns = now_ns();
  views_ = value_of(client_.gather(ids, {.timeout = kPatience}));
  Json answer;
  return add_times(answer, start_ns, now_ns());
}

Json Collectives::check_sum(std::istream& words) {
  const auto size = next<std::size_t>(words);
  const std::vector<std::uint64_t> seeds = next_seeds(words);
  if (views_.size() != 1) throw std::runtime_error("there is no result to check");
  bench::check_sum(views_.front().bytes(), size, seeds);
  return {};
}

}  // namespace hoplite::bench
