// What people call objects. The id of a named object is a hash of its name, so a name that travels beside an id proves
// itself: one that does not fit is not believed, whoever sent it.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "hoplite/object_id.h"

namespace hoplite {

constexpr std::size_t kMaxNameBytes = 255;  // longer ones are good for ids, but do not travel

// Whether the name travels with the object, for those who look at it.
bool is_name_of(const ObjectId& id, std::string_view name);

// "weights = 0f3a...", or only the id if there is no name.
std::string described(const ObjectId& id, std::string_view name);

// Names of several objects, in bounded memory: those that do not fit are left out.
class Names {
 public:
  explicit Names(std::size_t max_bytes) : left_(max_bytes) {}

  void add(std::string_view name);
  // "" if it is not known.
  std::string_view find(const ObjectId& id) const;
  std::vector<std::string> all() const;

 private:
  std::map<ObjectId, std::string> names_;
  std::size_t left_;
};

}  // namespace hoplite
