// What the clients did and what they were told: the truth that the judge compares with.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/agent/events.h"
#include "sim/contents.h"
#include "sim/hosts.h"

namespace hoplite::sim {

using RequestNumber = std::uint64_t;
using HeldNumber = std::uint64_t;

// A reduce is a put whose bytes are made of others'.
struct ReduceRecord : ReduceSpec {
  Time deadline = Time::never();
  std::optional<std::string> result;  // once somebody has read it
};

struct PutRecord {
  ObjectId id;  // nil until the daemon has said which one it minted
  std::uint64_t size = 0;
  NodeIndex node = 0;
  Time began;
  Time sealed = Time::never();  // when all bytes were handed over and the commit was asked for
  Time done = Time::never();    // when the client was told that it is committed
  RequestNumber commit = 0;     // the put or seal that asked for it
  bool refused = false;         // the client was told that another put or a delete came first
  bool given_up = false;        // aborted, or never sealed before its client or node died
  std::optional<ReduceRecord> reduce;
};

struct RemoveRecord {
  Time asked;
  Time done = Time::never();
  bool existed = true;  // by its answer
};

struct ObjectRecord {
  std::vector<PutNumber> puts;
  std::vector<RemoveRecord> removes;
  std::optional<Time> bare;  // the last time that deaths (and evictions before they were known) left no copy
  std::map<Version, PutNumber> versions;  // as far as they were seen
};

enum class Ask : std::uint8_t { kPut, kCreate, kSeal, kGet, kWait, kRemove, kReduce, kReport };

struct RequestRecord {
  Ask kind = Ask::kGet;
  ClientKey client = 0;
  NodeIndex node = 0;
  ObjectId id;
  std::vector<ObjectId> ids;  // of a wait
  std::uint32_t count = 0;
  PutNumber put = 0;       // of a put, create or seal
  std::size_t remove = 0;  // index into ObjectRecord::removes
  Time asked;
  Time deadline = Time::never();
  bool wait_if_lost = false;
  bool follow = false;
  bool cancelled = false;  // the client asked for it
  bool orphaned = false;   // the client or the daemon is gone: no answer will come
  // --- the answer
  bool ended = false;
  Time ended_at;
  Code code = Code::kOk;
  std::string message;
  std::optional<PutNumber> got;  // which put a get has returned
  std::vector<ObjectId> ready;   // of a wait
  std::vector<ipc::Gone> gone;   // likewise
  HeldNumber held = 0;           // the view, while it is held; with follow, what is followed now
  // With follow: what was opened and not reset since, also when the client has given it back.
  std::optional<std::pair<CopyKey, Version>> following;
  bool use_create = false;  // the answer to a put was UseCreate
  std::optional<ReduceReport> report;
};

// A view, or a growing copy that is followed: memory that must not change while the client holds it.
struct Held {
  ClientKey client = 0;
  NodeIndex node = 0;
  RequestNumber request = 0;
  ObjectId id;
  CopyKey copy = 0;
  Version version = 0;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::uint64_t shown = 0;            // bytes that the client was told are valid
  std::vector<PutNumber> candidates;  // the puts whose bytes these may be
};

// A created object that is being written.
struct Writing {
  ClientKey client = 0;
  NodeIndex node = 0;
  PutNumber put = 0;
  CopyKey copy = 0;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::uint64_t written = 0;
};

struct Ledger {
  std::deque<PutRecord> puts{1};          // by number; 0 is nobody
  std::deque<RequestRecord> requests{1};  // by number; 0 is nobody
  std::map<ObjectId, ObjectRecord> objects;
  std::map<HeldNumber, Held> held;
  std::map<RequestNumber, Writing> writing;  // by the number of the create
  std::vector<Writing> kept;                 // of clients without a connection: nothing that they write may matter
  HeldNumber next_held = 1;

  // Whether it was, or may be, the target of a reduce.
  bool is_reduced(const ObjectRecord& object) const {
    return std::ranges::any_of(object.puts, [&](PutNumber put) { return puts[put].reduce.has_value(); });
  }
  // Whether the bytes of one of its puts were handed over before this.
  bool is_sealed(const ObjectRecord& object, Time now) const {
    return std::ranges::any_of(object.puts, [&](PutNumber put) { return puts[put].sealed <= now; });
  }
  // What is known of an id; an empty record if nothing.
  const ObjectRecord& about(const ObjectId& id) const {
    static const ObjectRecord kNothing;
    const auto it = objects.find(id);
    return it == objects.end() ? kNothing : it->second;
  }
};

}  // namespace hoplite::sim
