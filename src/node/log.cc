#include "node/log.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <mutex>

#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>

#include "base/printable.h"
#include "base/unique_fd.h"

namespace hoplite {
namespace {

// A pipe that polls as writable takes this much (PIPE_BUF) without blocking, so no line is longer.
constexpr std::size_t kMaxLineBytes = 4096;
constexpr char kPattern[] = "%Y-%m-%d %H:%M:%S.%e %P %l %v";

spdlog::level::level_enum spdlog_level(LogLevel level) {
  static_assert(spdlog::level::debug + static_cast<int>(LogLevel::kError) == spdlog::level::err);
  return static_cast<spdlog::level::level_enum>(spdlog::level::debug + static_cast<int>(level));
}

// Invalid if it cannot be opened: errno says why.
UniqueFd open_file(const std::string& file) {
  return UniqueFd(::open(file.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0640));
}

Error cannot_open(const std::string& file) {
  return {Code::kInvalidArgument, "cannot open the log file " + file + ": " + std::strerror(errno)};
}

}  // namespace

// Writes to a descriptor without ever waiting for it.
class Log::Sink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  Sink(int fd, UniqueFd owned) : fd_(fd), owned_(std::move(owned)) {}
  void redirect(UniqueFd owned) {
    const std::lock_guard lock(mutex_);
    owned_ = std::move(owned);
    fd_ = owned_.get();
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    if (dropped_ > 0 && write_line(message, missing_lines())) dropped_ = 0;
    if (dropped_ > 0 || !write_line(message, {})) ++dropped_;
  }
  void flush_() override {}

 private:
  std::string missing_lines() const {
    return std::to_string(dropped_) + " lines are missing here: they could not be written (" + std::strerror(error_) +
           ")";
  }

  // `text` replaces the message's own, if given. False: nothing usable was written, error_ says why.
  bool write_line(spdlog::details::log_msg message, const std::string& text) {
    if (!text.empty()) {
      message.payload = text;
      message.level = spdlog::level::warn;
    }
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    if (line.size() > kMaxLineBytes) {
      std::size_t end = kMaxLineBytes - 1;
      while (end > 0 && (static_cast<unsigned char>(line[end]) & 0xc0) == 0x80) --end;  // no half of a character
      line.resize(end + 1);
      line[end] = '\n';
    }
    pollfd ready{fd_, POLLOUT, 0};
    if (::poll(&ready, 1, 0) != 1 || (ready.revents & POLLOUT) == 0) {
      error_ = EAGAIN;
      return false;
    }
    const ssize_t written = ::write(fd_, line.data(), line.size());
    if (written < 0) error_ = errno;
    // A disk that fills up in the middle of a line keeps its first part; the line counts as dropped.
    if (written >= 0 && static_cast<std::size_t>(written) < line.size()) error_ = ENOSPC;
    return written == static_cast<ssize_t>(line.size());
  }

  int fd_;
  UniqueFd owned_;
  std::size_t dropped_ = 0;
  int error_ = 0;
};

Result<LogLevel> parse_log_level(std::string_view text) {
  if (text == "debug") return LogLevel::kDebug;
  if (text == "info") return LogLevel::kInfo;
  if (text == "warn") return LogLevel::kWarn;
  if (text == "error") return LogLevel::kError;
  return Error{Code::kInvalidArgument, "log level '" + std::string(text) + "' is not one of debug, info, warn, error"};
}

Log::Log(std::string file, std::unique_ptr<spdlog::logger> logger, std::shared_ptr<Sink> sink)
    : file_(std::move(file)), logger_(std::move(logger)), sink_(std::move(sink)) {}
Log::~Log() = default;

Result<std::unique_ptr<Log>> Log::open(const std::string& file, LogLevel level) {
  UniqueFd owned;
  int fd = STDERR_FILENO;
  if (!file.empty()) {
    owned = open_file(file);
    fd = owned.get();
    if (fd < 0) return cannot_open(file);
  }
  auto sink = std::make_shared<Sink>(fd, std::move(owned));
  auto logger = std::make_unique<spdlog::logger>("hoplited", sink);
  logger->set_formatter(std::make_unique<spdlog::pattern_formatter>(kPattern));
  logger->set_error_handler([](const std::string&) {});
  std::unique_ptr<Log> log(new Log(file, std::move(logger), std::move(sink)));
  log->set_level(level);
  return log;
}

bool Log::shows(LogLevel level) const { return logger_->should_log(spdlog_level(level)); }
Result<void> Log::reopen() {
  if (file_.empty()) return {};
  UniqueFd fresh = open_file(file_);
  if (!fresh) return cannot_open(file_);
  sink_->redirect(std::move(fresh));
  return {};
}

void Log::set_level(LogLevel level) { logger_->set_level(spdlog_level(level)); }

void Log::write(LogLevel level, std::string_view text) {
  if (!shows(level)) return;
  const std::string line = printable(text);
  logger_->log(spdlog_level(level), spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace hoplite
