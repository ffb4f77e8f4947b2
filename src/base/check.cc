#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace hoplite::internal {

void check_failed(const char* file, int line, const char* condition, const std::string& values) {
  std::fprintf(stderr, "%s:%d: CHECK(%s) failed:%s\n", file, line, condition, values.c_str());
  std::abort();
}

}  // namespace hoplite::internal
