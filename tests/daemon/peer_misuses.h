// What a node can say that makes no sense, for every control message.
//
// The table is an overload set over the alternatives of Message: a new message without entries does not compile.
#pragma once

#include <functional>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "base/bytes.h"
#include "protocol/messages.h"

namespace hoplite::testing {

template <typename T>
using Of = std::type_identity<T>;

constexpr std::uint64_t kHuge = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint32_t kMany = std::numeric_limits<std::uint32_t>::max();
constexpr Version kWrong = 12345;

// What the peer knows, and what the daemon's client has asked it as a home: answers can be aimed at those.
struct Situation {
  NodeRef self;
  NodeRef daemon;
  NodeRef other;  // daemon
  Address nowhere = {"127.0.0.1", 1};
  NodeRef unknown{NodeId{0xdead}, 7};

  ObjectId held;  // complete at both daemons; `daemon` is its home
  Version version = 0;
  std::uint64_t size = 0;
  ObjectId scratch;  // an id of `daemon` that means nothing so far, and is deleted in the end

  Want fetch;
  Want notify;
  PutRequest put;
  DeleteRequest remove;
  ReduceRequest reduce;
  ReduceQuery query;
};

struct Misuse {
  std::string what;
  Message message;
  std::string payload = {};
};
using Misuses = std::vector<Misuse>;

inline const std::string kLongText(64 * kKiB, 'm');

// --- membership

inline Misuses misuses(Of<Ping>, const Situation& s) {
  return {{"with the last number", Ping{kHuge, {}}},
          {"that calls the nil node alive", Ping{1, {{{}, s.nowhere, Life::kAlive}}}},
          {"that calls the daemon dead", Ping{1, {{s.daemon, s.nowhere, Life::kDead}}}},
          {"that calls its last incarnation dead", Ping{1, {{{s.daemon.id, kMany}, s.nowhere, Life::kDead}}}},
          {"that calls the other's last incarnation dead", Ping{1, {{{s.other.id, kMany}, s.nowhere, Life::kDead}}}}};
}
inline Misuses misuses(Of<Ack>, const Situation&) {
  return {{"of no ping", Ack{kHuge, {}}}, {"of ping 0", Ack{0, {}}}};
}
inline Misuses misuses(Of<PingRequest>, const Situation& s) {
  return {{"of the daemon itself", PingRequest{1, s.daemon, {}}},
          {"of nobody", PingRequest{1, {}, {}}},
          {"of a stranger", PingRequest{kHuge, s.unknown, {}}},
          {"of the asker", PingRequest{1, s.self, {}}}};
}
inline Misuses misuses(Of<Unreached>, const Situation& s) {
  return {{"of nothing asked", Unreached{kHuge, s.other, {}}},
          {"of the daemon itself", Unreached{1, s.daemon, s.daemon.id}},
          {"of a stranger", Unreached{0, s.unknown, s.unknown.id}},
          {"of a member, by way of a stranger", Unreached{1, s.other, s.unknown.id}}};
}
inline Misuses misuses(Of<News>, const Situation& s) {
  return {{"of nobody", News{}},
          {"of the death of a stranger", News{{{s.unknown, s.nowhere, Life::kDead}}}},
          {"of a node without an address", News{{{s.unknown, {"", 0}, Life::kAlive}}}},
          {"of a node with a strange address", News{{{s.unknown, {std::string(255, '%'), 1}, Life::kAlive}}}}};
}
inline Misuses misuses(Of<Sync>, const Situation& s) {
  return {{"of nobody", Sync{true, {}}},
          {"without an end", Sync{true, std::vector<MemberNews>(10'000, {s.unknown, s.nowhere, Life::kDead})}}};
}

// --- putting and getting

inline Misuses misuses(Of<PutRequest>, const Situation& s) {
  const std::string text(100, 'x');
  return {{"of what exists", PutRequest{1, s.held, kWrong, 1, {}, true}},
          {"of what exists, in its version and another size", PutRequest{1, s.held, s.version, 17, {}, true}},
          {"of the nil id", PutRequest{1, {}, kWrong, 1, {}, true}},
          {"of no version", PutRequest{1, s.scratch, 0, 1, {}, true}, "x"},
          {"of a size that no node has", PutRequest{1, s.scratch, kWrong, kHuge, {}, true}},
          {"of bytes that are not all there", PutRequest{1, s.scratch, kWrong, 1000, {}, true}, text},
          {"of bytes that are too many", PutRequest{1, s.scratch, kWrong, 1, {}, true}, text},
          {"with metadata without end", PutRequest{1, s.scratch, kWrong, 1, kLongText, true}, "x"}};
}
inline Misuses misuses(Of<PutReply>, const Situation& s) {
  Misuses all = {{"to nothing", PutReply{kHuge, s.held, Code::kOk}}, {"to another", PutReply{s.put.request, s.held}}};
  for (std::uint8_t code = 0; code <= static_cast<std::uint8_t>(last_enumerator(Code{})); ++code)
    all.push_back({"with code " + std::to_string(code), PutReply{s.put.request, s.put.id, static_cast<Code>(code)}});
  return all;
}
inline Misuses misuses(Of<Want>, const Situation& s) {
  const auto want = [&](const ObjectId& id, const std::function<void(Want&)>& spoil) {
    Want spoilt;
    spoilt.request = 1;
    spoilt.id = id;
    spoil(spoilt);
    return spoilt;
  };
  return {
      {"of the nil id", want({}, [](Want&) {})},
      {"of slices that are none", want(s.held, [](Want& w) { w.slices = {{kMany, kHuge, true}, {64, 0, false}}; })},
      {"with more than there is",
       want(s.held, [&](Want& w) { w.have_version = s.version, w.slices = {{0, kHuge, true}}; })},
      {"of a version that is none", want(s.held, [](Want& w) { w.have_version = kWrong; })},
      {"that reaches nobody", want(s.held, [](Want& w) { w.cut_off = std::vector<CutOff>(10'000); })},
      {"for another that reaches nobody",
       want(s.held, [&](Want& w) { w.for_another = true, w.cut_off = {{s.daemon.id, s.daemon.id}}; })},
      {"that avoids everybody", want(s.held, [](Want& w) { w.avoid = std::vector<NodeId>(10'000); })},
      {"that welcomes any bytes", want(s.held, [](Want& w) { w.mode = WantMode::kNotify, w.inline_bytes = kHuge; })}};
}
inline Misuses misuses(Of<Assign>, const Situation& s) {
  Misuses all;
  const auto answer = [&](const std::string& what, const std::function<void(Assign&)>& spoil) {
    Assign spoilt{s.fetch.request, s.fetch.id, kWrong, kMiB, {}, true, 1, {s.self}};
    spoil(spoilt);
    all.push_back({what, spoilt});
  };
  answer("that was not asked for", [&](Assign& m) { m.id = s.held; });
  answer("to no request", [](Assign& m) { m.request = kHuge; });
  answer("in no slices", [](Assign& m) { m.slices = 0, m.parents = {}; });
  answer("in too many slices", [&](Assign& m) { m.slices = 1000, m.parents.assign(1000, s.self); });
  answer("with too few parents", [](Assign& m) { m.slices = 2; });
  answer("with too many parents", [&](Assign& m) { m.parents.assign(5, s.self); });
  answer("of a size that no node has", [](Assign& m) { m.size = kHuge; });
  answer("of half such a size", [](Assign& m) { m.size = std::uint64_t{1} << 63; });
  answer("of nothing in slices", [&](Assign& m) { m.size = 0, m.slices = 64, m.parents.assign(64, s.self); });
  answer("of no version", [](Assign& m) { m.version = 0; });
  answer("with metadata without end", [](Assign& m) { m.meta = kLongText; });
  answer("to the daemon itself", [&](Assign& m) { m.parents = {s.daemon}; });
  answer("to nobody", [](Assign& m) { m.parents = {NodeRef{}}; });
  answer("to a stranger", [&](Assign& m) { m.parents = {s.unknown}; });
  answer("to one who does not have it", [&](Assign& m) { m.parents = {s.other}; });
  return all;
}
inline Misuses misuses(Of<InlineObject>, const Situation& s) {
  const std::string text(1000, 'x');
  return {{"that was not asked for", InlineObject{1, s.held, kWrong, {}}, text},
          {"in the version that there is", InlineObject{1, s.held, s.version, {}}, text},
          {"of no version", InlineObject{s.fetch.request, s.fetch.id, 0, {}}, text},
          {"to no request", InlineObject{kHuge, s.fetch.id, kWrong, {}}, text},
          {"that is large", InlineObject{s.fetch.request, s.fetch.id, kWrong, {}}, std::string(3 * kMiB, 'x')},
          {"that is empty", InlineObject{s.fetch.request, s.fetch.id, kWrong, {}}},
          {"with metadata without end", InlineObject{s.fetch.request, s.fetch.id, kWrong, kLongText}, text},
          {"of what is being put", InlineObject{1, s.put.id, kWrong, {}}, text}};
}
inline Misuses misuses(Of<PassOn>, const Situation& s) {
  return {{"of what is here to a stranger", PassOn{s.held, s.version, s.unknown, 1}},
          {"to itself", PassOn{s.held, s.version, s.self, kHuge}},
          {"to nobody", PassOn{s.held, s.version, {}, 1}},
          {"of another version", PassOn{s.held, kWrong, s.unknown, 1}},
          {"of what is being fetched", PassOn{s.fetch.id, kWrong, s.unknown, kHuge}},
          {"of no version", PassOn{s.fetch.id, 0, s.unknown, 1}},
          {"of the nil id", PassOn{{}, kWrong, s.unknown, 1}}};
}
inline Misuses misuses(Of<FetchFor>, const Situation& s) {
  return {{"of what is here", FetchFor{s.held, s.self}},
          {"of what is being fetched", FetchFor{s.fetch.id, s.self}},
          {"of what nobody has", FetchFor{s.scratch, s.unknown}},
          {"for the daemon itself", FetchFor{s.scratch, s.daemon}},
          {"of the nil id", FetchFor{{}, s.self}}};
}
inline Misuses misuses(Of<Found>, const Situation& s) {
  return {{"that was not asked for", Found{1, s.held, kWrong, kHuge, {}, s.self}},
          {"at nobody", Found{s.notify.request, s.notify.id, kWrong, 1, {}, {}}},
          {"at a stranger", Found{s.notify.request, s.notify.id, kWrong, kHuge, kLongText, s.unknown}},
          {"for a fetch", Found{s.fetch.request, s.fetch.id, 0, 1, {}, s.self}}};
}
inline Misuses misuses(Of<Waiting>, const Situation& s) {
  return {{"for what is here", Waiting{1, s.held, kWrong, true}},
          {"for no request", Waiting{kHuge, s.fetch.id, kWrong, true}},
          {"for a version that is none", Waiting{s.fetch.request, s.fetch.id, kHuge, true}}};
}
inline Misuses misuses(Of<WantFailed>, const Situation& s) {
  return {{"of what is here", WantFailed{1, s.held, s.version, Code::kDeleted, {}}},
          {"with a code that is none", WantFailed{s.fetch.request, s.fetch.id, kWrong, Code::kOk, {}}},
          {"with a sentence without end",
           WantFailed{s.fetch.request, s.fetch.id, 0, Code::kInternal, std::string(3 * kMiB, 'm')}},
          {"of a notification", WantFailed{s.notify.request, s.notify.id, kWrong, Code::kOk, {}}}};
}
inline Misuses misuses(Of<Unwant>, const Situation& s) {
  return {{"of what was not wanted", Unwant{s.held, WantMode::kFetch}}, {"of nothing", Unwant{{}, WantMode::kNotify}}};
}

// --- facts and orders

inline Misuses misuses(Of<Announce>, const Situation& s) {
  Misuses all;
  const auto fact = [&](const std::string& what, const ObjectId& id, const std::function<void(Fact&)>& spoil) {
    Fact spoilt{id, s.version, s.size, {}, CopyState::kComplete, true, false, 1, 0};
    spoil(spoilt);
    Announce message;
    message.facts = {spoilt};
    all.push_back({what, message});
  };
  fact("of no version", s.held, [](Fact& f) { f.version = 0; });
  fact("of another size", s.held, [](Fact& f) { f.size = 17; });
  fact("of no slices", s.held, [](Fact& f) { f.slices = 0, f.state = CopyState::kGrowing; });
  fact("of too many slices", s.held, [](Fact& f) { f.slices = kMany, f.state = CopyState::kGrowing; });
  fact("with metadata without end", s.held, [](Fact& f) { f.meta = kLongText; });
  fact("of more roots than slices", s.scratch, [](Fact& f) { f.state = CopyState::kWriting, f.roots = kMany; });
  fact("of a size that no node has", s.scratch, [](Fact& f) { f.size = kHuge, f.version = kWrong; });
  fact("of the nil id", {}, [](Fact&) {});
  fact("of another home's id", {s.other.id.value, kHuge}, [](Fact&) {});
  Announce buried;
  buried.tombstones = {{s.held, kWrong, kMany}};
  all.push_back({"of the end of another version", buried});
  Announce begun;
  begun.full_begin = true;
  begun.round = kHuge;
  all.push_back({"that has no end", begun});
  begun.first = kHuge;
  begun.last = 0;
  all.push_back({"of a range that ends before it begins", begun});
  Announce ended;
  ended.full_end = true;
  ended.comparison = kHuge;
  ended.open_requests = kHuge;
  ended.rate_kib = kMany;
  all.push_back({"that has no beginning", ended});
  return all;
}
inline Misuses misuses(Of<Compare>, const Situation&) {
  return {{"of a range that ends before it begins", Compare{1, kHuge, 0, 0}},
          {"of what is not there", Compare{2, 0, kHuge, 7}}};
}
inline Misuses misuses(Of<Compared>, const Situation&) {
  return {{"to no comparison", Compared{kHuge, 0, kHuge, true}},
          {"of a range that ends before it begins", Compared{1, kHuge, 0, true}}};
}
inline Misuses misuses(Of<Withdraw>, const Situation& s) {
  return {{"of what it never had", Withdraw{s.held, s.version}},
          {"of another version", Withdraw{s.held, kWrong}},
          {"of nothing", Withdraw{{}, 0}}};
}
inline Misuses misuses(Of<EvictRequest>, const Situation& s) {
  return {{"of what it never had", EvictRequest{s.held, s.version}},
          {"of another version", EvictRequest{s.held, kWrong}},
          {"of nothing", EvictRequest{{}, 0}}};
}
inline Misuses misuses(Of<EvictReply>, const Situation& s) {
  return {{"that was not asked for", EvictReply{s.held, s.version, true}}, {"of nothing", EvictReply{{}, 0, true}}};
}
inline Misuses misuses(Of<DeleteRequest>, const Situation& s) {
  return {{"of the nil id", DeleteRequest{1, {}}}, {"of what is not there", DeleteRequest{kHuge, s.scratch}}};
}
inline Misuses misuses(Of<DeleteReply>, const Situation& s) {
  return {{"to no request", DeleteReply{kHuge, s.held, true}},
          {"of another id", DeleteReply{s.remove.request, s.held, true}}};
}
inline Misuses misuses(Of<Drop>, const Situation& s) {
  return {{"of another version, as deleted", Drop{s.held, kWrong, DropReason::kDeleted}},
          {"by one who is not its home, as a conflict", Drop{s.held, s.version, DropReason::kConflict}},
          {"by one who is not its home, as a reset", Drop{s.held, 0, DropReason::kReset}},
          {"of nothing", Drop{{}, 0, DropReason::kDeleted}},
          {"of what is being put", Drop{s.put.id, 0, DropReason::kReset}}};
}
inline Misuses misuses(Of<SetPrimary>, const Situation& s) {
  return {{"by one who is not its home", SetPrimary{s.held, s.version, false}},
          {"of nothing", SetPrimary{{}, 0, true}}};
}
inline Misuses misuses(Of<Departures>, const Situation& s) {
  return {{"of the daemon itself", Departures{{{s.daemon.id, kHuge, s.nowhere}}}},
          {"of the nil node", Departures{{{{}, kHuge, s.nowhere}}}},
          {"in a time to come", Departures{{{s.unknown.id, kHuge, s.nowhere}}}}};
}
inline Misuses misuses(Of<Forgotten>, const Situation&) { return {{"before all times", Forgotten{0, kMany, {}}}}; }
inline Misuses misuses(Of<Hearsay>, const Situation& s) {
  return {{"of the nil id", Hearsay{true, {{{}, kWrong, false}, {{}, 0, true}}}},
          {"of no version", Hearsay{false, {{s.held, 0, false}, {s.held, 0, true}}}},
          {"about the daemon's own", Hearsay{true, {{s.held, kWrong, false}, {s.scratch, kWrong, true}}}}};
}
inline Misuses misuses(Of<RecoverQuery>, const Situation&) { return {{"of another view", RecoverQuery{kHuge, kHuge}}}; }
inline Misuses misuses(Of<RecoverReply>, const Situation&) {
  return {{"to no query", RecoverReply{kHuge, kHuge, kMany}}};
}
inline Misuses misuses(Of<NotHome>, const Situation& s) {
  return {{"of the daemon's own", NotHome{s.held}}, {"of its own", NotHome{s.fetch.id}}, {"of nothing", NotHome{}}};
}
inline Misuses misuses(Of<Relay>, const Situation& s) {
  std::string ping;
  encode_message(Ping{1, {}}, ping);
  std::string nested;
  encode_message(Relay{s.self, s.daemon, ping}, nested);
  return {{"of nonsense", Relay{s.self, s.daemon, "\xff\xff nonsense"}},
          {"of nothing", Relay{s.self, s.daemon, {}}},
          {"of a relay", Relay{s.self, s.daemon, nested}},
          {"of a stranger", Relay{s.unknown, s.daemon, ping}},
          {"of the daemon to itself", Relay{s.daemon, s.daemon, ping}},
          {"to a stranger", Relay{s.self, s.unknown, ping}},
          {"to nobody", Relay{s.self, {}, ping}},
          {"of much to the other", Relay{s.self, s.other, std::string(3 * kMiB, 'm')}}};
}
inline Misuses misuses(Of<Resync>, const Situation&) { return {{"out of the blue", Resync{}}}; }

// --- reducing

inline Misuses misuses(Of<ReduceRequest>, const Situation& s) {
  Misuses all;
  const auto request = [&](const std::string& what, const std::function<void(ReduceSpec&)>& spoil) {
    ReduceSpec spec;
    spec.target = s.scratch;
    spec.sources = {s.held, s.fetch.id};
    spec.count = 2;
    spoil(spec);
    all.push_back({what, ReduceRequest{1, spec}});
  };
  request("of nothing", [](ReduceSpec& spec) { spec.sources.clear(); });
  request("of the nil id", [](ReduceSpec& spec) { spec.sources[0] = {}; });
  request("of none", [](ReduceSpec& spec) { spec.count = 0; });
  request("of too many", [](ReduceSpec& spec) { spec.count = kMany; });
  request("of plain bytes", [](ReduceSpec& spec) { spec.type = DType::kBytes; });
  request("of one of no parts", [](ReduceSpec& spec) { spec.parts = 0; });
  request("of a part that is none", [](ReduceSpec& spec) { spec.part = 7; });
  request("into the nil id", [](ReduceSpec& spec) { spec.target = {}; });
  request("into what exists",
          [&](ReduceSpec& spec) { spec.target = s.held, spec.sources = {s.scratch}, spec.count = 1; });
  request("with a time before all times",
          [](ReduceSpec& spec) { spec.timeout_ns = std::numeric_limits<std::int64_t>::min(); });
  return all;
}
inline Misuses misuses(Of<AddSources>, const Situation& s) {
  return {{"to no reduce", AddSources{1, s.scratch, {s.held}}},
          {"of too many", AddSources{1, s.scratch, std::vector<ObjectId>(20'000, s.held)}},
          {"of the nil id", AddSources{1, s.held, {ObjectId{}}}}};
}
inline Misuses misuses(Of<ReduceReply>, const Situation& s) {
  return {{"to no request", ReduceReply{kHuge, s.held, Code::kOk, {}}},
          {"of another target", ReduceReply{s.reduce.request, s.held, Code::kOk, {}}},
          {"to a question", ReduceReply{s.query.request, s.query.target, Code::kOk, kLongText}}};
}
inline Misuses misuses(Of<ReduceQuery>, const Situation& s) {
  return {{"of the nil id", ReduceQuery{1, {}}}, {"of no reduce", ReduceQuery{kHuge, s.held}}};
}
inline Misuses misuses(Of<ReduceAnswer>, const Situation& s) {
  ReduceReport strange;
  strange.target = s.held;
  strange.slots = {{s.self.id, kMany, kMany, kMany, true}};
  return {{"to no request", ReduceAnswer{kHuge, strange}},
          {"to a reduce", ReduceAnswer{s.reduce.request, strange}},
          {"with slots that hang in the air", ReduceAnswer{s.query.request, strange}}};
}
inline Misuses misuses(Of<SlotOrder>, const Situation& s) {
  Misuses all;
  const auto order = [&](const std::string& what, const std::function<void(SlotOrder&)>& spoil) {
    SlotOrder spoilt;
    spoilt.target = s.scratch;
    spoilt.slot = 1;
    spoilt.version = kWrong;
    spoilt.source_size = spoilt.target_size = s.size;
    spoilt.own = {{s.held, s.version}};
    spoil(spoilt);
    all.push_back({what, spoilt});
  };
  order("in no slices", [](SlotOrder& o) { o.slices = 0; });
  order("of a slice that is none", [](SlotOrder& o) { o.slice = kMany; });
  order("into no slices", [](SlotOrder& o) { o.target_slices = 0; });
  order("into a slice that is none", [](SlotOrder& o) { o.role = SlotRole::kRoot, o.target_slice = 9; });
  order("of nothing", [](SlotOrder& o) { o.own.clear(); });
  order("of plain bytes", [](SlotOrder& o) { o.type = DType::kBytes; });
  order("of a mean of integers", [](SlotOrder& o) { o.op = ReduceOp::kMean, o.type = DType::kI32; });
  order("divided by nothing", [](SlotOrder& o) { o.divide_by = 0; });
  order("of half an element", [](SlotOrder& o) { o.source_size = 17; });
  order("of sources that no node has", [](SlotOrder& o) { o.source_size = kHuge - 3; });
  order("into another size", [](SlotOrder& o) { o.role = SlotRole::kRoot, o.target_size = 4; });
  order("of another version", [&](SlotOrder& o) { o.own = {{s.held, kWrong}}; });
  order("of too many", [&](SlotOrder& o) { o.own.assign(20'000, {s.held, s.version}); });
  order("of an input of nobody", [&](SlotOrder& o) { o.inputs = {{{}, s.held, s.version}}; });
  order("of an input of a stranger", [&](SlotOrder& o) { o.inputs = {{s.unknown, s.held, s.version}}; });
  order("of an input that is not there", [&](SlotOrder& o) { o.inputs = {{s.other, s.scratch, kWrong}}; });
  order("of an input of its own that is not there", [&](SlotOrder& o) { o.inputs = {{s.daemon, s.scratch, kWrong}}; });
  order("into what exists", [&](SlotOrder& o) { o.role = SlotRole::kRoot, o.target = s.held; });
  order("into what exists, in its version",
        [&](SlotOrder& o) { o.role = SlotRole::kRoot, o.target = s.held, o.version = s.version; });
  order("into no version", [](SlotOrder& o) { o.role = SlotRole::kRoot, o.version = 0; });
  order("that nobody ends", [](SlotOrder& o) { o.role = SlotRole::kRoot; });
  order("to keep what is here", [](SlotOrder& o) { o.role = SlotRole::kKeep; });
  return all;
}
inline Misuses misuses(Of<SlotUpdate>, const Situation& s) {
  return {{"of no reduce", SlotUpdate{s.scratch, kHuge, kWrong, SlotState::kDone, Code::kOk, {}, {}, kHuge}},
          {"of an object", SlotUpdate{s.held, 1, s.version, SlotState::kRefused, Code::kOk, {}, kLongText, 0}}};
}
inline Misuses misuses(Of<SlotEnd>, const Situation& s) {
  return {{"of no order", SlotEnd{s.scratch, 1, kWrong, true}}, {"of an object", SlotEnd{s.held, 1, s.version, true}}};
}

template <typename Visit, std::size_t... I>
void for_each_message(const Visit& visit, std::index_sequence<I...>) {
  (visit(Of<std::variant_alternative_t<I, Message>>{}), ...);
}
template <typename Visit>
void for_each_message(const Visit& visit) {
  for_each_message(visit, std::make_index_sequence<std::variant_size_v<Message>>{});
}

}  // namespace hoplite::testing
