#include "dataplane/data_plane.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.h"

namespace hoplite::dataplane {

DataPlane::DataPlane(const Options& options, Host& host) : options_(options), host_(host), load_(options.lanes, 0) {
  CHECK(options.lanes >= 1 && options.lanes <= kMaxLanes, options.lanes);
}

void DataPlane::take(const LaneEvents& events) {
  for (const LaneEvent& event : events) std::visit([this](const auto& e) { handle(e); }, event);
}

// --- links

void DataPlane::disconnect(NodeId node) {
  for (std::uint32_t i = 0; i < options_.lanes; ++i) host_.run(i, [node](Lane& lane) { lane.disconnect(node); });
}

void DataPlane::disconnect_all() {
  for (std::uint32_t i = 0; i < options_.lanes; ++i) host_.run(i, [](Lane& lane) { lane.disconnect_all(); });
}

std::pair<ChannelId, std::uint32_t> DataPlane::new_channel() {
  const ChannelId channel = ++channels_;
  return {channel, lane_of(channel)};
}

// --- copies

DataPlane::OpenCopy& DataPlane::find(CopyKey copy) {
  const auto it = copies_.find(copy);
  CHECK(it != copies_.end() && !it->second.closing, "copy is not open:", copy);
  return it->second;
}

const Buffer* DataPlane::find_buffer(CopyKey copy) const {
  const auto it = copies_.find(copy);
  return it == copies_.end() ? nullptr : it->second.buffer.get();
}

const Buffer* DataPlane::buffer_of_pull(TransferId transfer) const {
  const auto it = pulls_.find(transfer);
  return it == pulls_.end() ? nullptr : find_buffer(it->second.copy);
}

void DataPlane::check_layout(const effect::OpenCopy& open) const {
  CHECK(open.extent.end() <= options_.arena_bytes && open.slices > 0, open.copy, open.extent.end(),
        options_.arena_bytes, open.slices);
  if (open.only == kAllSlices) return;
  const SliceRange range = slice_range(open.size, open.slices, open.only);
  CHECK(open.only < open.slices && open.extent.size == range.size(), open.copy, open.only, open.slices,
        open.extent.size);
}

void DataPlane::execute(const effect::OpenCopy& open) {
  check_layout(open);
  std::byte* const memory = options_.arena == nullptr ? nullptr : options_.arena + open.extent.offset;
  const bool fresh = copies_.emplace(open.copy, OpenCopy{std::make_shared<Buffer>(open, memory)}).second;
  CHECK(fresh, "copy keys are used once:", open.copy);
}

void DataPlane::execute(const effect::GrowCopy& grow) {
  Buffer& buffer = *find(grow.copy).buffer;
  CHECK(buffer.slices() == 1 && !combines_.contains({grow.copy, 0}), grow.copy, buffer.slices());
  ValidBytes valid = buffer.valid(0);
  valid.extend_to(std::max(grow.bytes, valid.front()));
  buffer.set_valid(0, valid);
  advanced(buffer);
}

void DataPlane::execute(const effect::SealCopy& seal) {
  Buffer& buffer = *find(seal.copy).buffer;
  const bool whole = seal.slice == kAllSlices;
  CHECK(whole || buffer.has(seal.slice), seal.copy, seal.slice);
  for (std::uint32_t i = 0; i < buffer.slices(); ++i)
    if (buffer.has(i) && (whole || i == seal.slice))
      CHECK(buffer.valid(i).complete(), "not all bytes are there:", seal.copy, i, buffer.valid(i).front());
  if (whole) buffer.seal();
  else buffer.set_final(seal.slice);
  advanced(buffer);
}

void DataPlane::execute(const effect::FollowCopy& follow) {
  Buffer& buffer = *find(follow.copy).buffer;
  buffer.follow();
  // What grew between the caller's look at the valid bytes and this call raised no event.
  if (buffer.begin_growth_report()) host_.deliver({BufferGrown{buffer.shared_from_this()}});
}

// The loop thread has added valid bytes, or sealed it.
void DataPlane::advanced(Buffer& buffer) {
  for (std::uint64_t following = buffer.following_lanes(); following != 0; following &= following - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(following));
    if (!buffer.begin_wake(lane)) continue;
    host_.run(lane, [shared = buffer.shared_from_this()](Lane& at) { at.wake(*shared); });
  }
  if (buffer.begin_growth_report()) host_.deliver({BufferGrown{buffer.shared_from_this()}});
}

ValidBytes DataPlane::valid(CopyKey copy, std::uint32_t slice) const {
  const Buffer* buffer = find_buffer(copy);
  return buffer != nullptr && slice < buffer->slices() ? buffer->valid(slice) : ValidBytes{};
}

void DataPlane::execute(const effect::CloseCopy& close) {
  OpenCopy& open = find(close.copy);
  CHECK(open.readers == 0, "an input is closed before its combination has ended:", close.copy);
  open.closing = true;
  if (open.users == 0) host_.deliver({CloseAsked{close.copy}});
  else stop_users(close.copy);
}

void DataPlane::stop_users(CopyKey copy) {
  for (const auto& [transfer, user] : pulls_)
    if (user.copy == copy) host_.run(user.lane, [transfer = transfer](Lane& lane) { lane.cancel_pull(transfer); });
  for (const auto& [serve, user] : serves_)
    if (user.copy == copy)
      host_.run(user.lane, [serve = serve](Lane& lane) { lane.stop_serve(serve, Code::kUnavailable); });
  for (auto it = combines_.lower_bound({copy, 0}); it != combines_.end() && it->first.first == copy; ++it)
    host_.run(it->second.lane, [copy, slice = it->first.second](Lane& lane) { lane.stop_combine(copy, slice); });
}

void DataPlane::release(CopyKey copy) {
  const auto it = copies_.find(copy);
  if (it == copies_.end() || !it->second.closing || it->second.users > 0) return;
  copies_.erase(it);
  host_.on_event(event::CopyClosed{copy});
}

// --- transfers

void DataPlane::execute(const effect::StartPull& start) {
  OpenCopy& open = find(start.copy);
  const PullRequest& pull = start.pull;
  CHECK(pull.slices == open.buffer->slices() && open.buffer->has(pull.slice), pull.transfer, pull.slice, pull.slices);
  CHECK(pull.offset == open.buffer->valid(pull.slice).front(), pull.transfer, pull.offset);
  CHECK(!combines_.contains({start.copy, pull.slice}), "it is being combined:", start.copy, pull.slice);
  CHECK(std::ranges::find(open.pulled, pull.slice) == open.pulled.end(), "it is being pulled:", start.copy, pull.slice);
  CHECK(!pull.target.is_nil() && (pull.slot || pull.target == pull.id), "it does not say what it is for",
        pull.transfer);
  const std::uint32_t lane = least_busy_lane();
  CHECK(pulls_.emplace(pull.transfer, User{lane, start.copy, pull.slice}).second,
        "transfer numbers are used once:", pull.transfer);
  ++open.users;
  ++load_[lane];
  open.pulled.push_back(pull.slice);
  host_.run(lane, [start, buffer = open.buffer](Lane& at) { at.start_pull(start, buffer); });
}

std::uint32_t DataPlane::least_busy_lane() const {
  return static_cast<std::uint32_t>(std::min_element(load_.begin(), load_.end()) - load_.begin());
}

void DataPlane::execute(const effect::CancelPull& cancel) {
  const auto it = pulls_.find(cancel.transfer);
  if (it == pulls_.end()) return;  // it has ended, and the event is under way or was just handled
  host_.run(it->second.lane, [transfer = cancel.transfer](Lane& lane) { lane.cancel_pull(transfer); });
}

void DataPlane::execute(const effect::PrioritizePull& prioritize) {
  const auto it = pulls_.find(prioritize.transfer);
  if (it == pulls_.end()) return;
  host_.run(it->second.lane,
            [prioritize](Lane& lane) { lane.prioritize_pull(prioritize.transfer, prioritize.priority); });
}

void DataPlane::execute(const effect::AcceptPull& accept) {
  OpenCopy& open = find(accept.copy);
  const std::uint32_t lane = lane_of(accept.channel);
  CHECK(serves_.emplace(accept.serve, User{lane, accept.copy, accept.pull.slice}).second,
        "serve numbers are used once:", accept.serve);
  ++open.users;
  ++load_[lane];
  host_.run(lane, [accept, buffer = open.buffer](Lane& at) { at.accept_pull(accept, buffer); });
}

void DataPlane::execute(const effect::RefusePull& refuse) {
  host_.run(lane_of(refuse.channel), [refuse](Lane& lane) { lane.refuse_pull(refuse); });
}

// --- combinations

// A microsecond of arithmetic is done sooner than another thread is woken.
bool DataPlane::takes_no_time(const Combination::Work& work) {
  constexpr std::uint64_t kFewBytes = 16 * kKiB;
  return work.out->range(work.slice).size() * work.inputs.size() <= kFewBytes && work.op != ReduceOp::kMedian &&
         std::ranges::all_of(work.inputs, [](const Combination::Input& input) { return input.buffer->sealed(); });
}

void DataPlane::combine_here(Combination::Work work) {
  const BufferPtr out = work.out;
  const std::uint32_t slice = work.slice;
  const bool final = work.final;
  Combination combination(std::move(work));
  combination.step(out->size());
  CHECK(combination.complete());
  if (final) out->set_final(slice);
  advanced(*out);
  host_.deliver({CombineEnded{out->key(), slice, true}});
}

void DataPlane::execute(const effect::Combine& order) {
  Combination::Work work = work_of(order);
  const bool here = takes_no_time(work);
  const std::uint32_t lane = least_busy_lane();
  Combining combining{lane, {}};
  for (const effect::Combine::Input& input : order.inputs) {
    OpenCopy& open = find(input.copy);
    ++open.users;
    ++open.readers;
    combining.inputs.push_back(input.copy);
  }
  CHECK(combines_.emplace(std::pair{order.out, order.slice}, std::move(combining)).second, order.out, order.slice);
  ++find(order.out).users;
  ++load_[lane];
  if (here) return combine_here(std::move(work));
  host_.run(lane, [work = std::move(work)](Lane& at) { at.start_combine(work); });
}

// The same with the buffers themselves, after a look at whether it can be done.
Combination::Work DataPlane::work_of(const effect::Combine& order) {
  const BufferPtr& out = find(order.out).buffer;
  CHECK(out->has(order.slice) && !out->final(order.slice) && !order.inputs.empty(), order.out, order.slice);
  const SliceRange range = out->range(order.slice);
  CHECK(out->valid(order.slice).count() == 0, "it has bytes already:", order.out, order.slice);
  CHECK(range.size() % size_of(order.type) == 0, range.size(), to_string(order.type));
  CHECK(can_reduce(order.op, order.type), to_string(order.op), to_string(order.type));
  CHECK(order.divide_by == 1 || (order.divide_by > 1 && is_floating(order.type)), order.divide_by);
  Combination::Work work{out, order.slice, order.op, order.type, order.divide_by, order.final, {}};
  for (const effect::Combine::Input& input : order.inputs) {
    const BufferPtr& buffer = find(input.copy).buffer;
    CHECK(input.copy != order.out, "a copy is combined into itself:", order.out);
    CHECK(buffer->sealed() || buffer->has(input.slice), input.copy, input.slice);
    const SliceRange there = buffer->sealed() ? buffer->room() : buffer->range(input.slice);
    CHECK(input.begin >= there.begin && input.begin + range.size() <= there.end, input.copy, input.begin);
    work.inputs.push_back({buffer, input.slice, input.begin});
  }
  return work;
}

// --- what the lanes report

void DataPlane::let_go(const User& user) {
  --load_[user.lane];
  --copies_.at(user.copy).users;
}

void DataPlane::handle(const event::PullEnded& event) {
  const User user = pulls_.at(event.transfer);
  pulls_.erase(event.transfer);
  std::erase(copies_.at(user.copy).pulled, user.slice);
  let_go(user);
  host_.on_event(event);
  release(user.copy);
}

void DataPlane::handle(const event::ServeEnded& event) {
  const User user = serves_.at(event.serve);
  serves_.erase(event.serve);
  let_go(user);
  host_.on_event(event);
  release(user.copy);
}

void DataPlane::handle(const event::ServePrioritized& event) {
  if (serves_.contains(event.serve)) host_.on_event(event);
}

void DataPlane::handle(const CombineEnded& event) {
  const auto it = combines_.find({event.out, event.slice});
  CHECK(it != combines_.end(), event.out, event.slice);
  const Combining ended = std::move(it->second);
  combines_.erase(it);
  let_go({ended.lane, event.out, event.slice});
  // Before the handler hears of it: then it may close them.
  for (const CopyKey input : ended.inputs) {
    OpenCopy& open = copies_.at(input);
    --open.users;
    --open.readers;
  }
  if (event.complete && !copies_.at(event.out).closing) host_.on_event(event::Combined{event.out, event.slice});
  release(event.out);
}

void DataPlane::handle(const BufferGrown& event) {
  // First, so that growth from now on is a new report.
  event.buffer->end_growth_report();
  const auto it = copies_.find(event.buffer->key());
  if (it != copies_.end() && !it->second.closing) host_.on_event(event::CopyGrown{event.buffer->key()});
}

}  // namespace hoplite::dataplane
