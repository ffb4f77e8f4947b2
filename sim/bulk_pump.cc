// Pieces on the uplink, frames on the way, bytes into the child's copy.
#include <algorithm>
#include <cstring>

#include "sim/bulk.h"

namespace hoplite::sim {

// How far the copy is valid without a gap, from `offset` on: over as many of its slices as are complete.
std::uint64_t Bulk::valid_until(const Copy& copy, std::uint64_t offset) {
  const std::uint32_t slices = copy.slices();
  if (slices == 1 || copy.size == 0) return copy.watermarks[0];
  const std::uint64_t step = copy.range(0).end;
  auto slice = static_cast<std::uint32_t>(std::min<std::uint64_t>(offset / step, slices - 1));
  while (slice + 1 < slices && copy.watermarks[slice] == copy.range(slice).end) ++slice;
  return copy.watermarks[slice];
}

void Bulk::pump(TransferIndex index) {
  Transfer& transfer = transfers_[index];
  if (transfer.parent_state != ParentState::kServing || transfer.queued || transfer.sending > 0) return;
  const NodeIndex node = transfer.parent.node;
  if (transfer.next_send >= transfer.range.end) {
    const Copy& copy = *transfer.parent_copy;
    const std::uint32_t slice = transfer.request.slice;
    if (!copy.sealed && !(slice < copy.final.size() && copy.final[slice])) return;
    push_frame(index, {FrameType::kEnd});
    end_serve(index);
    return;
  }
  const std::uint64_t valid = valid_until(*transfer.parent_copy, transfer.next_send);
  if (valid <= transfer.next_send || transfer.in_flight >= options_.window_bytes) return;
  transfer.queued = true;
  planes_[node].turns.push_back(index);
  take_turn(node);
}

void Bulk::take_turn(NodeIndex node) {
  Plane& plane = planes_[node];
  while (!plane.uplink_busy && !plane.turns.empty() && !hosts_[node].paused) {
    const TransferIndex index = plane.turns.front();
    plane.turns.pop_front();
    Transfer& transfer = transfers_[index];
    transfer.queued = false;
    if (transfer.parent_state != ParentState::kServing) continue;
    const std::uint64_t valid = std::min(valid_until(*transfer.parent_copy, transfer.next_send), transfer.range.end);
    // Bytes trickle over a slow link, they do not come in lumps: nobody whose turn it is falls silent.
    const double rate = std::min(hosts_[node].link.up, hosts_[transfer.child.node].link.down);
    const double trickle = rate * options_.starved_every.seconds() / static_cast<double>(plane.turns.size() + 1);
    std::uint64_t most = std::min(options_.piece_bytes, static_cast<std::uint64_t>(trickle) + 1);
    if (options_.uneven_pieces) most = 1 + random_.below(most);
    transfer.sending = std::min(valid - transfer.next_send, most);
    plane.uplink_busy = true;
    const Duration wire = Duration::from_seconds(static_cast<double>(transfer.sending) / hosts_[node].link.up);
    const ProcessId process = transfer.parent;
    queue_.after(wire, [this, process, index] { piece_sent(process, index); });
  }
}

void Bulk::piece_sent(ProcessId process, TransferIndex index) {
  if (!hosts_.alive(process)) return;
  Transfer& transfer = transfers_[index];
  planes_[process.node].uplink_busy = false;
  Transfer::Frame frame{FrameType::kData, Code::kOk, transfer.next_send, transfer.sending, {}};
  const ByteSpan arena = sink_.arena(process.node);
  if (!arena.empty()) {
    const std::byte* from = arena.data() + transfer.parent_copy->place(transfer.next_send);
    frame.bytes.assign(reinterpret_cast<const char*>(from), transfer.sending);
  }
  transfer.next_send += transfer.sending;
  transfer.in_flight += transfer.sending;
  transfer.sending = 0;
  push_frame(index, std::move(frame));
  if (transfer.parent_state == ParentState::kStopping) end_serve(index);
  else pump(index);
  take_turn(process.node);
}

// A live parent with nothing to send says so.
void Bulk::check_starved(TransferIndex index) {
  Transfer& transfer = transfers_[index];
  if (transfer.parent_state != ParentState::kServing || !hosts_.alive(transfer.parent)) return;
  if (hosts_.defer(transfer.parent.node, [this, index] { check_starved(index); })) return;
  if (queue_.now() >= transfer.last_sent + options_.starved_every) push_frame(index, {FrameType::kStarved});
  queue_.at(transfer.last_sent + options_.starved_every, [this, index] { check_starved(index); });
}

void Bulk::push_frame(TransferIndex index, Transfer::Frame frame) {
  Transfer& transfer = transfers_[index];
  transfer.last_sent = queue_.now();
  transfer.frames.push_back(std::move(frame));
  const Time when = queue_.now() + hosts_.delay(transfer.parent.node, transfer.child.node);
  transfer.last_arrival = std::max(transfer.last_arrival, when);
  queue_.at(transfer.last_arrival, [this, index] { frame_arrived(index); });
}

// The last bit is there; the downlink may need longer if others came before.
void Bulk::frame_arrived(TransferIndex index) {
  Transfer& transfer = transfers_[index];
  const NodeIndex child = transfer.child.node;
  if (!hosts_.alive(transfer.child) || !links_[transfer.link].child_open || transfer.frames.empty()) return;
  if (!hosts_.path_open(transfer.parent.node, child)) {
    ++transfer.held;
    return;
  }
  if (transfer.on_downlink == transfer.frames.size()) return;
  const Transfer::Frame& frame = transfer.frames[transfer.on_downlink++];
  const Duration wire = Duration::from_seconds(static_cast<double>(frame.length) / hosts_[child].link.down);
  Time& free = planes_[child].downlink_free;
  free = std::max(queue_.now(), free + wire);
  if (free > queue_.now()) queue_.at(free, [this, index] { frame_delivered(index); });
  else frame_delivered(index);
}

void Bulk::frame_delivered(TransferIndex index) {
  Transfer& transfer = transfers_[index];
  if (!hosts_.alive(transfer.child) || !links_[transfer.link].child_open || transfer.frames.empty()) return;
  if (hosts_.defer(transfer.child.node, [this, index] { frame_delivered(index); })) return;
  const Transfer::Frame frame = std::move(transfer.frames.front());
  transfer.frames.pop_front();
  --transfer.on_downlink;
  transfer.last_frame = links_[transfer.link].last_heard = queue_.now();
  const bool over = transfer.child_state == ChildState::kOver;
  switch (frame.type) {
    case FrameType::kAccept:
      if (over) break;
      transfer.child_state = ChildState::kReceiving;
      sink_.bulk_event(transfer.child.node, event::PullAccepted{transfer.request.transfer});
      break;
    case FrameType::kData: take_data(index, frame); break;
    case FrameType::kEnd:
      if (over) break;
      transfer.child_copy->final[transfer.request.slice] = true;
      end_pull(index, PullEnd::kComplete);
      grown(transfer.child.node, *transfer.child_copy);
      break;
    case FrameType::kAbort:
      if (!over) end_pull(index, transfer.child_state == ChildState::kAsking ? PullEnd::kRefused : PullEnd::kAborted);
      break;
    default: break;  // kStarved: a sign of life
  }
}

void Bulk::take_data(TransferIndex index, const Transfer::Frame& frame) {
  Transfer& transfer = transfers_[index];
  transfer.in_flight -= frame.length;
  if (transfer.child_state == ChildState::kReceiving) {
    Copy& copy = *transfer.child_copy;
    std::uint64_t& watermark = copy.watermarks[transfer.request.slice];
    CHECK(frame.offset == watermark, "a frame that is not the next one", frame.offset, watermark);
    if (!frame.bytes.empty()) {
      const ByteSpan arena = sink_.arena(transfer.child.node);
      std::memcpy(arena.data() + copy.place(frame.offset), frame.bytes.data(), frame.bytes.size());
    }
    watermark = frame.offset + frame.length;
    bytes_delivered_ += frame.length;
    grown(transfer.child.node, copy);
  }
  if (hosts_.alive(transfer.parent)) pump(index);
}

}  // namespace hoplite::sim
