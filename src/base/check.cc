#include "base/check.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace hoplite {
namespace {

std::atomic<CheckHandler> check_handler = nullptr;

}  // namespace

void set_check_handler(CheckHandler handler) { check_handler = handler; }

void internal::check_failed(const char* file, int line, const char* condition, const std::string& values) {
  const std::string what =
      std::string(file) + ":" + std::to_string(line) + ": CHECK(" + condition + ") failed:" + values;
  if (const CheckHandler handler = check_handler) handler(what);
  std::fprintf(stderr, "%s\n", what.c_str());
  std::abort();
}

}  // namespace hoplite
