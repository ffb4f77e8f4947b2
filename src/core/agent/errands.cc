#include "core/agent/errands.h"

#include <utility>

#include "base/check.h"

namespace hoplite {

void Errands::add(std::uint64_t key, RequestKey asked, const ObjectId& id, Message message) {
  std::visit(
      [&](auto& m) {
        if constexpr (requires { m.request; }) m.request = key;
      },
      message);
  const bool fresh = errands_.try_emplace(key, Errand{asked, id, std::move(message), {}, {}}).second;
  CHECK(fresh, key);
}

const Errands::Errand* Errands::find(std::uint64_t key) const {
  const auto it = errands_.find(key);
  return it == errands_.end() ? nullptr : &it->second;
}

const Message& Errands::send_to(std::uint64_t key, NodeRef home, Time now) {
  Errand& errand = errands_.at(key);
  errand.home = home;
  send_at(key, now + limits_.request_retry);
  return errand.message;
}

void Errands::send_at(std::uint64_t key, Time when) { timers_.set(errands_.at(key).retry, when, timer::Errand{key}); }

Errands::Errand Errands::take(std::uint64_t key) {
  const auto it = errands_.find(key);
  CHECK(it != errands_.end(), key);
  Errand errand = std::move(it->second);
  errands_.erase(it);
  timers_.cancel(errand.retry);
  return errand;
}

std::vector<std::uint64_t> Errands::sent_to(NodeRef home) const {
  std::vector<std::uint64_t> keys;
  for (const auto& [key, errand] : errands_)
    if (errand.home == home) keys.push_back(key);
  return keys;
}

std::vector<std::uint64_t> Errands::all() const {
  std::vector<std::uint64_t> keys;
  for (const auto& [key, errand] : errands_) keys.push_back(key);
  return keys;
}

void Errands::check_invariants() const {
  for (const auto& [key, errand] : errands_) CHECK(errand.retry && !errand.home.id.is_nil(), key);
}

}  // namespace hoplite
