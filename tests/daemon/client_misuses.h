// What a client can say that makes no sense: for every request, out of order and out of range, and one that makes sense.
//
// The tables are overload sets over the alternatives of client::Request: a new request without entries does not compile.
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
  client::Request message;
  Fate fate = Fate::kIgnored;
  Code code = Code::kInvalidArgument;
  std::string payload = {};
};
using Misuses = std::vector<Misuse>;

// --- out of order and out of range

inline Misuses misuses(Of<client::Hello>, const Situation&) {
  return {{"a second greeting", client::Hello{}, Fate::kCutOff},
          {"a second greeting of another version", client::Hello{.version = 999, .proof = {}}, Fate::kCutOff}};
}
inline Misuses misuses(Of<client::Put>, const Situation& s) {
  const std::string too_large(64 * kKiB + 1, 'x');
  const std::string long_text(kTooMuchMetadata, 'm');
  return {{"more bytes than travel in a message", client::Put{}, Fate::kRefused, Code::kInvalidArgument, too_large},
          {"metadata without end", client::Put{.id = {}, .meta = long_text}, Fate::kRefused},
          {"an id that is taken", client::Put{.id = s.complete, .meta = {}}, Fate::kRefused, Code::kExists, "x"}};
}
inline Misuses misuses(Of<client::Create>, const Situation& s) {
  Misuses all = {{"metadata without end",
                  client::Create{.id = {}, .size = 1, .meta = std::string(kTooMuchMetadata, 'm')},
                  Fate::kRefused},
                 {"an id that is taken", client::Create{.id = s.complete, .size = 1, .meta = {}}, Fate::kRefused,
                  Code::kExists}};
  for (const std::uint64_t size : {kHuge, kHuge - 4096, std::uint64_t{1} << 63, 1025 * kMiB})
    all.push_back({"a size of " + std::to_string(size), client::Create{.id = {}, .size = size, .meta = {}},
                   Fate::kRefused, Code::kStoreFull});
  return all;
}
inline Misuses misuses(Of<client::Advance>, const Situation& s) {
  return {{"of nothing", client::Advance{.copy = kHuge, .bytes = 1}},
          {"of what another client writes", client::Advance{.copy = s.written_by_other, .bytes = kMiB}},
          {"of a view", client::Advance{.copy = s.view, .bytes = 1}},
          {"beyond the end", client::Advance{.copy = s.writing, .bytes = kHuge}},
          {"by nothing", client::Advance{.copy = s.writing, .bytes = 0}}};
}
inline Misuses misuses(Of<client::Seal>, const Situation& s) {
  return {{"of nothing", client::Seal{.copy = kHuge}, Fate::kRefused},
          {"of what another client writes", client::Seal{.copy = s.written_by_other}, Fate::kRefused},
          {"of a view", client::Seal{.copy = s.view}, Fate::kRefused}};
}
inline Misuses misuses(Of<client::Abort>, const Situation& s) {
  return {{"of nothing", client::Abort{.copy = kHuge}},
          {"of what another client writes", client::Abort{.copy = s.written_by_other}},
          {"of a view", client::Abort{.copy = s.view}}};
}
inline Misuses misuses(Of<client::Get>, const Situation& s) {
  return {{"of the nil id", client::Get{}, Fate::kRefused},
          {"without any time", client::Get{.id = s.unknown, .timeout_ns = 0}, Fate::kRefused, Code::kTimedOut},
          {"for ever", client::Get{.id = s.unknown, .timeout_ns = kLongest_ns}, Fate::kWaits},
          {"with a time before all times", client::Get{.id = s.unknown, .timeout_ns = kMostNegative_ns},
           Fate::kWaits}};
}
inline Misuses misuses(Of<client::Cancel>, const Situation& s) {
  return {{"of a request that never was", client::Cancel{.target = kHuge}},
          {"of the greeting", client::Cancel{.target = 1}},
          {"of a request that has ended", client::Cancel{.target = s.ended}}};
}
inline Misuses misuses(Of<client::Release>, const Situation& s) {
  return {{"of nothing", client::Release{.copies = {0, kHuge}}},
          {"of nobody", client::Release{.copies = {}}},
          {"of what another client writes", client::Release{.copies = {s.written_by_other}}},
          {"a thousand times", client::Release{.copies = std::vector<CopyKey>(1000, s.view)}}};
}
inline Misuses misuses(Of<client::Wait>, const Situation& s) {
  const std::vector<ObjectId> twice = {s.complete, s.complete};
  return {{"for the nil id", client::Wait{.ids = {ObjectId{}}}, Fate::kRefused},
          {"for nothing", client::Wait{.ids = {}, .count = 5}, Fate::kServed},
          {"for none of one", client::Wait{.ids = {s.unknown}, .count = 0}, Fate::kServed},
          {"for two of one that was named twice", client::Wait{.ids = twice, .count = 2}, Fate::kServed},
          {"for more than there are", client::Wait{.ids = {s.unknown}, .count = 1'000'000}, Fate::kWaits}};
}
inline Misuses misuses(Of<client::Remove>, const Situation& s) {
  return {{"of the nil id", client::Remove{}, Fate::kRefused},
          {"of what nobody put", client::Remove{.id = s.unknown}, Fate::kServed}};
}
inline Misuses misuses(Of<client::GetStatus>, const Situation&) {
  return {{"any time", client::GetStatus{}, Fate::kServed}};
}
inline Misuses misuses(Of<client::GetObjects>, const Situation&) {
  return {{"any time", client::GetObjects{}, Fate::kServed}};
}
inline Misuses misuses(Of<client::GetNodes>, const Situation&) {
  return {{"any time", client::GetNodes{}, Fate::kServed}};
}

inline ReduceSpec sum_of(std::vector<ObjectId> sources) {
  ReduceSpec spec;
  spec.count = static_cast<std::uint32_t>(sources.size());
  spec.sources = std::move(sources);
  return spec;
}
inline Misuses misuses(Of<client::Reduce>, const Situation& s) {
  Misuses all;
  const auto refused = [&](const std::string& what, const std::function<void(ReduceSpec&)>& spoil) {
    ReduceSpec spec = sum_of({s.complete, s.unknown});
    spoil(spec);
    all.push_back({what, client::Reduce{spec}, Fate::kRefused});
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
  all.push_back({"into what exists", client::Reduce{taken}, Fate::kRefused, Code::kExists});
  return all;
}
inline Misuses misuses(Of<client::AddSources>, const Situation& s) {
  return {{"to no reduce", client::AddSources{.target = s.unknown, .sources = {s.complete}}, Fate::kRefused},
          {"to the nil id", client::AddSources{.target = {}, .sources = {s.complete}}, Fate::kRefused},
          {"to an object", client::AddSources{.target = s.complete, .sources = {s.unknown}}, Fate::kRefused},
          {"of nothing", client::AddSources{.target = s.unknown, .sources = {}}, Fate::kRefused}};
}
inline Misuses misuses(Of<client::GetReduce>, const Situation& s) {
  return {{"of the nil id", client::GetReduce{}, Fate::kRefused},
          {"of no reduce", client::GetReduce{.target = s.unknown}, Fate::kRefused}};
}

// --- one that makes sense, to be repeated, cut short and sent without end

inline client::Request proper(Of<client::Hello>, const Situation&) { return client::Hello{}; }
inline client::Request proper(Of<client::Put>, const Situation&) {
  return client::Put{.id = ObjectId::named(kLeft), .meta = {}};
}
inline client::Request proper(Of<client::Create>, const Situation&) {
  return client::Create{.id = {}, .size = kMiB, .meta = {}};
}
inline client::Request proper(Of<client::Advance>, const Situation& s) {
  return client::Advance{.copy = s.writing, .bytes = 10};
}
inline client::Request proper(Of<client::Seal>, const Situation& s) { return client::Seal{.copy = s.writing}; }
inline client::Request proper(Of<client::Abort>, const Situation& s) { return client::Abort{.copy = s.writing}; }
inline client::Request proper(Of<client::Get>, const Situation& s) { return client::Get{.id = s.complete}; }
inline client::Request proper(Of<client::Cancel>, const Situation& s) { return client::Cancel{.target = s.ended}; }
inline client::Request proper(Of<client::Release>, const Situation& s) { return client::Release{.copies = {s.view}}; }
inline client::Request proper(Of<client::Wait>, const Situation& s) { return client::Wait{.ids = {s.complete}}; }
inline client::Request proper(Of<client::Remove>, const Situation& s) { return client::Remove{.id = s.unknown}; }
inline client::Request proper(Of<client::GetStatus>, const Situation&) { return client::GetStatus{}; }
inline client::Request proper(Of<client::GetObjects>, const Situation&) { return client::GetObjects{}; }
inline client::Request proper(Of<client::GetNodes>, const Situation&) { return client::GetNodes{}; }
inline client::Request proper(Of<client::Reduce>, const Situation& s) {
  ReduceSpec spec = sum_of({s.unknown});
  spec.target = ObjectId::named(kLeft);
  return client::Reduce{spec};
}
inline client::Request proper(Of<client::AddSources>, const Situation& s) {
  return client::AddSources{.target = s.unknown, .sources = {s.complete}};
}
inline client::Request proper(Of<client::GetReduce>, const Situation& s) {
  return client::GetReduce{.target = s.unknown};
}

inline bool is_one_way(const client::Request& message) {
  return std::holds_alternative<client::Advance>(message) || std::holds_alternative<client::Abort>(message) ||
         std::holds_alternative<client::Cancel>(message) || std::holds_alternative<client::Release>(message);
}

// Calls `visit` with Of<T> for every request T there is.
template <typename Visit, std::size_t... I>
void for_each_request(const Visit& visit, std::index_sequence<I...>) {
  (visit(Of<std::variant_alternative_t<I, client::Request>>{}), ...);
}
template <typename Visit>
void for_each_request(const Visit& visit) {
  for_each_request(visit, std::make_index_sequence<std::variant_size_v<client::Request>>{});
}

}  // namespace hoplite::testing
