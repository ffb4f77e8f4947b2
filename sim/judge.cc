#include "sim/judge.h"

#include <algorithm>

#include "sim/members.h"
#include "sim/reduced.h"

namespace hoplite::sim {

void Judge::disturbed(bool on) {
  disturbances_ += on ? 1 : -1;
  last_disturbance_ = world_.now();
}

void Judge::settled() {
  options_.settle = Duration{};
  settled_ = true;
  if (last_disturbance_) last_disturbance_ = world_.now();
}

bool Judge::calm_since(Time since) const {
  if (disturbances_ > 0) return false;
  return !last_disturbance_ || *last_disturbance_ + options_.settle < since;
}

std::string Judge::describe(RequestNumber number) const {
  const RequestRecord& request = ledger_.requests[number];
  std::string text = std::string(enumerator_name(request.kind)) + " " + std::to_string(number);
  if (!request.id.is_nil()) text += " of " + object(request.id);
  return text + " on " + node_name(request.node);
}

// --- bytes

bool Judge::bytes_match(const Held& held, PutNumber put) const {
  const ByteSpan arena = world_.arena(held.node);
  if (arena.empty() && held.size > 0) return true;  // this run carries no bytes
  if (held.offset + held.size > arena.size()) return false;
  const ByteSpan shown = arena.subspan(held.offset, held.shown);
  const PutRecord& record = ledger_.puts[put];
  return record.reduce ? explain_reduced(ledger_, *record.reduce, shown, !calm_since(record.began)).has_value()
                       : contents_match(put, shown);
}

// The puts that these bytes may be of; at first all of the id with this size.
void Judge::narrow(Held& held) {
  const auto object_it = ledger_.objects.find(held.id);
  if (held.candidates.empty() && object_it != ledger_.objects.end())
    for (const PutNumber put : object_it->second.puts)
      if (ledger_.puts[put].size == held.size || ledger_.puts[put].reduce) held.candidates.push_back(put);
  std::erase_if(held.candidates, [&](PutNumber put) { return !bytes_match(held, put); });
  if (held.candidates.empty())
    return world_.violate("bytes-of-one-put", object(held.id) + " on " + node_name(held.node) + ": the first " +
                                                  std::to_string(held.shown) + " of " + std::to_string(held.size) +
                                                  " B are those of no put");
  if (held.shown < 8 || held.candidates.size() > 1) return;  // too few bytes to tell puts apart
  const auto [known, fresh] = object_it->second.versions.try_emplace(held.version, held.candidates.front());
  if (!fresh && known->second != held.candidates.front())
    world_.violate("versions-never-mix", object(held.id) + ": version " + hex64(held.version) + " was put " +
                                             std::to_string(known->second) + " and is now put " +
                                             std::to_string(held.candidates.front()));
}

void Judge::growth_shown(Held& held) { narrow(held); }

void Judge::follow_began(RequestNumber number) {
  if (ledger_.requests[number].following)
    world_.violate("followers-are-reset", describe(number) + " is shown another copy without a reset before");
}

void Judge::follow_ended(RequestNumber number, Version version) {
  const auto& following = ledger_.requests[number].following;
  if (following && following->second != version)
    world_.violate("followers-are-reset", describe(number) + " followed version " + hex64(following->second) +
                                              " and ended with version " + hex64(version));
}

void Judge::look_again(const Held& held) {
  for (const PutNumber put : held.candidates)
    if (bytes_match(held, put)) return;
  world_.violate("views-never-change", object(held.id) + " on " + node_name(held.node) + ", copy " +
                                           std::to_string(held.copy) + ": held bytes have changed");
}

std::optional<PutNumber> Judge::view_shown(RequestNumber number, Held& held) {
  const RequestRecord& request = ledger_.requests[number];
  narrow(held);
  if (world_.violation()) return std::nullopt;
  // Of several candidates (objects of a few bytes) one that explains it is enough.
  std::vector<PutNumber> final_ones;
  for (const PutNumber put : held.candidates)
    if (ledger_.puts[put].sealed <= world_.now() && !ledger_.puts[put].refused) final_ones.push_back(put);
  if (final_ones.empty()) {
    if (calm_since(ledger_.puts[held.candidates.front()].began))
      world_.violate("committed-only", describe(number) + " returned put " + std::to_string(held.candidates.front()) +
                                           ", which was never sealed or was refused");
    return held.candidates.front();
  }
  if (final_ones.size() == 1) {
    if (ledger_.puts[final_ones.front()].reduce) reduced_shown(held, final_ones.front());
    check_deletes(request, final_ones.front());
    check_superseded(request, final_ones.front());
  }
  return final_ones.front();
}

// Every reader of a reduce sees the same bytes.
void Judge::reduced_shown(const Held& held, PutNumber number) {
  PutRecord& put = ledger_.puts[number];
  if (put.done > world_.now()) put.done = world_.now();
  const ByteSpan arena = world_.arena(held.node);
  if (arena.empty()) return;
  const auto* data = reinterpret_cast<const char*>(arena.data() + held.offset);
  const std::string bytes(data, held.size);
  if (!put.reduce->result) put.reduce->result = bytes;
  if (*put.reduce->result != bytes && calm_since(put.began))
    world_.violate("readers-agree", "reduce " + std::to_string(number) + " of " + object(held.id) +
                                        " had another result for an earlier reader");
}

// The result is made of exactly the sources that the report names.
void Judge::reported(RequestNumber number) {
  const RequestRecord& request = ledger_.requests[number];
  const ReduceReport& report = *request.report;
  if (report.phase != ReducePhase::kDone) return;
  std::vector<ObjectId> used;
  for (const SourceReport& source : report.sources)
    if (source.state == SourceState::kUsed) used.push_back(source.id);
  if (used.size() != report.count)
    world_.violate("reduce-exactly-once", describe(number) + " is done with " + std::to_string(used.size()) +
                                              " sources instead of " + std::to_string(report.count));
  const std::vector<PutNumber>& puts = ledger_.about(request.id).puts;
  if (puts.size() != 1) return;  // another reduce of this name may have come after the one that was read
  const PutRecord& put = ledger_.puts[puts.front()];
  if (!put.reduce || !put.reduce->result || !calm_since(put.began)) return;
  ReduceRecord reduce = *put.reduce;
  reduce.sources = used;
  reduce.count = report.count;
  if (!explain_reduced(ledger_, reduce, as_bytes(*put.reduce->result), false))
    world_.violate("reduce-exactly-once", describe(number) + " names other sources than the result is made of");
}

// The home of a reduce's target coordinates it. The home of a name, or of an id that a node minted which is gone, moves when
// a node joins.
bool Judge::coordinator_may_move(const ObjectId& target) const {
  if (target.is_named()) return true;
  for (NodeIndex node = 0; node < world_.size(); ++node)
    if (!world_.running(node) || world_.process(node).start > 1) return true;
  return false;
}

// Why a reduce may end without a result, which is then the reason for whoever reads its target.
bool Judge::reduce_may_fail(PutNumber put_number, Code code, int depth) const {
  const PutRecord& put = ledger_.puts[put_number];
  std::set<std::uint64_t> sizes;
  bool deleted = false;
  for (const ObjectId& source : put.reduce->sources) {
    deleted = deleted || !ledger_.about(source).removes.empty();
    // What kept a reduce of reduces from its source is its own reason.
    for (const PutNumber number : ledger_.about(source).puts)
      if (ledger_.puts[number].reduce && depth < 5 && reduce_may_fail(number, code, depth + 1)) return true;
    for (const PutNumber number : ledger_.about(source).puts) sizes.insert(ledger_.puts[number].size);
  }
  switch (code) {
    case Code::kTypeMismatch:
    case Code::kSizeMismatch:
      return sizes.size() > 1 || (put.reduce->type == DType::kU64 && !sizes.empty() && *sizes.begin() % 8 != 0);
    case Code::kTimedOut: return put.reduce->deadline <= world_.now();
    case Code::kDeleted: return deleted;
    case Code::kStoreFull: return true;
    case Code::kLost:  // a source is
      return coordinator_may_move(put.id) || std::ranges::any_of(put.reduce->sources, [&](const ObjectId& id) {
               return ledger_.about(id).bare.has_value() || perhaps_withdrawn(ledger_.about(id), Time{});
             });
    default: return false;
  }
}

void Judge::check_deletes(const RequestRecord& request, PutNumber put) {
  const PutRecord& record = ledger_.puts[put];
  for (const RemoveRecord& remove : ledger_.about(request.id).removes) {
    // Nobody knew it: it is on a node that the others are about to hear of, and it goes when they have.
    const Time gone = remove.existed || remove.done == Time::never() ? remove.done : remove.done + options_.settle;
    if (record.done < remove.asked && gone < request.asked && calm_since(remove.asked))
      world_.violate("deleted-stays-deleted", "put " + std::to_string(put) + " of " + object(request.id) +
                                                  " was read on " + node_name(request.node) + " after its delete");
  }
}

// The get was asked after another put had been confirmed, and nothing has been lost or deleted since.
void Judge::check_superseded(const RequestRecord& request, PutNumber put) {
  const ObjectRecord& record = ledger_.about(request.id);
  if (settled_) check_newest(request, put);
  for (const PutNumber other : record.puts) {
    const Time done = ledger_.puts[other].done;
    if (other == put || done >= request.asked || ledger_.puts[put].done < done) continue;
    const bool lost_since = record.bare && *record.bare > done;
    if (lost_since || !record.removes.empty() || !calm_since(done)) continue;
    world_.violate("one-committed-version", "put " + std::to_string(put) + " of " + object(request.id) +
                                                " was read on " + node_name(request.node) + ", but put " +
                                                std::to_string(other) + " was confirmed before");
  }
}

// Whatever has happened: when it is over, nobody reads what a later put has replaced, unless that was lost or deleted. Clocks
// that differ may take puts of two sides of a partition for older or newer than they are.
void Judge::check_newest(const RequestRecord& request, PutNumber put) {
  const ObjectRecord& record = ledger_.about(request.id);
  const PutRecord& read = ledger_.puts[put];
  if (!request.id.is_named() || read.reduce) return;
  for (const PutNumber other : record.puts) {
    const PutRecord& later = ledger_.puts[other];
    if (later.reduce || later.done >= request.asked || later.began < read.sealed + options_.clock_skew) continue;
    const bool lost_since = record.bare && *record.bare > later.began;
    const auto may_have_met_it = [&](const RemoveRecord& remove) { return remove.done >= later.began; };
    if (lost_since || std::ranges::any_of(record.removes, may_have_met_it)) continue;
    world_.violate("newest-put-stays", "put " + std::to_string(put) + " of " + object(request.id) + " was read on " +
                                           node_name(request.node) + ", but put " + std::to_string(other) +
                                           " came after it and was confirmed");
  }
}

// --- requests

void Judge::put_done(PutNumber number) {
  const PutRecord& put = ledger_.puts[number];
  const ObjectRecord& record = ledger_.about(put.id);
  for (const PutNumber other : record.puts) {
    const PutRecord& earlier = ledger_.puts[other];
    if (other == number || earlier.done > put.done || !calm_since(std::min(earlier.began, put.began))) continue;
    const bool lost_since = record.bare && *record.bare > earlier.sealed;
    if (lost_since || !record.removes.empty()) continue;
    world_.violate("one-committed-version", "puts " + std::to_string(other) + " and " + std::to_string(number) +
                                                " of " + object(put.id) + " were both confirmed");
  }
}

void Judge::wait_done(RequestNumber number) {
  const RequestRecord& request = ledger_.requests[number];
  std::set<ObjectId> seen;
  for (const ObjectId& id : request.ready) {
    const bool asked_for = std::ranges::count(request.ids, id) > 0;
    const ObjectRecord& record = ledger_.about(id);
    // A put that minted its id is known to the ledger only when its client was told.
    const bool minted = record.puts.empty();
    if (!asked_for || !seen.insert(id).second || (!ledger_.is_sealed(record, world_.now()) && !minted))
      world_.violate("true-reason", describe(number) + " names " + object(id) + " as ready, which it is not");
  }
  for (const ipc::Gone& gone : request.gone) {
    const ObjectRecord& record = ledger_.about(gone.id);
    const auto failed_reduce = [&](PutNumber put) {
      return ledger_.puts[put].reduce && reduce_may_fail(put, gone.code);
    };
    if (std::ranges::count(request.ids, gone.id) == 0 || !seen.insert(gone.id).second)
      world_.violate("true-reason", describe(number) + " names " + object(gone.id) + " as gone, which was not asked");
    if (std::ranges::any_of(record.puts, failed_reduce)) continue;
    if (gone.code == Code::kLost) check_lost(number, record);
    else if (gone.code != Code::kDeleted || record.removes.empty())
      world_.violate("true-reason", describe(number) + " calls " + object(gone.id) + " " +
                                        std::string(code_name(gone.code)) + ", which it is not");
  }
  const bool possible = request.ids.size() - request.gone.size() >= request.count;
  if (request.ready.size() < request.count && possible && world_.now() < request.deadline)
    world_.violate("deadlines-hold", describe(number) + " ended early with " + std::to_string(request.ready.size()));
}

void Judge::wrong_answer(RequestNumber number, const std::string& what) {
  world_.violate("one-answer", describe(number) + " was answered by " + what);
}

void Judge::request_failed(RequestNumber number) {
  const RequestRecord& request = ledger_.requests[number];
  const ObjectRecord& record = ledger_.about(request.id);
  const auto untrue = [&](const std::string& why) {
    world_.violate("true-reason", describe(number) + " failed with '" + std::string(code_name(request.code)) + ": " +
                                      request.message + "', but " + why);
  };
  const bool reads = request.kind == Ask::kGet || request.kind == Ask::kWait || request.kind == Ask::kReport;
  if (request.kind == Ask::kReport && request.code == Code::kInvalidArgument) return;  // nobody knows of such a reduce
  if (request.kind == Ask::kGet || request.kind == Ask::kReport)
    for (const PutNumber put : record.puts)
      if (ledger_.puts[put].reduce && reduce_may_fail(put, request.code)) return;
  switch (request.code) {
    case Code::kTimedOut: return check_times(number);
    case Code::kStoreFull:
      if (request.kind == Ask::kRemove || request.kind == Ask::kWait) untrue("it needs no room");
      return check_times(number);
    case Code::kCancelled:
      if (!request.cancelled) untrue("nobody cancelled it");
      return;
    case Code::kDeleted:
      if (record.removes.empty()) untrue("nobody deleted it");
      check_free_again(number, record);
      return;
    case Code::kExists:
      if (reads || record.puts.size() < 2) untrue("it is the only put");
      return;
    case Code::kLost:
      if (!reads) return untrue("it reads nothing");
      return check_lost(number, record);
    case Code::kUnavailable:
      if (!world_.leaving(request.node)) untrue("nobody told the daemon to stop");
      return;
    default: untrue("that is no reason for this request"); return;
  }
}

// A name is free as soon as its delete was answered: only one that was under way refuses a put.
void Judge::check_free_again(RequestNumber number, const ObjectRecord& record) {
  const RequestRecord& request = ledger_.requests[number];
  if (request.put == 0 || !request.id.is_named()) return;
  const Time began = ledger_.puts[request.put].began;
  const auto beside = [&](const RemoveRecord& remove) { return remove.asked <= world_.now() && remove.done >= began; };
  const bool reduced = ledger_.is_reduced(record);
  if (!reduced && calm_since(began) && std::ranges::none_of(record.removes, beside))
    world_.violate("names-are-free-again", describe(number) + " was refused as deleted, though every delete of " +
                                               object(request.id) + " had ended before");
}

// No room, or no time: the deadline decides, but what is larger than the store can be refused at once.
void Judge::check_times(RequestNumber number) {
  const RequestRecord& request = ledger_.requests[number];
  const bool too_large = request.code == Code::kStoreFull && request.deadline > world_.now();
  if (too_large) {
    std::uint64_t largest = request.put != 0 ? ledger_.puts[request.put].size : 0;
    for (const PutNumber put : ledger_.about(request.id).puts) largest = std::max(largest, ledger_.puts[put].size);
    if (largest <= world_.capacity(request.node))
      world_.violate("deadlines-hold", describe(number) + " found no room before its deadline: " + request.message);
    return;
  }
  if (world_.now() < request.deadline)
    world_.violate("deadlines-hold", describe(number) + " timed out before its deadline");
  if (world_.now() > request.deadline + options_.deadline_slack && calm_since(request.asked))
    world_.violate("deadlines-hold", describe(number) + " timed out " +
                                         format_duration(world_.now() - request.deadline) + " after its deadline");
}

// A put that its client gave up while the home was being asked, after that time, may have existed for a moment.
bool Judge::perhaps_withdrawn(const ObjectRecord& record, Time since) const {
  return std::any_of(record.puts.begin(), record.puts.end(), [&](PutNumber number) {
    const PutRecord& put = ledger_.puts[number];
    if (put.commit == 0 || put.done <= world_.now() || put.sealed < since) return false;
    const RequestRecord& commit = ledger_.requests[put.commit];
    return commit.orphaned || commit.cancelled || commit.deadline <= world_.now();
  });
}

// Lost is true if a death left no complete copy, and nobody has confirmed another put between that and the request.
void Judge::check_lost(RequestNumber number, const ObjectRecord& record) {
  const RequestRecord& request = ledger_.requests[number];
  if (request.wait_if_lost) world_.violate("true-reason", describe(number) + " ended as lost, but was told to wait");
  Time relevant{};  // the beginning of what was lost
  Time confirmed{};
  for (const PutNumber put : record.puts) {
    if (ledger_.puts[put].done < request.asked) confirmed = std::max(confirmed, ledger_.puts[put].done);
    relevant = relevant == Time{} ? ledger_.puts[put].began : std::min(relevant, ledger_.puts[put].began);
  }
  const std::string prefix = describe(number) + " ended as lost (" + request.message + "), but ";
  if (!ledger_.is_sealed(record, world_.now()) && !record.puts.empty())
    world_.violate("true-reason", prefix + "it never existed");
  if (!calm_since(relevant) || perhaps_withdrawn(record, confirmed)) return;
  if (!record.bare) world_.violate("true-reason", prefix + "no death has left it without a complete copy");
  if (record.bare && *record.bare < confirmed)
    world_.violate("true-reason", prefix + "it was put again before the request");
}

// --- transfers

void Judge::transfer_began(const Transfer& began) {
  const Transfers& transfers = world_.transfers();
  if (!world_.is_pulling(began)) return;  // its cancel is on the way
  // Nobody fills a copy in which the bytes come into being: it cannot be part of a cycle.
  const auto filling = [&](ProcessId process, CopyKey copy) {
    return transfers.find(process, copy, began.request.slice, [&](const Transfer& t) { return world_.is_moving(t); });
  };
  const dataplane::Buffer& parent = *world_.plane(began.parent.node).data().find_buffer(began.parent_copy);
  if (began.request.has_children && !parent.sealed() && filling(began.parent, began.parent_copy) != nullptr &&
      parent.valid(began.request.slice).front() <= began.request.offset)
    world_.violate("strictly-ahead", node_name(began.parent.node) + " accepted " + node_name(began.child.node) +
                                         ", which has children and is at byte " + std::to_string(began.request.offset));
  const Transfer* above = &began;
  for (std::size_t hops = 0; hops <= world_.size(); ++hops) {
    above = filling(above->parent, above->parent_copy);
    if (above == nullptr) return;
    if (above->parent == began.child && above->parent_copy == began.child_copy) break;
  }
  world_.violate("no-cycles", object(began.request.id) + ": " + node_name(began.child.node) + " is filled by " +
                                  node_name(began.parent.node) + ", which is filled by it");
}

// --- deaths

// Ids with a complete copy on a running node, and whether one of the copies is the primary.
std::map<ObjectId, bool> Judge::complete_copies(NodeIndex except) const {
  std::map<ObjectId, bool> found;
  for (const NodeIndex node : world_.running_nodes()) {
    if (node == except) continue;
    for (const ipc::ObjectInfo& info : world_.agent(node).objects())
      if (info.state == CopyState::kComplete) found[info.id] |= info.primary;
  }
  return found;
}

std::set<ObjectId> Judge::available(NodeIndex except) const {
  std::set<ObjectId> ids;
  for (const auto& [id, pinned] : complete_copies(except)) ids.insert(id);
  return ids;
}

void Judge::copies_go(NodeIndex node) {
  const std::map<ObjectId, bool> left = complete_copies(node);
  for (auto& [id, record] : ledger_.objects) {
    if (!ledger_.is_sealed(record, world_.now())) continue;
    const auto it = left.find(id);
    if (it == left.end()) record.bare = world_.now();
    else if (!it->second) unpinned_.insert(id);
  }
}

void Judge::watch_unpinned() {
  if (unpinned_.empty()) return;
  const std::map<ObjectId, bool> left = complete_copies(kNobody);
  std::erase_if(unpinned_, [&](const ObjectId& id) {
    const auto it = left.find(id);
    if (it == left.end()) ledger_.objects[id].bare = world_.now();
    return it == left.end() || it->second;
  });
}

void Judge::renamed(NodeIndex node, NodeRef) {
  if (last_disturbance_) return;  // its consequences may take long to show
  world_.violate("no-wrong-verdict", node_name(node) + " is alive and can be reached, but was given up");
}

}  // namespace hoplite::sim
