#include "core/agent/announcer.h"

#include <algorithm>
#include <utility>

#include "base/coverage.h"
#include "core/directory/view.h"

namespace hoplite {

// A put that no home has accepted is not a fact yet: the claim itself is repeated.
bool Announcer::is_fact(const Record& record) const {
  return record.copy != 0 && (!parts_.puts.contains(record.id) || parts_.puts.is_claimed(record.id));
}

// False: there is nothing to tell.
bool Announcer::fact_of(const Record& record, Fact& fact) const {
  if (!is_fact(record)) return false;
  const Copy* copy = parts_.records.copy_of(record);
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
  // This is all there is for that home in this range.
  void begin_full(const Compared& range) {
    next_.full_begin = true;
    next_.comparison = range.comparison;
    next_.first = range.first;
    next_.last = range.last;
  }
  void end_full() {
    next_.full_end = true;
    send();
  }

  void add_fact(const ObjectId& id) {
    if (Fact fact; from_.fact_of(parts_.records.at(id), fact)) add(std::move(fact), next_.facts);
  }
  void add_facts(const auto& ids) {
    for (const ObjectId& id : ids) add_fact(id);
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

void Announcer::tell_all(NodeRef home) {
  Batch all(*this, home);
  all.add_facts(parts_.records.of_home(home.id));
  all.finish();
}

void Announcer::answer(NodeRef home, const RecoverQuery& query) {
  Batch answer(*this, home);
  answer.answer(query.round);
  answer.add_facts(parts_.records.of_home(home.id));
  answer.add_known();
  answer.add_tombstones();
  parts_.out.send(home, RecoverReply{query.round, view_digest(parts_.records.alive()), answer.finish()});
}

// --- comparing notes -----------------------------------------------------------------------------------------------------

void Announcer::compare(NodeRef home) {
  const std::uint64_t number = parts_.out.next_number();
  comparisons_[home] = {number, false};
  compare_from(home, number, {});
}

bool Announcer::goes_on(NodeRef home) {
  const auto it = comparisons_.find(home);
  return it != comparisons_.end() && std::exchange(it->second.moved, false);
}

void Announcer::compare_from(NodeRef home, std::uint64_t comparison, Place first) {
  Compare piece{comparison, first.value, kLastPlace.value, 0};
  const PlacedIds& ids = parts_.records.of_home(home.id);
  std::uint32_t looked_at = 0;
  for (auto it = ids.lower_bound(first); it != ids.end(); ++it) {
    if (looked_at++ == parts_.limits.compared_at_once) {
      piece.last = std::max(place_of(*it).value - 1, piece.first);
      break;
    }
    const Record& record = parts_.records.at(*it);
    if (!is_fact(record)) continue;
    const Copy& copy = *parts_.records.copy_of(record);
    piece.digest += copy_digest(*it, copy.version, copy.state() == CopyState::kComplete, copy.primary);
  }
  parts_.out.send(home, piece);
}

void Announcer::on_compared(NodeRef home, const Compared& m) {
  const auto it = comparisons_.find(home);
  if (it == comparisons_.end() || it->second.number != m.comparison || m.first > m.last) return;
  it->second.moved = true;
  if (parts_.out.is_detour(home.id)) return stop_comparing(home);
  if (m.differs) return tell_range(home, m);
  if (m.last == kLastPlace.value) return stop_comparing(home);
  COVERAGE_MARK(compared_in_pieces);
  compare_from(home, m.comparison, {m.last + 1});
}

void Announcer::tell_range(NodeRef home, const Compared& range) {
  COVERAGE_MARK(range_differs);
  Batch facts(*this, home);
  facts.begin_full(range);
  const PlacedIds& ids = parts_.records.of_home(home.id);
  const auto end = ids.upper_bound(Place{range.last});
  for (auto it = ids.lower_bound(Place{range.first}); it != end; ++it) facts.add_fact(*it);
  facts.end_full();
}

}  // namespace hoplite
