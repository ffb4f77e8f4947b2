#include "core/agent/announcer.h"

#include <algorithm>

#include "core/directory/view.h"

namespace hoplite {

// False: there is nothing to tell.
bool Announcer::fact_of(const Record& record, Fact& fact) const {
  const Copy* copy = parts_.records.copy_of(record);
  if (copy == nullptr) return false;
  // A put that no home has accepted is not a fact yet: the claim itself is repeated.
  if (parts_.puts.contains(record.id) && !parts_.puts.is_claimed(record.id)) return false;
  fact = {record.id,       copy->version, copy->extent.size,   copy->meta, copy->state(),
          copy->committed, copy->primary, copy->slice_count(), 0};
  if (copy->life() == CopyLife::kCombining && copy->slices.size() > 1)
    fact.roots = static_cast<std::uint32_t>(std::ranges::count(copy->slices, true, &CopySlice::combined));
  return true;
}

void Announcer::tell(const Record& record, std::uint32_t rate_kib) {
  Announce message;
  if (!fact_of(record, message.facts.emplace_back())) return;
  message.rate_kib = rate_kib;
  parts_.out.send(record.home, std::move(message));
}

void Announcer::withdraw(NodeRef home, const ObjectId& id, Version version) {
  parts_.out.send(home, Withdraw{id, version});
}

void Announcer::remember(const ObjectId& id, Version version, const std::string& why) {
  const Time until = parts_.out.now() + parts_.limits.tombstone_life;
  if (parts_.known.version_of(id) != version) parts_.known.add(id, version, until, parts_.records.home(id).id, why);
}

// --- many at once --------------------------------------------------------------------------------------------------------

// Facts and tombstones for one home, in messages of bounded size.
class Announcer::Batch {
 public:
  Batch(const Announcer& announcer, NodeRef to) : from_(announcer), parts_(announcer.parts_), to_(to) {
    next_.open_requests = parts_.out.oldest_open();
  }
  void answer(std::uint64_t round) { next_.round = round; }
  // This is all there is for that home.
  void begin_full() { next_.full_begin = true; }
  void end_full() {
    next_.full_end = true;
    send();
  }

  void add_facts(const std::set<ObjectId>& ids) {
    for (const ObjectId& id : ids)
      if (Fact fact; from_.fact_of(parts_.records.at(id), fact)) add(std::move(fact), next_.facts);
  }
  void add_known() {
    for (const ObjectId& id : parts_.known.of_home(to_.id)) {
      const Copy* copy = parts_.records.copy_of(id);
      if (copy != nullptr && copy->committed) continue;  // that fact says it all
      const VersionMemory::Item& known = parts_.known.at(id);
      add(Fact{id, known.version, 0, {}, CopyState::kKnows, true, false, 1, 0, known.why}, next_.facts);
    }
  }
  void add_tombstones() {
    for (const ObjectId& id : parts_.tombstones.of_home(to_.id)) {
      const Tombstones::Stone& stone = parts_.tombstones.at(id);
      const std::int64_t left_s = std::max<std::int64_t>((stone.until - parts_.out.now()).ns / 1'000'000'000, 1);
      add(Tombstone{id, stone.version, static_cast<std::uint32_t>(left_s)}, next_.tombstones);
    }
  }

  // What has not been sent yet. Returns how many facts and tombstones there were.
  std::uint32_t finish() {
    if (!next_.facts.empty() || !next_.tombstones.empty()) send();
    return count_;
  }

 private:
  template <typename T> void add(T item, std::vector<T>& list) {
    list.push_back(std::move(item));
    ++count_;
    if (list.size() >= parts_.limits.facts_per_message) send();
  }
  void send() {
    parts_.out.send(to_, next_);
    next_.facts.clear();
    next_.tombstones.clear();
    next_.full_begin = false;
  }

  const Announcer& from_;
  const Parts& parts_;
  NodeRef to_;
  Announce next_;
  std::uint32_t count_ = 0;
};

void Announcer::tell(NodeRef home, const std::set<ObjectId>& ids) {
  Batch facts(*this, home);
  facts.add_facts(ids);
  facts.finish();
}

void Announcer::tell_tombstones(NodeRef newcomer) {
  Batch stones(*this, newcomer);
  stones.add_tombstones();
  stones.finish();
}

void Announcer::tell_everything(NodeRef home) {
  const bool full = !parts_.out.detour(home.id);
  Batch all(*this, home);
  if (full) all.begin_full();
  all.add_facts(parts_.records.of_home(home.id));
  all.add_tombstones();
  if (full) all.end_full();
  else all.finish();
}

void Announcer::answer(NodeRef home, const RecoverQuery& query) {
  Batch answer(*this, home);
  answer.answer(query.round);
  answer.add_facts(parts_.records.of_home(home.id));
  answer.add_known();
  answer.add_tombstones();
  parts_.out.send(home, RecoverReply{query.round, view_digest(parts_.records.alive()), answer.finish()});
}

}  // namespace hoplite
