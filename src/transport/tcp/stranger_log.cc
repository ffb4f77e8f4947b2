#include "transport/tcp/stranger_log.h"

namespace hoplite::tcp {
namespace {

constexpr std::size_t kMaxTold = 1024;                // as many lines per period, and 100 KiB
constexpr Duration kForgetAfter = Duration::s(3600);  // a misconfigured node is named again every hour

}  // namespace

void StrangerLog::refused(Time now, const std::string& host, const std::string& why) {
  if (!log_) return;
  if (now >= forget_at_) {
    told_.clear();
    forget_at_ = now + kForgetAfter;
  }
  if (told_.size() >= kMaxTold || !told_.insert(host).second) return;
  log_("refused a connection with " + host + ": " + why);
  if (told_.size() == kMaxTold)
    log_("refused connections of too many hosts; the next ones are not reported for an hour");
}

}  // namespace hoplite::tcp
