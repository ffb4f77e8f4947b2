// What nodes say to each other on their control connections.
//
// A node sends on the connection that it dialled and reads from those it accepted, so each direction is in order and
// messages are lost only together with the connection. Requests carry a number that the answer echoes; everything can be
// asked again. The bytes of a small object follow a message as its payload; larger ones are pulled (protocol/bulk.h).
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/address.h"
#include "base/node_id.h"
#include "hoplite/error.h"
#include "hoplite/object_id.h"
#include "hoplite/priority.h"
#include "hoplite/status.h"
#include "protocol/codec.h"
#include "protocol/reduce.h"

namespace hoplite {

// Raised with every change that an older node would misread.
constexpr std::uint16_t kWireVersion = 8;

// --- membership ---------------------------------------------------------------------------------------------------------

enum class Life : std::uint8_t { kAlive, kDead };
constexpr Life last_enumerator(Life) { return Life::kDead; }

// One node's latest known life. Of two, the one with the higher (incarnation, life) is the newer: dead beats alive, and
// only the node itself can go on, as the next incarnation.
struct MemberNews {
  NodeRef ref;
  Address address;
  Life life = Life::kAlive;
  template <typename A> void fields(A& a) { a(ref, address, life); }
  auto operator<=>(const MemberNews&) const = default;
};

struct Ping {
  std::uint64_t seq = 0;
  std::vector<MemberNews> news;
  template <typename A> void fields(A& a) { a(seq, news); }
};
struct Ack {  // of a Ping, or of a PingRequest on behalf of its target
  std::uint64_t seq = 0;
  std::vector<MemberNews> news;
  template <typename A> void fields(A& a) { a(seq, news); }
};
struct PingRequest {  // "try `target` for me"
  std::uint64_t seq = 0;
  NodeRef target;
  std::vector<MemberNews> news;
  template <typename A> void fields(A& a) { a(seq, target, news); }
};
struct
    Unreached {  // answer to a PingRequest, or to a Relay (seq 0): the target refused, or there is no way to it from here
  std::uint64_t seq = 0;
  NodeRef target;
  NodeId instead;  // this one reached it lately; nil: nobody is known to
  template <typename A> void fields(A& a) { a(seq, target, instead); }
};
struct News {  // passed on at once
  std::vector<MemberNews> news;
  template <typename A> void fields(A& a) { a(news); }
};
struct Sync {  // all that the sender knows; also how a node joins
  bool answer_wanted = false;
  std::vector<MemberNews> members;
  template <typename A> void fields(A& a) { a(answer_wanted, members); }
};

// --- putting ------------------------------------------------------------------------------------------------------------

// A node asks the home to register the bytes it has (or is going to have) under an id. Payload: the bytes, if sealed and
// small.
struct PutRequest {
  std::uint64_t request = 0;
  ObjectId id;
  Version version = 0;
  std::uint64_t size = 0;
  std::string meta;
  bool sealed = false;
  template <typename A> void fields(A& a) { a(request, id, version, size, meta, sealed); }
};
struct PutReply {  // kOk, kExists or kDeleted
  std::uint64_t request = 0;
  ObjectId id;
  Code code = Code::kOk;
  Version newer_than = 0;  // kDeleted: it is the version that came too late; the name is free for a newer one than this
  template <typename A> void fields(A& a) { a(request, id, code, newer_than); }
};

// --- getting ------------------------------------------------------------------------------------------------------------

enum class WantMode : std::uint8_t { kFetch, kNotify };
constexpr WantMode last_enumerator(WantMode) { return WantMode::kNotify; }

// A slice that needs a parent.
struct SliceWant {
  std::uint32_t slice = 0;
  std::uint64_t have_bytes = 0;  // of the slice, from its front
  bool has_children = false;     // then the new parent must be strictly ahead of have_bytes
  template <typename A> void fields(A& a) { a(slice, have_bytes, has_children); }
};

// A node that the asker has no path to, though it lives.
struct CutOff {
  NodeId node;
  NodeId by_way_of;  // this one reaches both; nil: nobody is known to
  template <typename A> void fields(A& a) { a(node, by_way_of); }
};

struct Want {
  std::uint64_t request = 0;
  ObjectId id;
  WantMode mode = WantMode::kFetch;
  bool wait_if_lost = false;
  Version have_version = 0;        // a partial copy to go on with, 0 = none
  std::vector<SliceWant> slices;   // what it lacks a parent for
  std::vector<NodeId> avoid;       // parents that refused or fell silent
  std::uint64_t inline_bytes = 0;  // kNotify: bytes up to this size are welcome instead of Found
  std::vector<CutOff> cut_off;     // parents that the asker cannot reach
  bool for_another = false;        // by order (FetchFor): nobody is ordered to fetch for this one
  template <typename A> void fields(A& a) {
    a(request, id, mode, wait_if_lost, have_version, slices, avoid, inline_bytes, cut_off, for_another);
  }
};
struct Assign {  // "pull it from `parent`"
  std::uint64_t request = 0;
  ObjectId id;
  Version version = 0;
  std::uint64_t size = 0;
  std::string meta;
  bool committed = false;
  std::uint32_t slices = 1;
  std::vector<NodeRef> parents;  // one for each slice; nil: not asked for, or nobody can serve it now
  std::uint64_t number = 0;      // of this assignment, among all of this home
  template <typename A> void fields(A& a) { a(request, id, version, size, meta, committed, slices, parents, number); }
};
struct InlineObject {  // payload: the bytes; from the home, or from a node that it has asked to pass them on
  std::uint64_t request = 0;
  ObjectId id;
  Version version = 0;
  std::string meta;
  template <typename A> void fields(A& a) { a(request, id, version, meta); }
};
struct PassOn {  // "answer `receiver`'s want with the bytes, now or when you have them"; if you will not: Withdraw
  ObjectId id;
  Version version = 0;
  NodeRef receiver;
  std::uint64_t request = 0;  // the receiver's
  template <typename A> void fields(A& a) { a(id, version, receiver, request); }
};
struct FetchFor {  // "fetch it as if you wanted it: `receiver` cannot reach those who have it, and may reach you"
  ObjectId id;
  NodeRef receiver;
  template <typename A> void fields(A& a) { a(id, receiver); }
};
struct Found {  // answer to WantMode::kNotify: it is committed
  std::uint64_t request = 0;
  ObjectId id;
  Version version = 0;
  std::uint64_t size = 0;
  std::string meta = {};
  NodeRef holder = {};  // of a complete copy
  template <typename A> void fields(A& a) { a(request, id, version, size, meta, holder); }
};
struct Waiting {  // nobody can give it to you now; you will be told
  std::uint64_t request = 0;
  ObjectId id;
  Version version = 0;    // that exists, or is being written; 0 = nobody has put it
  bool reducing = false;  // a reduce that is coordinated here will make it
  template <typename A> void fields(A& a) { a(request, id, version, reducing); }
};
struct WantFailed {  // kLost, kDeleted, or why its reduce failed
  std::uint64_t request = 0;
  ObjectId id;
  Version version = 0;
  Code code = Code::kLost;
  std::string text = {};  // empty: the code says it all
  template <typename A> void fields(A& a) { a(request, id, version, code, text); }
};
struct Unwant {
  ObjectId id;
  WantMode mode = WantMode::kFetch;
  template <typename A> void fields(A& a) { a(id, mode); }
};

// --- what a node tells a home about itself ------------------------------------------------------------------------------

struct Fact {
  ObjectId id;
  Version version = 0;
  std::uint64_t size = 0;
  std::string meta;
  CopyState state = CopyState::kKnows;
  bool committed = false;
  bool primary = false;
  std::uint32_t slices = 1;   // how a growing copy is cut
  std::uint32_t roots = 0;    // kWriting: how many of the slices come into being here, as a reduce's result
  std::string lost_why = {};  // kKnows: in words, if there is more to say than that its holders died
  template <typename A> void fields(A& a) {
    a(id, version, size, meta, state, committed, primary, slices, roots, lost_why);
  }
};
struct Tombstone {  // this version and older ones are deleted
  ObjectId id;
  Version version = 0;  // 0: any, of an id that was minted
  std::uint32_t seconds_left = 0;
  template <typename A> void fields(A& a) { a(id, version, seconds_left); }
};
// Facts and tombstones owned by the sender. `round` is 0, or the recovery round they answer. Messages from the one with
// `full_begin` to the one with `full_end` are all that the sender has for this home from place `first` to `last`: the home
// forgets the rest, but for answers to requests from `open_requests` on, which may be under way. If they belong to a
// comparison, the home answers the last one by Compared.
struct Announce {
  std::uint64_t round = 0;
  bool full_begin = false;
  bool full_end = false;
  std::uint64_t open_requests = 0;
  std::vector<Fact> facts;
  std::vector<Tombstone> tombstones;
  std::uint32_t rate_kib = 0;  // the pace of the fetch that a single complete fact ends, KiB/s; 0 = not measured
  std::uint64_t comparison = 0;
  std::uint64_t first = 0;
  std::uint64_t last = ~std::uint64_t{0};
  template <typename A> void fields(A& a) {
    a(round, full_begin, full_end, open_requests, facts, tombstones, rate_kib, comparison, first, last);
  }
};
// "Do you believe the same of what I have for you from place `first` to `last`?" Places are those of
// core/directory/places.h; so is the digest. It counts as of its position among the sender's announcements.
struct Compare {
  std::uint64_t comparison = 0;
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  std::uint64_t digest = 0;
  template <typename A> void fields(A& a) { a(comparison, first, last, digest); }
};
struct Compared {  // of a shorter range, if that was too much to look at; `differs`: tell me what you have there
  std::uint64_t comparison = 0;
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  bool differs = false;
  template <typename A> void fields(A& a) { a(comparison, first, last, differs); }
};
// "I no longer have this copy."
struct Withdraw {
  ObjectId id;
  Version version = 0;
  template <typename A> void fields(A& a) { a(id, version); }
};
struct EvictRequest {
  ObjectId id;
  Version version = 0;
  template <typename A> void fields(A& a) { a(id, version); }
};
struct EvictReply {
  ObjectId id;
  Version version = 0;
  bool granted = false;
  template <typename A> void fields(A& a) { a(id, version, granted); }
};

// --- deleting, and a home's orders --------------------------------------------------------------------------------------

struct DeleteRequest {
  std::uint64_t request = 0;
  ObjectId id;
  template <typename A> void fields(A& a) { a(request, id); }
};
struct DeleteReply {  // every holder has dropped its copy, or is dead
  std::uint64_t request = 0;
  ObjectId id;
  bool existed = false;
  template <typename A> void fields(A& a) { a(request, id, existed); }
};
enum class DropReason : std::uint8_t {
  kDeleted,   // keep a tombstone; answered with Withdraw
  kConflict,  // another version of the id won
  kReset,     // the version will never be complete: its producer is gone. Ask again.
};
constexpr DropReason last_enumerator(DropReason) { return DropReason::kReset; }
struct Drop {
  ObjectId id;
  Version version = 0;  // 0 = whatever there is
  DropReason reason = DropReason::kDeleted;
  template <typename A> void fields(A& a) { a(id, version, reason); }
};
// Members that are away, and since when: what was deleted since may come back with them. Told to who has just joined.
struct Departure {
  NodeId node;
  std::uint64_t left = 0;  // the generation of that moment
  Address address;
  template <typename A> void fields(A& a) { a(node, left, address); }
};
struct Departures {
  std::vector<Departure> departures;
  template <typename A> void fields(A& a) { a(departures); }
};
// "You were away for longer than we remember what was deleted: drop what you had before you left." Where both sides say so,
// the larger one stays: more members, or else the lowest id.
struct Forgotten {
  std::uint64_t left = 0;  // the generation of the moment when the receiver left
  std::uint32_t members = 0;
  NodeId lowest;
  template <typename A> void fields(A& a) { a(left, members, lowest); }
};

struct SetPrimary {  // "yours is the primary copy now", or no longer
  ObjectId id;
  Version version = 0;
  bool primary = true;
  template <typename A> void fields(A& a) { a(id, version, primary); }
};

// --- what exists is known elsewhere, too --------------------------------------------------------------------------------

// From a home to its deputy, in batches: what was committed there, and what was deleted.
struct Heard {
  ObjectId id;
  Version version = 0;
  bool deleted = false;
  template <typename A> void fields(A& a) { a(id, version, deleted); }
};
struct Hearsay {
  bool anew = false;  // what the deputy has heard from this home before does not count any more
  std::vector<Heard> heard;
  template <typename A> void fields(A& a) { a(anew, heard); }
};

// --- a new home learns what is known ------------------------------------------------------------------------------------

struct RecoverQuery {
  std::uint64_t round = 0;
  std::uint64_t view = 0;  // digest of the asker's live members
  template <typename A> void fields(A& a) { a(round, view); }
};
struct RecoverReply {  // follows the Announce messages of its round
  std::uint64_t round = 0;
  std::uint64_t view = 0;   // the answerer's; another one = ask again, the news follow
  std::uint32_t facts = 0;  // how many were announced for this round: fewer arrived = ask again
  template <typename A> void fields(A& a) { a(round, view, facts); }
};
struct NotHome {  // "by what I know, that id's home is another node": the sender's members follow in a Sync
  ObjectId id;
  template <typename A> void fields(A& a) { a(id); }
};

// A message for somebody whom the sender cannot reach directly. Relayed once, never further. Payload: the message's.
struct Relay {
  NodeRef from;
  NodeRef to;
  std::string message;  // as encode_message writes it, without payload
  template <typename A> void fields(A& a) { a(from, to, message); }
};

// Messages to you may have been lost with a connection: announce all that you have for me.
struct Resync {
  template <typename A> void fields(A&) {}
};

// --- reducing -----------------------------------------------------------------------------------------------------------
//
// The target's home coordinates. It orders nodes to fill slots: each combines its own sources and the outputs of others
// into an output of its own, which the next one pulls (protocol/bulk.h) under the target's id and the slot's version.

struct ReduceRequest {  // answered by ReduceReply
  std::uint64_t request = 0;
  ReduceSpec spec;
  template <typename A> void fields(A& a) { a(request, spec); }
};
struct AddSources {  // likewise
  std::uint64_t request = 0;
  ObjectId target;
  std::vector<ObjectId> sources;
  std::vector<std::string> names = {};  // of sources
  template <typename A> void fields(A& a) { a(request, target, sources, names); }
};
struct ReduceReply {
  std::uint64_t request = 0;
  ObjectId target;
  Code code = Code::kOk;
  std::string text;
  template <typename A> void fields(A& a) { a(request, target, code, text); }
};
struct ReduceQuery {  // answered by ReduceAnswer, or ReduceReply{kInvalidArgument}
  std::uint64_t request = 0;
  ObjectId target;
  template <typename A> void fields(A& a) { a(request, target); }
};
struct ReduceAnswer {
  std::uint64_t request = 0;
  ReduceReport report;
  template <typename A> void fields(A& a) { a(request, report); }
};

struct SlotSource {  // a complete copy on the slot's own node
  ObjectId id;
  Version version = 0;
  template <typename A> void fields(A& a) { a(id, version); }
  auto operator<=>(const SlotSource&) const = default;
};
struct SlotInput {  // what is pulled from another node: a slot's output, or a source that needs no slot
  NodeRef node;
  ObjectId id;
  Version version = 0;
  template <typename A> void fields(A& a) { a(node, id, version); }
  auto operator<=>(const SlotInput&) const = default;
};
enum class SlotRole : std::uint8_t {
  kKeep,   // keep the sources: somebody pulls them as they are
  kInner,  // combine into an output that is kept until the end
  kRoot,   // combine into the target itself
};
constexpr SlotRole last_enumerator(SlotRole) { return SlotRole::kRoot; }

struct SlotOrder {
  ObjectId target;
  std::uint64_t slot = 0;  // the coordinator's number for it
  Version version = 0;     // of the output. An order with another version replaces the one before.
  SlotRole role = SlotRole::kInner;
  ReduceOp op = ReduceOp::kSum;
  DType type = DType::kF32;
  std::uint64_t divide_by = 1;
  std::uint64_t source_size = 0;  // of every source
  std::uint32_t slice = 0;        // of the sources: what is combined
  std::uint32_t slices = 1;
  std::uint64_t target_size = 0;
  std::string meta;                // of the target
  std::uint32_t target_slice = 0;  // kRoot: which slice of the target this is
  std::uint32_t target_slices = 1;
  std::vector<SlotSource> own;
  std::vector<SlotInput> inputs;
  Priority priority =
      Priority::kNormal;  // of what is pulled for it, at least. The same order may come with another one.
  template <typename A> void fields(A& a) {
    a(target, slot, version, role, op, type, divide_by, source_size, slice, slices, target_size, meta, target_slice,
      target_slices, own, inputs, priority);
  }
};
enum class SlotState : std::uint8_t {
  kAccepted,
  kDone,     // the output is complete
  kRefused,  // `code` says why: kStoreFull, or kUnavailable and which source or input is not there
  kEnded,    // as ordered
};
constexpr SlotState last_enumerator(SlotState) { return SlotState::kEnded; }
struct SlotUpdate {  // the node's answer, now and when things change
  ObjectId target;
  std::uint64_t slot = 0;
  Version version = 0;
  SlotState state = SlotState::kAccepted;
  Code code = Code::kOk;
  ObjectId culprit;
  std::string text;
  std::uint64_t bytes = 0;  // of the output, so far
  template <typename A> void fields(A& a) { a(target, slot, version, state, code, culprit, text, bytes); }
};
struct SlotEnd {  // the coordinator needs the slot no longer; commit: the root's output is the object
  ObjectId target;
  std::uint64_t slot = 0;
  Version version = 0;
  bool commit = false;
  template <typename A> void fields(A& a) { a(target, slot, version, commit); }
};

// The order is the wire's: append only, and raise kWireVersion.
using Message =
    std::variant<Ping, Ack, PingRequest, News, Sync, PutRequest, PutReply, Want, Assign, InlineObject, Found, Waiting,
                 WantFailed, Unwant, Announce, Withdraw, EvictRequest, EvictReply, DeleteRequest, DeleteReply, Drop,
                 SetPrimary, RecoverQuery, RecoverReply, NotHome, Relay, Resync, ReduceRequest, AddSources, ReduceReply,
                 ReduceQuery, ReduceAnswer, SlotOrder, SlotUpdate, SlotEnd, PassOn, Compare, Compared, Unreached,
                 FetchFor, Departures, Forgotten, Hearsay>;

// Appends type and fields; the payload, if any, goes right behind.
void encode_message(const Message& message, std::string& out);

struct DecodedMessage {
  Message message;
  ByteView payload;  // points into the input
};
// kInvalidArgument for anything that encode_message did not write. Only PutRequest, InlineObject and Relay have a payload.
Result<DecodedMessage> decode_message(ByteView in);

}  // namespace hoplite
