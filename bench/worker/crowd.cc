#include "worker/crowd.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <span>
#include <utility>

#include "worker/pattern.h"

namespace hoplite::bench {
namespace {

constexpr std::size_t kOutstanding = 256;
constexpr std::size_t kReasons = 5;  // so many failures are told in words
constexpr std::chrono::seconds kGetPatience{
    20};  // a get of what exists: longer than any stall that could be meant well

// Turns that do not follow each other in any table.
std::uint64_t scattered(std::uint64_t turn) { return (turn + 1) * 0x9E3779B97F4A7C15ULL >> 20; }

// How calls ended.
class Outcomes {
 public:
  template <typename T>
  bool take(const Result<T>& result) {
    if (result) return ++done_, true;
    ++failed_;
    lost_ += result.code() == Code::kLost;
    if (reasons_.size() < kReasons) reasons_.push_back(result.error().to_string());
    return false;
  }
  Json& add_to(Json& answer) const {
    std::vector<Json> reasons;
    for (const std::string& reason : reasons_) reasons.push_back(Json().add("text", reason));
    return answer.add("done", done_).add("failed", failed_).add("lost", lost_).add("reasons", reasons);
  }

 private:
  std::uint64_t done_ = 0, failed_ = 0, lost_ = 0;
  std::vector<std::string> reasons_;
};

// At most `outstanding` of `count` calls are under way at a time; `end` gets the results in order.
template <typename T>
void pipelined(std::size_t count, std::size_t outstanding, const std::function<Future<T>(std::size_t)>& begin,
               const std::function<void(std::size_t, Result<T>)>& end) {
  std::deque<Future<T>> pending;
  std::size_t ended = 0;
  const auto take = [&] {
    end(ended++, pending.front().get());
    pending.pop_front();
  };
  for (std::size_t i = 0; i < count; ++i) {
    if (pending.size() == outstanding) take();
    pending.push_back(begin(i));
  }
  while (!pending.empty()) take();
}

}  // namespace

ObjectId Crowd::named(const std::string& name, std::uint64_t number) {
  return ObjectId::named(name + '/' + std::to_string(number));
}

Crowd::Kind& Crowd::kind(std::istream& words) {
  const auto name = next<std::string>(words);
  const auto found = kinds_.find(name);
  if (found == kinds_.end()) throw std::runtime_error("nothing is known of " + name);
  return found->second;
}

Json Crowd::put(std::istream& words) {
  const auto name = next<std::string>(words);
  const auto count = next<std::size_t>(words);
  Kind& kind = kinds_[name];
  kind.size = next<std::size_t>(words);
  const bool minted = next<std::string>(words) == "minted";
  kind.all.clear();
  for (std::size_t i = 0; i < count; ++i) kind.all.push_back({minted ? client_.new_id() : named(name, i), i});
  const std::int64_t start_ns = now_ns();
  pipelined<ObjectId>(
      count, kOutstanding,
      [&](std::size_t i) {
        return client_.put_async(pattern(kind.size, i), {.id = kind.all[i].id, .timeout = kPatience});
      },
      [](std::size_t, Result<ObjectId> put) { value_of(std::move(put)); });
  return Json().add("seconds", seconds_since(start_ns));
}

Json Crowd::know(std::istream& words) {
  const auto name = next<std::string>(words);
  const auto count = next<std::size_t>(words);
  Kind& kind = kinds_[name];
  kind.size = next<std::size_t>(words);
  kind.all.clear();
  for (std::size_t i = 0; i < count; ++i) kind.all.push_back({named(name, i), i});
  return {};
}

Json Crowd::share(std::istream& words) {
  const Kind& all = kind(words);
  const auto count = std::min(next<std::size_t>(words), all.all.size());
  const auto object = next<std::string>(words);
  std::vector<Known> some;
  for (std::size_t i = 0; i < count; ++i) some.push_back(all.all[i * all.all.size() / count]);
  value_of(client_.put(std::as_bytes(std::span(some)), {.id = ObjectId::named(object), .timeout = kPatience}));
  return {};
}

Json Crowd::learn(std::istream& words) {
  Kind& kind = kinds_[next<std::string>(words)];
  kind.size = next<std::size_t>(words);
  const View view = value_of(client_.get(next_id(words), {.timeout = kPatience}));
  kind.all.resize(view.size() / sizeof(Known));
  if (!kind.all.empty()) std::memcpy(kind.all.data(), view.data(), kind.all.size() * sizeof(Known));
  return {};
}

Json Crowd::use(std::istream& words) {
  const Kind& all = kind(words);
  const auto end_ns = now_ns() + static_cast<std::int64_t>(next<double>(words) * kNsPerSecond);
  const auto pause_ns = next<std::int64_t>(words) * kNsPerMs;
  constexpr std::size_t kGetsForEachPut = 10;
  Outcomes gets, puts;
  std::vector<double> seconds;
  for (std::size_t turn = 0; now_ns() < end_ns; ++turn) {
    if (pause_ns > 0) sleep_until(now_ns() + pause_ns);
    const Known& one = all.all[scattered(turn) % all.all.size()];
    const std::int64_t start_ns = now_ns();
    const Result<View> view = client_.get(one.id, {.timeout = kGetPatience});
    seconds.push_back(seconds_since(start_ns));
    if (gets.take(view)) check(view->bytes(), all.size, one.number);
    if (turn % kGetsForEachPut != 0) continue;
    const auto put = client_.put(pattern(all.size, turn), {.timeout = kGetPatience});
    if (puts.take(put)) puts.take(client_.remove(*put, kGetPatience));
  }
  std::sort(seconds.begin(), seconds.end());
  Json answer, of_puts;
  puts.add_to(of_puts);
  if (seconds.empty()) throw std::runtime_error("no time for a single get");
  answer.add("slowest", seconds.back()).add("median", seconds[seconds.size() / 2]);
  answer.add("of_1000", seconds[seconds.size() - 1 - seconds.size() / 1000]);
  return gets.add_to(answer).add("puts", std::vector<Json>{of_puts});
}

Json Crowd::get_all(std::istream& words) {
  const Kind& all = kind(words);
  Outcomes outcomes;
  std::vector<Future<View>> under_way;
  std::vector<View> views(all.all.size());
  const std::int64_t start_ns = now_ns();
  for (const Known& one : all.all) under_way.push_back(client_.get_async(one.id, {.timeout = kPatience}));
  for (std::size_t i = 0; i < under_way.size(); ++i) {
    Result<View> view = under_way[i].get();
    if (outcomes.take(view)) views[i] = *std::move(view);
  }
  const double seconds = seconds_since(start_ns);
  for (std::size_t i = 0; i < views.size(); ++i)
    if (views[i]) check(views[i].bytes(), all.size, all.all[i].number);
  Json answer;
  return outcomes.add_to(answer).add("seconds", seconds);
}

Json Crowd::remove(std::istream& words) {
  const Kind& all = kind(words);
  Outcomes outcomes;
  pipelined<bool>(
      all.all.size(), kOutstanding, [&](std::size_t i) { return client_.remove_async(all.all[i].id, kPatience); },
      [&](std::size_t, Result<bool> removed) { outcomes.take(removed); });
  Json answer;
  return outcomes.add_to(answer);
}

// In ticks, so that the rate is steady; whoever falls behind does not catch up, and the rate says so.
Json Crowd::churn(std::istream& words) {
  const auto name = next<std::string>(words);
  const auto seconds = next<double>(words);
  const auto per_second = next<std::size_t>(words);
  const auto size = next<std::size_t>(words);
  constexpr std::int64_t kTickNs = 10 * kNsPerMs;
  constexpr std::size_t kTicksOfLife = 50;
  const std::size_t per_tick = std::max<std::size_t>(1, per_second / (kNsPerSecond / kTickNs));
  Outcomes puts, removals;
  std::uint64_t number = 0, deleted = 0;
  const std::int64_t start_ns = now_ns();
  const auto end_ns = start_ns + static_cast<std::int64_t>(seconds * kNsPerSecond);
  for (std::int64_t tick_ns = start_ns; now_ns() < end_ns; tick_ns = std::max(tick_ns + kTickNs, now_ns())) {
    sleep_until(tick_ns);
    std::vector<Future<ObjectId>> putting;
    for (std::size_t i = 0; i < per_tick; ++i, ++number)
      putting.push_back(client_.put_async(pattern(size, number), {.id = named(name, number), .timeout = kGetPatience}));
    std::vector<Future<bool>> removing;
    for (; deleted + per_tick * kTicksOfLife < number; ++deleted)
      removing.push_back(client_.remove_async(named(name, deleted), kGetPatience));
    for (auto& put : putting) puts.take(put.get());
    for (auto& removal : removing) removals.take(removal.get());
  }
  const double took = seconds_since(start_ns);
  for (; deleted < number; ++deleted) removals.take(client_.remove(named(name, deleted), kGetPatience));
  Json answer, of_removals;
  removals.add_to(of_removals);
  return puts.add_to(answer)
      .add("removals", std::vector<Json>{of_removals})
      .add("seconds", took)
      .add("per_second", static_cast<double>(number) / took);
}

Json Crowd::came_back(std::istream& words) {
  const auto name = next<std::string>(words);
  const auto first = next<std::uint64_t>(words);
  const auto count = next<std::size_t>(words);
  constexpr std::chrono::milliseconds kLook{300};
  std::uint64_t found = 0;
  pipelined<View>(
      count, kOutstanding, [&](std::size_t i) { return client_.get_async(named(name, first + i), {.timeout = kLook}); },
      [&](std::size_t, const Result<View>& view) { found += view.ok(); });
  return Json().add("found", found);
}

}  // namespace hoplite::bench
