// Why there is no room, with numbers.
#include <algorithm>

#include "base/bytes.h"
#include "render.h"

namespace hoplite {
namespace {

struct Share {
  std::uint64_t bytes = 0;
  std::size_t objects = 0;

  void add(const ObjectStatus& object) {
    bytes += object.size;
    ++objects;
  }
  std::string text(const std::string& why) const {
    if (bytes == 0) return "";
    return format_size(bytes) + " by " + std::to_string(objects) + (objects == 1 ? " object " : " objects ") + why;
  }
};

// "a, b, and c".
std::string listed(const std::vector<std::string>& parts) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i)
    text += (i == 0 ? "" : parts.size() == 2 ? " and " : i + 1 == parts.size() ? ", and " : ", ") + parts[i];
  return text;
}

}  // namespace

std::string room_text(std::uint64_t needed, const StoreStatus& status, const ObjectList& objects) {
  const std::uint64_t used = std::min(status.used_bytes, status.capacity_bytes);
  const std::uint64_t pinned = std::min(status.pinned_bytes, used);
  std::string text = "waiting for " + format_size(needed) + " of space: " + format_size(status.capacity_bytes - used) +
                     " of the store's " + format_size(status.capacity_bytes) + " are free";
  if (pinned < used) text += ", and " + format_size(used - pinned) + " more can be evicted";
  text += ". ";
  if (objects.truncated) return text + format_size(pinned) + " are in use; `hoplite ls` shows by what";

  Share kept;
  Share growing;
  Share in_use;
  const ObjectStatus* largest = nullptr;
  for (const ObjectStatus& object : objects) {
    if (object.state == CopyState::kKnows) continue;
    if (object.state != CopyState::kComplete) growing.add(object);
    else if (object.primary) kept.add(object);
    else if (object.views + object.receivers > 0) in_use.add(object);
    else continue;
    if (largest == nullptr || object.size > largest->size) largest = &object;
  }
  std::vector<std::string> parts = {kept.text("that must be deleted to free them (`hoplite rm`)"),
                                    growing.text("being written or fetched"), in_use.text("being read or sent")};
  const std::uint64_t known = kept.bytes + growing.bytes + in_use.bytes;
  if (pinned > known)
    parts.push_back(format_size(pinned - known) +
                    " by deleted objects that are still being read and by running reduces");
  std::erase(parts, "");
  if (parts.empty()) return text + "Earlier requests are waiting for it, too";
  // The first part has the verb.
  const std::size_t after_size = parts.front().find(" by ");
  parts.front().insert(after_size, " are in use");
  text += listed(parts);
  if (largest == nullptr) return text;
  return text + "; the largest is " + shown_name(largest->name.empty() ? largest->id.to_string() : largest->name) +
         " with " + format_size(largest->size);
}

}  // namespace hoplite
