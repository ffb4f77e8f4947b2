#include "transport/tcp/stranger_log.h"

namespace hoplite::tcp {

void StrangerLog::refused(Time now, const std::string& host, const std::string& why) {
  if (!log_) return;
  if (now >= forget_at_) {
    told_.clear();
    forget_at_ = now + forget_after_;
  }
  if (told_.size() >= max_told_ || !told_.insert(host).second) return;
  log_("refused a connection with " + host + ": " + why);
  if (told_.size() == max_told_)
    log_("refused connections of too many hosts; the next ones are not reported for an hour");
}

}  // namespace hoplite::tcp
