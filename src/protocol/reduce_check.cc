#include "protocol/reduce_check.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/limits.h"

namespace hoplite {
namespace {

Error refused(const std::string& why) { return {Code::kInvalidArgument, why}; }

std::optional<Error> check_count(const ReduceSpec& spec) {
  if (spec.count == 0) return refused("the first 0 sources were requested; at least 1 is needed");
  const std::uint32_t most = Limits{}.max_sources;
  if (spec.count > most)
    return refused("the first " + std::to_string(spec.count) + " sources were requested; the limit is " +
                   std::to_string(most));
  if (spec.count <= spec.sources.size() || spec.more_follow) return std::nullopt;
  return refused("the first " + std::to_string(spec.count) + " of " + std::to_string(spec.sources.size()) +
                 " sources were requested");
}

std::optional<Error> check_arithmetic(ReduceOp op, DType type) {
  if (type == DType::kBytes) return refused("plain bytes cannot be reduced; specify an element type");
  if (can_reduce(op, type)) return std::nullopt;
  return refused("the " + std::string(to_string(op)) + " of " + std::string(to_string(type)) +
                 " may not be an integer; use a floating-point type");
}

std::optional<Error> check_part(std::uint32_t part, std::uint32_t parts) {
  const std::uint32_t most = Limits{}.max_slices;
  if (parts > most)
    return refused("cut into " + std::to_string(parts) + " parts; the limit is " + std::to_string(most));
  if (part < parts) return std::nullopt;
  return refused("part " + std::to_string(part) + " of " + std::to_string(parts) +
                 " was requested; parts are numbered from 0");
}

}  // namespace

std::optional<Error> check_sources(const ObjectId& target, std::span<const ObjectId> sources) {
  if (sources.empty()) return refused("no sources were given");
  const std::uint32_t most = Limits{}.max_sources;
  if (sources.size() > most)
    return refused(std::to_string(sources.size()) + " sources were given; the limit is " + std::to_string(most));
  std::vector<ObjectId> sorted(sources.begin(), sources.end());
  std::sort(sorted.begin(), sorted.end());
  if (sorted.front().is_nil()) return refused("the id of a source is nil");
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) return refused("source " + twice->to_string() + " was given twice");
  if (std::binary_search(sorted.begin(), sorted.end(), target))
    return refused("the target " + target.to_string() + " is among its own sources");
  return std::nullopt;
}

std::optional<Error> check(const ReduceSpec& spec) {
  if (auto wrong = check_sources(spec.target, spec.sources)) return wrong;
  if (auto wrong = check_count(spec)) return wrong;
  if (auto wrong = check_arithmetic(spec.op, spec.type)) return wrong;
  if (auto wrong = check_part(spec.part, spec.parts)) return wrong;
  if (spec.timeout_ns < -1) return refused("the timeout is negative");
  return std::nullopt;
}

}  // namespace hoplite
