#include "core/agent/agent.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/coverage.h"
#include "core/agent/impl.h"

namespace hoplite {
namespace {

MembershipOptions membership_options(AgentOptions& options) {
  return {{options.self, 0}, options.address,    options.seeds, std::exchange(options.initial_members, {}),
          options.limits,    mix64(options.seed)};
}

}  // namespace

Agent::Agent(AgentOptions options, const Progress& progress, Time now)
    : impl_(std::make_unique<Impl>(std::move(options), progress, now)) {}
Agent::~Agent() = default;
void Agent::step(Time now, Event event, Effects& effects) { impl_->step(now, event, effects); }
Time Agent::next_wakeup() const { return impl_->next_wakeup(); }
NodeRef Agent::self() const { return impl_->self(); }
bool Agent::has_left() const { return impl_->has_left(); }
ipc::Status Agent::status() const { return impl_->status(); }
std::vector<ClientHolding> Agent::holdings() const { return impl_->holdings(); }
std::vector<ipc::ObjectInfo> Agent::objects(std::size_t at_most) const { return impl_->objects(at_most); }
std::vector<ipc::NodeInfo> Agent::nodes() const { return impl_->nodes(); }
std::vector<DirectorySummary> Agent::directory() const { return impl_->directory(); }
std::uint64_t Agent::members() const { return impl_->members(); }
bool Agent::is_joining() const { return impl_->is_joining(); }
std::uint64_t Agent::repairs() const { return impl_->repairs(); }
std::uint64_t Agent::high_water() const { return impl_->allocator().high_water(); }
std::uint64_t Agent::low_water() const { return impl_->allocator().low_water(); }
void Agent::check_invariants() const { impl_->check_invariants(); }

Agent::Impl::Impl(AgentOptions options, const Progress& progress, Time now)
    : options_(std::move(options)),
      limits_(options_.limits),
      random_(options_.seed),
      membership_(membership_options(options_), now),
      out_(limits_, membership_, progress, options_.address),
      versions_(options_.wall_ms, random_),
      tombstones_(limits_.max_tombstones),
      absences_(limits_),
      known_(limits_.max_tombstones, limits_.max_hearsay),
      directory_(membership_.self(), limits_, *this, tombstones_, known_),
      table_(options_.capacity),
      records_(table_, membership_.alive()),
      copies_(table_, progress, out_),
      clients_(timers_, out_),
      errands_(limits_, timers_),
      deputies_(limits_, timers_, records_, out_),
      room_(options_.capacity / limits_.small_share),
      puts_(limits_, timers_, records_, out_),
      gets_(copies_, clients_, records_),
      fetches_(limits_, timers_, room_, records_, out_),
      notices_(limits_, timers_, clients_, records_, out_),
      ferries_(limits_, timers_, records_, out_),
      announcer_({limits_, records_, puts_, known_, tombstones_, out_}),
      relays_(limits_, records_, fetches_, out_),
      pulls_(limits_),
      serves_(limits_, timers_),
      slots_({limits_, timers_, table_, records_, copies_, room_, pulls_, out_}, *this),
      coordinator_({limits_, timers_, directory_, records_, random_, versions_, out_}, *this),
      rate_estimate_(limits_.default_rate),
      started_(limits_.max_reports) {
  // Who is told to join is not alone, however long it takes; see event::MayBeFirst for the one that may be.
  const bool joining = std::ranges::any_of(options_.seeds, [&](const Address& a) { return a != options_.address; });
  if (joining) directory_.hold_until(Time::never());
  Directory::Output out;
  directory_.set_view(now, records_.alive(), out);
  timers_.set(refresh_timer_, now + limits_.announce_every, timer::Refresh{});
}

void Agent::Impl::step(Time now, Event& event, Effects& effects) {
  out_.begin_step(now, effects);
  payload_bytes_ = 0;
  std::visit([&](auto& e) { on(e); }, event);
  settle();
  if (leaving_ == Leaving::kDraining && !is_moving_bytes()) {
    say_goodbye();
    settle();
  }
  out_.send_due();
  out_.end_step();
}

// Handlers say what has changed; what follows from it is seen to here, once, when they are done.
void Agent::Impl::settle() {
  do {
    while (out_.has_local()) deliver(self(), out_.take_local(), 0);
    if (table_.collect([&](CopyKey copy) { out_.emit(effect::CloseCopy{copy}); })) room_.reconsider();
    if (room_.take_changed()) hand_out_room();
    for (const ObjectId& id : records_.take_servable()) {
      relays_.retry(id);
      for (const Serves::Asked& asked : serves_.take_parked(id)) consider_pull(asked);
      records_.touch(id);
    }
    for (const ObjectId& id : records_.take_touched()) tidy(id);
  } while (!is_settled());
}

bool Agent::Impl::is_settled() const {
  return !out_.has_local() && !table_.has_noted() && !room_.has_changed() && !records_.has_notes();
}

Time Agent::Impl::next_wakeup() const {
  return std::min({membership_.next_wakeup(), directory_.next_wakeup(), timers_.next()});
}

// --- events --------------------------------------------------------------------------------------------------------------

void Agent::Impl::on(const event::Tick&) {
  Membership::Output members;
  membership_.tick(out_.now(), members);
  apply(members);
  Directory::Output homes;
  directory_.tick(out_.now(), homes);
  flush(homes);
  while (const auto timer = timers_.pop_due(out_.now())) std::visit([&](const auto& t) { on(t); }, *timer);
}

void Agent::Impl::on(const event::Received& e) {
  payload_bytes_ = e.payload_bytes;
  Membership::Output out;
  membership_.on_heard(out_.now(), e.from, out);
  apply(out);
  deliver(e.from, e.message, e.payload_bytes);
}

void Agent::Impl::on(event::ClientAsked& e) {
  payload_bytes_ = e.payload_bytes;
  const RequestKey key{e.client, e.request};
  // Soon the others hold us for dead: what a client would be told now might not be true a moment later.
  const bool one_way =
      std::holds_alternative<ipc::Advance>(e.message) || std::holds_alternative<ipc::Abort>(e.message) ||
      std::holds_alternative<ipc::Cancel>(e.message) || std::holds_alternative<ipc::Release>(e.message);
  if (leaving_ != Leaving::kNo && !one_way) return clients_.fail(key, Code::kUnavailable, "the daemon is stopping");
  if (!one_way && clients_.find(key) != nullptr)
    return clients_.say(key, ipc::Failed{Code::kInvalidArgument, "that request number is in use"});
  std::visit([&](auto& m) { on_client(key, m); }, e.message);
}

void Agent::Impl::on(const event::MayBeFirst&) {
  if (directory_.is_joining(out_.now())) directory_.hold_until(out_.now() + limits_.join_grace);
}

// What others copy from us, or we for our clients, is finished first.
void Agent::Impl::on(const event::Leave&) {
  if (leaving_ != Leaving::kNo) return;
  leaving_ = Leaving::kDraining;
  timers_.set(leave_timer_, out_.now() + limits_.drain, timer::Leave{});
  if (is_moving_bytes())
    out_.emit(effect::Log{"waiting up to " + format_duration(limits_.drain) + " for running transfers to finish"});
}

bool Agent::Impl::is_moving_bytes() const { return !serves_.empty() || !pulls_.empty() || coordinator_.is_running(); }

void Agent::Impl::say_goodbye() {
  leaving_ = Leaving::kGone;
  timers_.cancel(leave_timer_);
  for (const RequestKey& key : clients_.pending()) stop_request(key, Code::kUnavailable);
  Membership::Output out;
  membership_.leave(out);
  apply(out);
}

// Members are always listened to; everything else counts only from those who are alive in our view.
void Agent::Impl::deliver(NodeRef from, const Message& message, std::uint64_t payload_bytes) {
  constexpr std::size_t kLastOfMembership =
      4;  // Ping, Ack, PingRequest, News, Sync; Unreached counts from the living only
  static_assert(std::is_same_v<std::variant_alternative_t<kLastOfMembership, Message>, Sync>);
  if (message.index() > kLastOfMembership && !membership_.is_alive(from)) {
    COVERAGE_MARK(message_from_the_dead_ignored);
    return;
  }
  payload_bytes_ = payload_bytes;
  std::visit([&](const auto& m) { on(from, m); }, message);
}

// --- timers --------------------------------------------------------------------------------------------------------------

void Agent::Impl::on(const timer::RequestDeadline& t) { stop_request({t.client, t.request}, Code::kTimedOut); }

void Agent::Impl::on(const timer::Want& t) {
  if (!fetches_.waits_for_its_turn(t.id)) fetches_.ask(want_of(records_.at(t.id)));
}

void Agent::Impl::on(const timer::Notify& t) {
  if (!notices_.waits_for_its_turn(t.id)) notices_.ask(t.id);
}

void Agent::Impl::on(const timer::Claim& t) {
  if (!puts_.waits_for_its_turn(t.id)) puts_.claim(t.id);
}

void Agent::Impl::on(const timer::Errand& t) {
  if (out_.is_held(t.key)) errands_.send_at(t.key, out_.now() + limits_.request_retry);
  else send_errand(t.key);
}

void Agent::Impl::on(const timer::Room&) {
  room_timer_.reset();
  room_.reconsider();
}

void Agent::Impl::on(const timer::Parked&) {
  for (const ObjectId& id : serves_.refuse_stale(out_.now(), out_.effects())) records_.touch(id);
}

void Agent::Impl::on(const timer::Leave&) { say_goodbye(); }

// What nobody wants is not fetched, what somebody wants is, and what is neither here nor wanted is forgotten.
void Agent::Impl::tidy(const ObjectId& id) {
  Record* r = records_.find(id);
  if (r == nullptr) return;
  if (is_unwanted(*r)) abandon(*r);
  if (!puts_.contains(id)) slots_.start_roots_of(id);
  ensure_fetch(*r);
  reprioritize(*r);
  if (!is_unused(*r)) return;
  fetches_.end(id);
  records_.erase(id);
}

bool Agent::Impl::is_unused(const Record& record) const {
  return record.copy == 0 && !gets_.contains(record.id) && !notices_.contains(record.id) &&
         !ferries_.contains(record.id) && fetches_.is_idle(record.id);
}

// --- displays ------------------------------------------------------------------------------------------------------------

ipc::Status Agent::Impl::status() const {
  ipc::Status s;
  s.node = self();
  s.listen = options_.address.to_string();
  s.capacity = table_.allocator().capacity();
  s.used = table_.allocator().used();
  s.pinned = table_.pinned_bytes();
  s.objects = table_.complete();
  s.growing = table_.growing();
  s.members = membership_.alive_count();
  s.directory = directory_.size();
  s.waiting = clients_.pending_count();
  return s;
}

std::vector<ipc::ObjectInfo> Agent::Impl::objects(std::size_t at_most) const {
  std::vector<ipc::ObjectInfo> all;
  table_.visit([&](const Copy& copy) {
    if (copy.is_current()) all.push_back(describe(copy));
    return all.size() < at_most;
  });
  return all;
}

ipc::ObjectInfo Agent::Impl::describe(const Copy& copy) const {
  ipc::ObjectInfo info;
  info.id = copy.id;
  info.size = copy.extent.size;
  info.bytes = copies_.front_bytes(copy);
  info.state = copy.state();
  info.primary = copy.primary;
  info.views = copy.users(CopyUser::kView);
  info.children = copy.users(CopyUser::kServe);
  if (pulls_.is_running(copy.key, 0)) info.parent = pulls_.last_parent(copy.key, 0).id;
  info.home = records_.home(copy.id).id;
  info.meta = copy.meta;
  return info;
}

std::vector<ipc::NodeInfo> Agent::Impl::nodes() const {
  std::vector<ipc::NodeInfo> all;
  for (const MemberNews& member : membership_.all()) {
    ipc::NodeInfo& info = all.emplace_back();
    info.ref = member.ref;
    info.address = member.address;
    info.life = member.life;
    info.self = member.ref.id == self().id;
    info.rtt_us = membership_.rtt_us(member.ref.id);
  }
  return all;
}

}  // namespace hoplite
