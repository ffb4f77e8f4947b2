// What a client can say that makes no sense: for every request, out of order and out of range, and one that makes sense.
//
// The tables are overload sets over the alternatives of ipc::Request: a new request without entries does not compile.
#pragma once

#include <functional>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "base/bytes.h"
#include "protocol/client_messages.h"

namespace hoplite::testing {

template <typename T>
using Of = std::type_identity<T>;

constexpr std::uint64_t kHuge = std::numeric_limits<std::uint64_t>::max();
constexpr std::int64_t kLongest_ns = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMostNegative_ns = std::numeric_limits<std::int64_t>::min();
constexpr std::size_t kTooMuchMetadata = 64 * kKiB;
constexpr const char* kLeft = "made by an offender";  // objects outlive who puts them

// What a client has got hold of when it starts to misbehave, and what others have.
struct Situation {
  ObjectId complete;             // another client's object
  ObjectId unknown;              // nobody has put it
  CopyKey view = 0;              // this client's, of `complete`
  CopyKey writing = 0;           // this client writes it
  CopyKey written_by_other = 0;  // another client does
  std::uint64_t ended = 0;       // the number of a request of this client that was answered
};

enum class Fate {
  kRefused,  // Failed, with the code
  kServed,   // it makes sense after all
  kWaits,    // no answer until it is cancelled
  kIgnored,  // it has no answer, and no effect on others
  kCutOff,
};
struct Misuse {
  std::string what;
  ipc::Request message;
  Fate fate = Fate::kIgnored;
  Code code = Code::kInvalidArgument;
  std::string payload = {};
};
using Misuses = std::vector<Misuse>;

// --- out of order and out of range

inline Misuses misuses(Of<ipc::Hello>, const Situation&) {
  return {{"a second greeting", ipc::Hello{}, Fate::kCutOff},
          {"a second greeting of another version", ipc::Hello{.version = 999, .proof = {}}, Fate::kCutOff}};
}
inline Misuses misuses(Of<ipc::Put>, const Situation& s) {
  const std::string too_large(64 * kKiB + 1, 'x');
  const std::string long_text(kTooMuchMetadata, 'm');
  return {{"more bytes than travel in a message", ipc::Put{}, Fate::kRefused, Code::kInvalidArgument, too_large},
          {"metadata without end", ipc::Put{.id = {}, .meta = long_text}, Fate::kRefused},
          {"an id that is taken", ipc::Put{.id = s.complete, .meta = {}}, Fate::kRefused, Code::kExists, "x"}};
}
inline Misuses misuses(Of<ipc::Create>, const Situation& s) {
  Misuses all = {
      {"metadata without end", ipc::Create{.id = {}, .size = 1, .meta = std::string(kTooMuchMetadata, 'm')},
       Fate::kRefused},
      {"an id that is taken", ipc::Create{.id = s.complete, .size = 1, .meta = {}}, Fate::kRefused, Code::kExists}};
  for (const std::uint64_t size : {kHuge, kHuge - 4096, std::uint64_t{1} << 63, 1025 * kMiB})
    all.push_back({"a size of " + std::to_string(size), ipc::Create{.id = {}, .size = size, .meta = {}}, Fate::kRefused,
                   Code::kStoreFull});
  return all;
}
inline Misuses misuses(Of<ipc::Advance>, const Situation& s) {
  return {{"of nothing", ipc::Advance{.copy = kHuge, .bytes = 1}},
          {"of what another client writes", ipc::Advance{.copy = s.written_by_other, .bytes = kMiB}},
          {"of a view", ipc::Advance{.copy = s.view, .bytes = 1}},
          {"beyond the end", ipc::Advance{.copy = s.writing, .bytes = kHuge}},
          {"by nothing", ipc::Advance{.copy = s.writing, .bytes = 0}}};
}
inline Misuses misuses(Of<ipc::Seal>, const Situation& s) {
  return {{"of nothing", ipc::Seal{.copy = kHuge}, Fate::kRefused},
          {"of what another client writes", ipc::Seal{.copy = s.written_by_other}, Fate::kRefused},
          {"of a view", ipc::Seal{.copy = s.view}, Fate::kRefused}};
}
inline Misuses misuses(Of<ipc::Abort>, const Situation& s) {
  return {{"of nothing", ipc::Abort{.copy = kHuge}},
          {"of what another client writes", ipc::Abort{.copy = s.written_by_other}},
          {"of a view", ipc::Abort{.copy = s.view}}};
}
inline Misuses misuses(Of<ipc::Get>, const Situation& s) {
  return {{"of the nil id", ipc::Get{}, Fate::kRefused},
          {"without any time", ipc::Get{.id = s.unknown, .timeout_ns = 0}, Fate::kRefused, Code::kTimedOut},
          {"for ever", ipc::Get{.id = s.unknown, .timeout_ns = kLongest_ns}, Fate::kWaits},
          {"with a time before all times", ipc::Get{.id = s.unknown, .timeout_ns = kMostNegative_ns}, Fate::kWaits}};
}
inline Misuses misuses(Of<ipc::Prioritize>, const Situation& s) {
  return {{"of nothing", ipc::Prioritize{.id = {}}},
          {"of what nobody here gets", ipc::Prioritize{.id = s.unknown, .priority = Priority::kHigh}},
          {"of what is here already", ipc::Prioritize{.id = s.complete, .priority = Priority::kLow}}};
}
inline Misuses misuses(Of<ipc::Cancel>, const Situation& s) {
  return {{"of a request that never was", ipc::Cancel{.target = kHuge}},
          {"of the greeting", ipc::Cancel{.target = 1}},
          {"of a request that has ended", ipc::Cancel{.target = s.ended}}};
}
inline Misuses misuses(Of<ipc::Release>, const Situation& s) {
  return {{"of nothing", ipc::Release{.copies = {0, kHuge}}},
          {"of nobody", ipc::Release{.copies = {}}},
          {"of what another client writes", ipc::Release{.copies = {s.written_by_other}}},
          {"a thousand times", ipc::Release{.copies = std::vector<CopyKey>(1000, s.view)}}};
}
inline Misuses misuses(Of<ipc::Wait>, const Situation& s) {
  const std::vector<ObjectId> twice = {s.complete, s.complete};
  return {{"for the nil id", ipc::Wait{.ids = {ObjectId{}}}, Fate::kRefused},
          {"for nothing", ipc::Wait{.ids = {}, .count = 5}, Fate::kServed},
          {"for none of one", ipc::Wait{.ids = {s.unknown}, .count = 0}, Fate::kServed},
          {"for two of one that was named twice", ipc::Wait{.ids = twice, .count = 2}, Fate::kServed},
          {"for more than there are", ipc::Wait{.ids = {s.unknown}, .count = 1'000'000}, Fate::kWaits}};
}
inline Misuses misuses(Of<ipc::Remove>, const Situation& s) {
  return {{"of the nil id", ipc::Remove{}, Fate::kRefused},
          {"of what nobody put", ipc::Remove{.id = s.unknown}, Fate::kServed}};
}
inline Misuses misuses(Of<ipc::GetStatus>, const Situation&) { return {{"any time", ipc::GetStatus{}, Fate::kServed}}; }
inline Misuses misuses(Of<ipc::GetObjects>, const Situation&) {
  return {{"any time", ipc::GetObjects{}, Fate::kServed}};
}
inline Misuses misuses(Of<ipc::GetNodes>, const Situation&) { return {{"any time", ipc::GetNodes{}, Fate::kServed}}; }

inline ReduceSpec sum_of(std::vector<ObjectId> sources) {
  ReduceSpec spec;
  spec.count = static_cast<std::uint32_t>(sources.size());
  spec.sources = std::move(sources);
  return spec;
}
inline Misuses misuses(Of<ipc::Reduce>, const Situation& s) {
  Misuses all;
  const auto refused = [&](const std::string& what, const std::function<void(ReduceSpec&)>& spoil) {
    ReduceSpec spec = sum_of({s.complete, s.unknown});
    spoil(spec);
    all.push_back({what, ipc::Reduce{spec}, Fate::kRefused});
  };
  refused("of nothing", [](ReduceSpec& spec) { spec.sources.clear(); });
  refused("of the nil id", [](ReduceSpec& spec) { spec.sources[0] = {}; });
  refused("of one thing twice", [&](ReduceSpec& spec) { spec.sources[1] = s.complete; });
  refused("of more than there are", [](ReduceSpec& spec) { spec.count = 3; });
  refused("of none of them", [](ReduceSpec& spec) { spec.count = 0; });
  refused("of more than are allowed", [](ReduceSpec& spec) { spec.count = 1U << 31, spec.more_follow = true; });
  refused("of plain bytes", [](ReduceSpec& spec) { spec.type = DType::kBytes; });
  refused("of a part that is none", [](ReduceSpec& spec) { spec.part = 1; });
  refused("of one of no parts", [](ReduceSpec& spec) { spec.parts = 0; });
  refused("of a part of too many", [](ReduceSpec& spec) { spec.parts = 1U << 31; });
  refused("into its own source", [&](ReduceSpec& spec) { spec.target = s.unknown; });
  refused("with a time before all times", [](ReduceSpec& spec) { spec.timeout_ns = kMostNegative_ns; });
  ReduceSpec taken = sum_of({s.unknown});
  taken.target = s.complete;
  all.push_back({"into what exists", ipc::Reduce{taken}, Fate::kRefused, Code::kExists});
  return all;
}
inline Misuses misuses(Of<ipc::AddSources>, const Situation& s) {
  return {{"to no reduce", ipc::AddSources{.target = s.unknown, .sources = {s.complete}}, Fate::kRefused},
          {"to the nil id", ipc::AddSources{.target = {}, .sources = {s.complete}}, Fate::kRefused},
          {"to an object", ipc::AddSources{.target = s.complete, .sources = {s.unknown}}, Fate::kRefused},
          {"of nothing", ipc::AddSources{.target = s.unknown, .sources = {}}, Fate::kRefused}};
}
inline Misuses misuses(Of<ipc::GetReduce>, const Situation& s) {
  return {{"of the nil id", ipc::GetReduce{}, Fate::kRefused},
          {"of no reduce", ipc::GetReduce{.target = s.unknown}, Fate::kRefused}};
}

// --- one that makes sense, to be repeated, cut short and sent without end

inline ipc::Request proper(Of<ipc::Hello>, const Situation&) { return ipc::Hello{}; }
inline ipc::Request proper(Of<ipc::Put>, const Situation&) {
  return ipc::Put{.id = ObjectId::named(kLeft), .meta = {}};
}
inline ipc::Request proper(Of<ipc::Create>, const Situation&) {
  return ipc::Create{.id = {}, .size = kMiB, .meta = {}};
}
inline ipc::Request proper(Of<ipc::Advance>, const Situation& s) {
  return ipc::Advance{.copy = s.writing, .bytes = 10};
}
inline ipc::Request proper(Of<ipc::Seal>, const Situation& s) { return ipc::Seal{.copy = s.writing}; }
inline ipc::Request proper(Of<ipc::Abort>, const Situation& s) { return ipc::Abort{.copy = s.writing}; }
inline ipc::Request proper(Of<ipc::Get>, const Situation& s) { return ipc::Get{.id = s.complete}; }
inline ipc::Request proper(Of<ipc::Prioritize>, const Situation& s) {
  return ipc::Prioritize{.id = s.complete, .priority = Priority::kHigh};
}
inline ipc::Request proper(Of<ipc::Cancel>, const Situation& s) { return ipc::Cancel{.target = s.ended}; }
inline ipc::Request proper(Of<ipc::Release>, const Situation& s) { return ipc::Release{.copies = {s.view}}; }
inline ipc::Request proper(Of<ipc::Wait>, const Situation& s) { return ipc::Wait{.ids = {s.complete}}; }
inline ipc::Request proper(Of<ipc::Remove>, const Situation& s) { return ipc::Remove{.id = s.unknown}; }
inline ipc::Request proper(Of<ipc::GetStatus>, const Situation&) { return ipc::GetStatus{}; }
inline ipc::Request proper(Of<ipc::GetObjects>, const Situation&) { return ipc::GetObjects{}; }
inline ipc::Request proper(Of<ipc::GetNodes>, const Situation&) { return ipc::GetNodes{}; }
inline ipc::Request proper(Of<ipc::Reduce>, const Situation& s) {
  ReduceSpec spec = sum_of({s.unknown});
  spec.target = ObjectId::named(kLeft);
  return ipc::Reduce{spec};
}
inline ipc::Request proper(Of<ipc::AddSources>, const Situation& s) {
  return ipc::AddSources{.target = s.unknown, .sources = {s.complete}};
}
inline ipc::Request proper(Of<ipc::GetReduce>, const Situation& s) { return ipc::GetReduce{.target = s.unknown}; }

inline bool is_one_way(const ipc::Request& message) {
  return std::holds_alternative<ipc::Advance>(message) || std::holds_alternative<ipc::Abort>(message) ||
         std::holds_alternative<ipc::Cancel>(message) || std::holds_alternative<ipc::Release>(message);
}

// Calls `visit` with Of<T> for every request T there is.
template <typename Visit, std::size_t... I>
void for_each_request(const Visit& visit, std::index_sequence<I...>) {
  (visit(Of<std::variant_alternative_t<I, ipc::Request>>{}), ...);
}
template <typename Visit>
void for_each_request(const Visit& visit) {
  for_each_request(visit, std::make_index_sequence<std::variant_size_v<ipc::Request>>{});
}

}  // namespace hoplite::testing
