#include "node/joiner.h"

#include <algorithm>

namespace hoplite {

void Joiner::begin() {
  if (doors_.empty()) return;
  const Address& first = doors_.front();
  if (is_numeric(first.host)) {
    if (host_.is_inside(first)) host_.may_be_first();
    return;
  }
  resolver_.resolve(first, [this](const Resolver::Answer& answer) {
    if (joining_ && std::ranges::any_of(answer.addresses, [&](const Address& a) { return host_.is_inside(a); }))
      host_.may_be_first();
  });
}

void Joiner::knock(const Address& address, const Message& message) {
  if (is_numeric(address.host)) return host_.knock_at(address, message);
  resolver_.resolve(address,
                    [this, address, message](const Resolver::Answer& answer) { resolved(address, message, answer); });
}

void Joiner::resolved(const Address& door, const Message& message, const Resolver::Answer& answer) {
  std::erase_if(names_, [&](const auto& name) {
    const bool gone = name.second == door && std::ranges::count(answer.addresses, name.first) == 0;
    if (gone) problems_.erase(name.first);
    return gone;
  });
  if (answer.addresses.empty()) return note(door, answer.why);
  problems_.erase(door);
  // Behind one name there may be all members: one that has let us in is enough.
  const auto inside = [&](const Address& address) { return host_.is_inside(address); };
  if (!joining_ && std::ranges::any_of(answer.addresses, inside)) return;
  for (const Address& address : answer.addresses) {
    names_[address] = door;
    if (!inside(address)) host_.knock_at(address, message);
  }
}

void Joiner::failed(const Address& numeric, const std::string& why) {
  if (names_.contains(numeric) || std::ranges::count(doors_, numeric) > 0) note(numeric, why);
}

void Joiner::note(const Address& tried, const std::string& why) {
  std::string& known = problems_[tried];
  if (known == why) return;
  known = why;
  log_.warn((joining_ ? "not joined yet: " : "a place to join through is closed: ") + in_words(tried) + " " + why);
}

// "10.0.0.1:7411", or "10.0.0.1:7411 (nodea:7411)".
std::string Joiner::in_words(const Address& tried) const {
  const auto name = names_.find(tried);
  return tried.to_string() + (name == names_.end() ? "" : " (" + name->second.to_string() + ")");
}

void Joiner::joined(std::uint64_t members) {
  if (!joining_) return;
  joining_ = false;
  problems_.clear();
  if (!doors_.empty()) log_.info("joined a cluster: " + std::to_string(members) + " nodes are known");
}

std::string Joiner::problems() const {
  std::string text;
  for (const auto& [tried, why] : problems_) text += (text.empty() ? "" : "; ") + in_words(tried) + " " + why;
  return text;
}

}  // namespace hoplite
