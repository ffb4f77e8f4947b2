#include "hoplite/error.h"

#include "base/enum_names.h"

namespace hoplite {

std::string_view code_name(Code code) {
  static constexpr std::string_view kNames[] = {"ok",
                                                "timed out",
                                                "lost",
                                                "deleted",
                                                "exists",
                                                "store full",
                                                "not authorised",
                                                "invalid argument",
                                                "version mismatch",
                                                "unavailable",
                                                "cancelled",
                                                "internal error",
                                                "type mismatch",
                                                "size mismatch",
                                                "failed"};
  return name_in(kNames, code);
}

std::string Error::to_string() const {
  std::string text(code_name(code));
  if (!message.empty()) text.append(": ").append(message);
  return text;
}

}  // namespace hoplite
