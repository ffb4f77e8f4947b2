// The daemon's log: one line per fact, to a file or to stderr.
//
// Logging never stops, slows or breaks the daemon. A line that cannot be written (disk full, nobody reads the pipe) is
// dropped and counted; the next line that can be written is preceded by one that says how many are missing and why.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "hoplite/error.h"

namespace spdlog {
class logger;
}

namespace hoplite {

enum class LogLevel { kDebug, kInfo, kWarn, kError };

// "debug", "info", "warn" or "error".
Result<LogLevel> parse_log_level(std::string_view text);

class Log {
 public:
  // `file` empty: stderr. Fails if the file cannot be opened; a file that cannot be written to is no error.
  static Result<std::unique_ptr<Log>> open(const std::string& file, LogLevel level);
  ~Log();
  // Opens the file anew, for whoever has moved it away; what is written meanwhile is in the old one. If that fails, the old one
  // stays. Nothing happens on stderr.
  Result<void> reopen();
  void set_level(LogLevel level);
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  // Whether lines of this level are written: what is costly to say need not be made up otherwise.
  bool shows(LogLevel level) const;
  // Thread-safe. `text` is made printable (base/printable.h): it may quote what a stranger sent.
  void write(LogLevel level, std::string_view text);
  void debug(std::string_view text) { write(LogLevel::kDebug, text); }
  void info(std::string_view text) { write(LogLevel::kInfo, text); }
  void warn(std::string_view text) { write(LogLevel::kWarn, text); }
  void error(std::string_view text) { write(LogLevel::kError, text); }

 private:
  class Sink;
  Log(std::string file, std::unique_ptr<spdlog::logger> logger, std::shared_ptr<Sink> sink);
  const std::string file_;
  std::unique_ptr<spdlog::logger> logger_;
  std::shared_ptr<Sink> sink_;
};

}  // namespace hoplite
