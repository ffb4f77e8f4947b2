#include "hoplite/error.h"

namespace hoplite {

std::string_view code_name(Code code) {
  switch (code) {
    case Code::kOk: return "ok";
    case Code::kTimedOut: return "timed out";
    case Code::kLost: return "lost";
    case Code::kDeleted: return "deleted";
    case Code::kExists: return "exists";
    case Code::kStoreFull: return "store full";
    case Code::kNotAuthorised: return "not authorised";
    case Code::kInvalidArgument: return "invalid argument";
    case Code::kVersionMismatch: return "version mismatch";
    case Code::kUnavailable: return "unavailable";
    case Code::kCancelled: return "cancelled";
    case Code::kInternal: return "internal error";
    case Code::kTypeMismatch: return "type mismatch";
  }
  return "unknown";
}

std::string Error::to_string() const {
  std::string text(code_name(code));
  if (!message.empty()) text.append(": ").append(message);
  return text;
}

}  // namespace hoplite
