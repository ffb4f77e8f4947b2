#include "sim/bulk.h"

#include <algorithm>
#include <cstring>

namespace hoplite::sim {
namespace {

void erase_one(std::vector<TransferIndex>& list, TransferIndex transfer) {
  const auto it = std::find(list.begin(), list.end(), transfer);
  if (it != list.end()) list.erase(it);
}

}  // namespace

Bulk::Bulk(EventQueue& queue, Hosts& hosts, Random& random, BulkSink& sink, const BulkOptions& options)
    : queue_(queue), hosts_(hosts), random_(random), sink_(sink), options_(options) {}

// --- copies

Bulk::Copy* Bulk::find_copy(NodeIndex node, CopyKey copy, const char* for_what) {
  auto& copies = planes_[node].copies;
  const auto it = copies.find(copy);
  if (it != copies.end() && !it->second.closing) return &it->second;
  sink_.contract_broken(node, std::string(for_what) + " on copy " + std::to_string(copy) + ", which is not open");
  return nullptr;
}

void Bulk::open_copy(NodeIndex node, const effect::OpenCopy& open) {
  auto& copies = planes_[node].copies;
  for (const auto& [key, other] : copies) {
    const bool overlap = open.extent.offset < other.extent.end() && other.extent.offset < open.extent.end();
    if (overlap || key == open.copy)
      sink_.contract_broken(node, "copy " + std::to_string(open.copy) + " is opened over copy " + std::to_string(key));
  }
  const ByteSpan arena = sink_.arena(node);
  if (!arena.empty() && open.extent.end() > arena.size()) sink_.contract_broken(node, "an extent outside the arena");
  if (open.slices == 0) return sink_.contract_broken(node, "a copy without slices");
  Copy& copy = copies[open.copy];
  copy.key = open.copy;
  copy.extent = open.extent;
  copy.size = open.only == kAllSlices ? open.extent.size : open.size;
  copy.only = open.only;
  copy.sealed = open.complete;
  copy.watermarks.resize(open.slices);
  copy.final.resize(open.slices);
  for (std::uint32_t i = 0; i < open.slices; ++i) {
    const bool complete = open.complete && copy.has(i);
    copy.watermarks[i] = complete ? copy.range(i).end : copy.range(i).begin;
    copy.final[i] = complete;
  }
  const SliceRange room = copy.room();
  if (room.end - room.begin != open.extent.size || (open.only != kAllSlices && open.only >= open.slices))
    sink_.contract_broken(node, "copy " + std::to_string(open.copy) + ": the extent is not as large as its slice");
}

void Bulk::grow_copy(NodeIndex node, const effect::GrowCopy& grow) {
  Copy* copy = find_copy(node, grow.copy, "GrowCopy");
  if (copy == nullptr) return;
  if (copy->watermarks.size() != 1 || grow.bytes > copy->extent.size || grow.bytes < copy->watermarks[0])
    return sink_.contract_broken(node, "GrowCopy to " + std::to_string(grow.bytes) + " bytes");
  if (planes_[node].combines.contains({grow.copy, 0}))
    return sink_.contract_broken(node, "GrowCopy of what is being combined");
  copy->watermarks[0] = grow.bytes;
  grown(node, *copy);
}

void Bulk::seal_copy(NodeIndex node, const effect::SealCopy& seal) {
  Copy* copy = find_copy(node, seal.copy, "SealCopy");
  if (copy == nullptr) return;
  const std::string name = "SealCopy of copy " + std::to_string(seal.copy);
  const bool whole = seal.slice == kAllSlices;
  if (!whole && !copy->has(seal.slice)) return sink_.contract_broken(node, name + ": a slice that it has not");
  for (std::uint32_t i = 0; i < copy->slices(); ++i)
    if (copy->has(i) && (whole || i == seal.slice) && copy->watermarks[i] != copy->range(i).end)
      return sink_.contract_broken(node, name + ", which has not all its bytes");
  if (whole) copy->sealed = true;
  else copy->final[seal.slice] = true;
  grown(node, *copy);
}

void Bulk::follow_copy(NodeIndex node, CopyKey key) {
  if (Copy* copy = find_copy(node, key, "FollowCopy")) copy->following = true;
}

ValidBytes Bulk::valid(NodeIndex node, CopyKey copy, std::uint32_t slice) const {
  const auto it = planes_[node].copies.find(copy);
  if (it == planes_[node].copies.end() || slice >= it->second.watermarks.size()) return {};
  return {it->second.range(slice), it->second.watermarks[slice]};
}

void Bulk::grown(NodeIndex node, Copy& copy) {
  for (std::size_t i = 0; i < copy.serves.size(); ++i) pump(copy.serves[i]);
  for (std::size_t i = 0; i < copy.readers.size(); ++i) go_on(node, copy.readers[i]);
  if (!copy.following || copy.grown_posted) return;
  copy.grown_posted = true;
  const Duration delay{static_cast<std::int64_t>(random_.below(options_.post_delay.ns + 1))};
  struct Post {
    Bulk* bulk;
    ProcessId process;
    CopyKey key;
    void operator()() const {
      if (!bulk->hosts_.alive(process) || bulk->hosts_.defer(process.node, *this)) return;
      const auto it = bulk->planes_[process.node].copies.find(key);
      if (it == bulk->planes_[process.node].copies.end() || it->second.closing) return;
      it->second.grown_posted = false;
      bulk->sink_.bulk_event(process.node, event::CopyGrown{key});
    }
  };
  queue_.after(delay, Post{this, hosts_.process(node), copy.key});
}

void Bulk::close_copy(NodeIndex node, CopyKey key) {
  Copy* copy = find_copy(node, key, "CloseCopy");
  if (copy == nullptr) return;
  if (!copy->readers.empty())
    return sink_.contract_broken(node, "CloseCopy of copy " + std::to_string(key) + ", which is being combined into " +
                                           std::to_string(copy->readers.front().out));
  copy->closing = true;
  for (const TransferIndex serve : copy->serves) {
    Transfer& transfer = transfers_[serve];
    if (transfer.parent_state != ParentState::kServing) continue;
    transfer.stop_code = Code::kUnavailable;
    end_serve(serve);
  }
  for (const TransferIndex pull : copy->pulls) {
    if (transfers_[pull].child_state == ChildState::kOver) continue;
    end_pull(pull, PullEnd::kCancelled);
    push_up(transfers_[pull].link, {pull, true});
  }
  close_if_idle(node, key);
}

void Bulk::close_if_idle(NodeIndex node, CopyKey key) {
  const auto it = planes_[node].copies.find(key);
  if (it == planes_[node].copies.end() || !it->second.closing) return;
  if (!it->second.serves.empty() || !it->second.pulls.empty()) return;
  struct Post {
    Bulk* bulk;
    ProcessId process;
    CopyKey key;
    void operator()() const {
      if (!bulk->hosts_.alive(process) || bulk->hosts_.defer(process.node, *this)) return;
      bulk->forget_combines_into(process.node, key);
      if (bulk->planes_[process.node].copies.erase(key) == 0) return;
      bulk->sink_.bulk_event(process.node, event::CopyClosed{key});
    }
  };
  const Duration delay{static_cast<std::int64_t>(random_.below(options_.post_delay.ns + 1))};
  queue_.after(delay, Post{this, hosts_.process(node), key});
}

// --- pulls

void Bulk::start_pull(NodeIndex node, const effect::StartPull& start) {
  Copy* copy = find_copy(node, start.copy, "StartPull");
  if (copy == nullptr) return;
  const PullRequest& pull = start.pull;
  const std::string name = "pull " + std::to_string(pull.transfer) + " of slice " + std::to_string(pull.slice);
  if (pull.slices != copy->slices() || !copy->has(pull.slice))
    return sink_.contract_broken(node, name + ": the copy has other slices");
  if (planes_[node].combines.contains({start.copy, pull.slice}))
    return sink_.contract_broken(node, name + ": it is being combined");
  if (pull.offset != copy->watermarks[pull.slice])
    return sink_.contract_broken(node, name + ": starts at " + std::to_string(pull.offset) + ", the copy is at " +
                                           std::to_string(copy->watermarks[pull.slice]));
  for (const TransferIndex other : copy->pulls)
    if (transfers_[other].request.slice == pull.slice)
      return sink_.contract_broken(node, name + ": another pull of that slice has not ended");
  if (planes_[node].pulls.contains(pull.transfer)) return sink_.contract_broken(node, name + ": the number is in use");
  if (pull.target.is_nil() || (!pull.slot && pull.target != pull.id))
    return sink_.contract_broken(node, name + ": does not say what it is for");

  const auto index = static_cast<TransferIndex>(transfers_.size());
  Transfer& transfer = transfers_.emplace_back();
  ends_.push_back(PullEnd::kComplete);
  transfer.child = hosts_.process(node);
  transfer.request = pull;
  transfer.patience = start.patience;
  transfer.range = copy->range(pull.slice);
  transfer.child_copy = copy;
  transfer.last_frame = queue_.now();
  copy->pulls.push_back(index);
  planes_[node].pulls[pull.transfer] = index;
  transfer.link = link_to(node, start.parent, start.address);
  links_[transfer.link].transfers.push_back(index);
  push_up(transfer.link, {index, false});
  queue_.after(start.patience, [this, index] { check_silence(index); });
}

void Bulk::check_silence(TransferIndex index) {
  const Transfer& transfer = transfers_[index];
  if (transfer.child_state == ChildState::kOver || !hosts_.alive(transfer.child)) return;
  if (hosts_.defer(transfer.child.node, [this, index] { check_silence(index); })) return;
  // While frames of other streams take their time on a slow link, an accepted one's parent is not silent, and the answer to
  // another pull may be queued behind them, as in transport/tcp/pull_connection.cc.
  const bool accepted = transfer.child_state == ChildState::kReceiving;
  const Time link_heard = links_[transfer.link].last_heard;
  const bool busy = queue_.now() < link_heard + transfer.patience;
  const Time heard = accepted ? std::max(transfer.last_frame, link_heard) : transfer.last_frame;
  const Time due = heard + transfer.patience * (accepted || !busy ? 1 : 4);
  if (queue_.now() < due) {
    queue_.at(due, [this, index] { check_silence(index); });
    return;
  }
  queue_.after(transfer.patience, [this, index] { check_silence(index); });
  sink_.bulk_event(transfer.child.node, event::PullSilent{transfer.request.transfer});
}

void Bulk::cancel_pull(NodeIndex node, TransferId id) {
  const auto it = planes_[node].pulls.find(id);
  if (it == planes_[node].pulls.end()) return;  // it has ended, and the event is under way or was just handled
  const TransferIndex index = it->second;
  if (transfers_[index].child_state == ChildState::kOver) return;
  end_pull(index, PullEnd::kCancelled);
  push_up(transfers_[index].link, {index, true});
}

void Bulk::end_pull(TransferIndex index, PullEnd how) {
  transfers_[index].child_state = ChildState::kOver;
  ends_[index] = how;
  post(index, &Bulk::deliver_pull_ended);
}

void Bulk::deliver_pull_ended(TransferIndex index) {
  Transfer& transfer = transfers_[index];
  const NodeIndex node = transfer.child.node;
  if (!hosts_.alive(transfer.child)) return;
  if (hosts_.defer(node, [this, index] { deliver_pull_ended(index); })) return;
  if (ends_[index] != PullEnd::kComplete) scribble(transfer);
  Copy& copy = *transfer.child_copy;
  const ValidBytes valid{copy.range(transfer.request.slice), copy.watermarks[transfer.request.slice]};
  erase_one(copy.pulls, index);
  planes_[node].pulls.erase(transfer.request.transfer);
  const CopyKey key = copy.key;
  sink_.bulk_event(node, event::PullEnded{transfer.request.transfer, ends_[index], valid});
  close_if_idle(node, key);
}

// A receiver may be in the middle of a recv() into the extent until it says that the pull has ended.
void Bulk::scribble(const Transfer& transfer) {
  const ByteSpan arena = sink_.arena(transfer.child.node);
  if (arena.empty()) return;
  const Copy& copy = *transfer.child_copy;
  const std::uint64_t from = copy.watermarks[transfer.request.slice];
  const std::uint64_t length = random_.below(std::min<std::uint64_t>(transfer.range.end - from, 64) + 1);
  std::memset(arena.data() + copy.place(from), 0xEE, length);
}

// --- serves

TransferIndex Bulk::find_asked(NodeIndex node, ChannelId channel, TransferId id) const {
  const auto it = channels_.find(channel);
  if (it == channels_.end()) return kNoTransfer;
  const Link& link = links_[it->second];
  if (!link.parent_open || link.parent.node != node) return kNoTransfer;
  for (const TransferIndex index : link.transfers)
    if (transfers_[index].request.transfer == id)
      return transfers_[index].parent_state == ParentState::kAsked ? index : kNoTransfer;
  return kNoTransfer;
}

void Bulk::accept_pull(NodeIndex node, const effect::AcceptPull& accept) {
  Copy* copy = find_copy(node, accept.copy, "AcceptPull");
  if (copy == nullptr) return;
  if (planes_[node].serves.contains(accept.serve)) return sink_.contract_broken(node, "a serve's number is in use");
  if (copy->only != kAllSlices && (accept.pull.slices != copy->slices() || accept.pull.slice != copy->only))
    return sink_.contract_broken(node, "AcceptPull of a slice that copy " + std::to_string(accept.copy) + " has not");
  const TransferIndex index = find_asked(node, accept.channel, accept.pull.transfer);
  if (index == kNoTransfer) {  // the child has gone or changed its mind while the pull was parked
    struct Post {
      Bulk* bulk;
      ProcessId process;
      ServeId serve;
      void operator()() const {
        if (!bulk->hosts_.alive(process) || bulk->hosts_.defer(process.node, *this)) return;
        bulk->sink_.bulk_event(process.node, event::ServeEnded{serve});
      }
    };
    queue_.after(options_.post_delay, Post{this, hosts_.process(node), accept.serve});
    return;
  }
  Transfer& transfer = transfers_[index];
  transfer.parent_state = ParentState::kServing;
  transfer.parent_copy = copy;
  transfer.serve = accept.serve;
  transfer.next_send = transfer.request.offset;
  transfer.last_sent = queue_.now();
  copy->serves.push_back(index);
  planes_[node].serves[accept.serve] = index;
  push_frame(index, {FrameType::kAccept});
  sink_.transfer_began(index);
  queue_.after(options_.starved_every, [this, index] { check_starved(index); });
  pump(index);
}

void Bulk::refuse_pull(NodeIndex node, const effect::RefusePull& refuse) {
  const TransferIndex index = find_asked(node, refuse.channel, refuse.transfer);
  if (index == kNoTransfer) return;
  transfers_[index].parent_state = ParentState::kOver;
  push_frame(index, {FrameType::kAbort, refuse.code});
}

// A piece that is on the wire is finished first: its bytes are still being read.
void Bulk::end_serve(TransferIndex index) {
  Transfer& transfer = transfers_[index];
  if (transfer.sending > 0) {
    transfer.parent_state = ParentState::kStopping;
    return;
  }
  transfer.parent_state = ParentState::kOver;
  if (transfer.stop_code != Code::kOk) push_frame(index, {FrameType::kAbort, transfer.stop_code});
  post(index, &Bulk::deliver_serve_ended);
}

void Bulk::deliver_serve_ended(TransferIndex index) {
  Transfer& transfer = transfers_[index];
  const NodeIndex node = transfer.parent.node;
  if (!hosts_.alive(transfer.parent)) return;
  if (hosts_.defer(node, [this, index] { deliver_serve_ended(index); })) return;
  const CopyKey key = transfer.parent_copy->key;
  erase_one(transfer.parent_copy->serves, index);
  planes_[node].serves.erase(transfer.serve);
  sink_.bulk_event(node, event::ServeEnded{transfer.serve});
  close_if_idle(node, key);
}

// Hands something over to the agent's thread; in order for one transfer.
void Bulk::post(TransferIndex index, void (Bulk::*deliver)(TransferIndex)) {
  Transfer& transfer = transfers_[index];
  const Duration delay{static_cast<std::int64_t>(random_.below(options_.post_delay.ns + 1))};
  transfer.last_post = std::max(transfer.last_post, queue_.now() + delay);
  queue_.at(transfer.last_post, [this, index, deliver] { (this->*deliver)(index); });
}

// --- facts

TransferIndex Bulk::filling(NodeIndex node, CopyKey copy, std::uint32_t slice) const {
  const auto it = planes_[node].copies.find(copy);
  if (it == planes_[node].copies.end()) return kNoTransfer;
  for (const TransferIndex index : it->second.pulls) {
    const Transfer& transfer = transfers_[index];
    if (transfer.request.slice == slice && transfer.child_state != ChildState::kOver &&
        transfer.parent_state == ParentState::kServing)
      return index;
  }
  return kNoTransfer;
}

std::size_t Bulk::active_pulls(NodeIndex node) const { return planes_[node].pulls.size(); }
std::size_t Bulk::active_serves(NodeIndex node) const { return planes_[node].serves.size(); }

}  // namespace hoplite::sim
