#include "transport/tcp/stranger_log.h"

#include <utility>

namespace hoplite::tcp {

void StrangerLog::refused(std::string host, std::string why) {
  if (!log_) return;
  loop_.post([this, alive = std::weak_ptr(alive_), host = std::move(host), why = std::move(why)] {
    if (!alive.expired()) tell(host, why);
  });
}

void StrangerLog::tell(const std::string& host, const std::string& why) {
  if (loop_.now() >= forget_at_) {
    told_.clear();
    forget_at_ = loop_.now() + limits_.strangers_for;
  }
  if (told_.size() >= limits_.max_strangers || !told_.insert(host).second) return;
  log_("refused a connection with " + host + ": " + why);
  if (told_.size() == limits_.max_strangers)
    log_("refused connections from too many hosts; further ones will not be reported for an hour");
}

}  // namespace hoplite::tcp
