// Combinations: slices that are filled from other copies of the same node, in no time.
#include <algorithm>
#include <cstring>

#include "kernels/kernels.h"
#include "sim/bulk.h"

namespace hoplite::sim {
namespace {

std::string name_of(const effect::Combine& order) {
  return "Combine into slice " + std::to_string(order.slice) + " of copy " + std::to_string(order.out);
}

std::string fault_of(const Bulk::Copy& copy, const effect::Combine::Input& input, std::uint64_t length) {
  if (!copy.sealed && !copy.has(input.slice)) return "a slice that it has not";
  const SliceRange range = copy.sealed ? copy.room() : copy.range(input.slice);
  if (input.begin < range.begin || input.begin + length > range.end) return "bytes that are not there";
  return {};
}

}  // namespace

// What the contract forbids about it; empty if nothing.
std::string Bulk::fault_of(NodeIndex node, const effect::Combine& order) const {
  const Plane& plane = planes_[node];
  const Copy& out = plane.copies.at(order.out);
  if (!out.has(order.slice)) return "a slice that it has not";
  const SliceRange range = out.range(order.slice);
  const std::uint64_t length = range.end - range.begin;
  if (out.sealed || out.final[order.slice]) return "it is sealed";
  if (out.watermarks[order.slice] != range.begin) return "it has bytes already";
  if (plane.combines.contains({order.out, order.slice})) return "it is being combined";
  for (const TransferIndex pull : out.pulls)
    if (transfers_[pull].request.slice == order.slice) return "a pull of that slice has not ended";
  if (!supports(order.op, order.type)) return "there is no such operator for the type";
  if (order.divide_by == 0 || (order.divide_by > 1 && !is_floating(order.type))) return "it cannot be divided";
  if (length % size_of(order.type) != 0) return "the last element is cut off";
  if (order.inputs.empty()) return "no inputs";
  for (const effect::Combine::Input& input : order.inputs) {
    if (input.copy == order.out) return "it is its own input";
    if (const std::string fault = sim::fault_of(plane.copies.at(input.copy), input, length); !fault.empty())
      return "input " + std::to_string(input.copy) + ": " + fault;
  }
  return {};
}

void Bulk::combine(NodeIndex node, const effect::Combine& order) {
  Copy* out = find_copy(node, order.out, "Combine");
  if (out == nullptr) return;
  for (const effect::Combine::Input& input : order.inputs)
    if (find_copy(node, input.copy, "Combine") == nullptr) return;
  if (const std::string fault = fault_of(node, order); !fault.empty())
    return sink_.contract_broken(node, name_of(order) + ": " + fault);
  Plane& plane = planes_[node];
  const CombineKey key{order.out, order.slice};
  plane.combines.emplace(key, Combine{order, out->range(order.slice)});
  for (const effect::Combine::Input& input : order.inputs) plane.copies.at(input.copy).readers.push_back(key);
  go_on(node, key);
}

// As far as all inputs are valid now.
void Bulk::go_on(NodeIndex node, CombineKey key) {
  Plane& plane = planes_[node];
  Combine& combine = plane.combines.at(key);
  Copy& out = plane.copies.at(key.out);
  if (combine.complete || out.closing) return;
  const std::uint64_t length = combine.range.end - combine.range.begin;
  std::uint64_t least = length;
  for (const effect::Combine::Input& input : combine.order.inputs) {
    const Copy& copy = plane.copies.at(input.copy);
    if (copy.sealed) continue;
    const std::uint64_t valid = copy.watermarks[input.slice];
    least = std::min(least, valid - std::min(valid, input.begin));
  }
  least -= least % size_of(combine.order.type);
  if (least == combine.done && least < length) return;
  do_arithmetic(node, combine, least - combine.done);
  combine.done = least;
  out.watermarks[key.slice] = combine.range.begin + least;
  if (least == length) {
    combine.complete = true;
    if (combine.order.final) out.final[key.slice] = true;
    const Duration delay{static_cast<std::int64_t>(random_.below(options_.post_delay.ns + 1))};
    const ProcessId process = hosts_.process(node);
    queue_.after(delay, [this, process, key] { deliver_combined(process, key); });
  }
  grown(node, out);
}

void Bulk::do_arithmetic(NodeIndex node, const Combine& combine, std::uint64_t bytes) {
  const ByteSpan arena = sink_.arena(node);
  if (arena.empty() || bytes == 0) return;
  const auto& copies = planes_[node].copies;
  const effect::Combine& order = combine.order;
  std::vector<const std::byte*> sources;
  for (const effect::Combine::Input& input : order.inputs)
    sources.push_back(arena.data() + copies.at(input.copy).place(input.begin + combine.done));
  std::byte* const out = arena.data() + copies.at(order.out).place(combine.range.begin + combine.done);
  hoplite::combine(order.op, order.type, out, sources, bytes);
  if (order.divide_by > 1) divide(order.type, out, bytes, order.divide_by);
}

// Of a copy that is being closed nothing is said but that it is closed.
void Bulk::deliver_combined(ProcessId process, CombineKey key) {
  if (!hosts_.alive(process)) return;
  if (hosts_.defer(process.node, [this, process, key] { deliver_combined(process, key); })) return;
  const auto& copies = planes_[process.node].copies;
  const auto it = copies.find(key.out);
  if (it == copies.end() || it->second.closing) return;
  forget_combine(process.node, key);
  sink_.bulk_event(process.node, event::Combined{key.out, key.slice});
}

void Bulk::forget_combine(NodeIndex node, CombineKey key) {
  Plane& plane = planes_[node];
  const auto it = plane.combines.find(key);
  for (const effect::Combine::Input& input : it->second.order.inputs) {
    auto& readers = plane.copies.at(input.copy).readers;
    if (const auto reader = std::find(readers.begin(), readers.end(), key); reader != readers.end())
      readers.erase(reader);
  }
  plane.combines.erase(it);
}

// A thread may be in the middle of the arithmetic until it says that the copy is closed.
void Bulk::forget_combines_into(NodeIndex node, CopyKey copy) {
  const ByteSpan arena = sink_.arena(node);
  auto& combines = planes_[node].combines;
  for (auto it = combines.lower_bound({copy, 0}); it != combines.end() && it->first.out == copy;) {
    const Combine& combine = it->second;
    if (!combine.complete && !arena.empty()) {
      const std::uint64_t from = combine.range.begin + combine.done;
      const std::uint64_t length = random_.below(std::min<std::uint64_t>(combine.range.end - from, 64) + 1);
      std::memset(arena.data() + planes_[node].copies.at(copy).place(from), 0xEE, length);
    }
    const CombineKey key = (it++)->first;
    forget_combine(node, key);
  }
}

}  // namespace hoplite::sim
