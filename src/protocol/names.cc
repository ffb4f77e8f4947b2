#include "protocol/names.h"

namespace hoplite {

bool is_name_of(const ObjectId& id, std::string_view name) {
  return !name.empty() && name.size() <= kMaxNameBytes && ObjectId::named(name) == id;
}

std::string described(const ObjectId& id, std::string_view name) {
  return name.empty() ? id.to_string() : std::string(name) + " = " + id.to_string();
}

void Names::add(std::string_view name) {
  if (name.empty() || name.size() > kMaxNameBytes || name.size() > left_) return;
  if (names_.try_emplace(ObjectId::named(name), name).second) left_ -= name.size();
}

std::string_view Names::find(const ObjectId& id) const {
  const auto it = names_.find(id);
  return it == names_.end() ? std::string_view() : it->second;
}

std::vector<std::string> Names::all() const {
  std::vector<std::string> all;
  for (const auto& [id, name] : names_) all.push_back(name);
  return all;
}

}  // namespace hoplite
