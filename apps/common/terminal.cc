#include "common/terminal.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstdio>

#include "base/bytes.h"

namespace hoplite {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kShowAfter = std::chrono::seconds(1);
constexpr auto kDrawEvery = std::chrono::milliseconds(100);
constexpr int kDefaultColumns = 80;
constexpr int kDefaultRows = 24;

winsize terminal_size(int fd) {
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) size.ws_col = kDefaultColumns;
  if (size.ws_row == 0) size.ws_row = kDefaultRows;
  return size;
}

void write_all(int fd, const std::string& text) {
  std::size_t written = 0;
  while (written < text.size()) {
    const ssize_t n = ::write(fd, text.data() + written, text.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;  // the terminal is gone; there is nobody to draw for
    written += static_cast<std::size_t>(n);
  }
}

// What signal handlers may touch.
std::atomic<bool> interrupt_asked = false;
std::atomic<int> wake_pipe_write = -1;
int wake_pipe_read = -1;

void on_signal(int signal) {
  const int saved = errno;
  if (signal != SIGCHLD) interrupt_asked = true;
  const char byte = 0;
  [[maybe_unused]] const ssize_t n = ::write(wake_pipe_write, &byte, 1);
  errno = saved;
}

}  // namespace

bool is_terminal(int fd) { return ::isatty(fd) == 1; }
int terminal_columns(int fd) { return terminal_size(fd).ws_col; }
int terminal_rows(int fd) { return terminal_size(fd).ws_row; }

std::string bar(double share, int width) {
  const int inner = std::max(width - 2, 1);
  const int full = static_cast<int>(std::floor(std::clamp(share, 0.0, 1.0) * inner));
  return "[" + std::string(static_cast<std::size_t>(full), '#') +
         std::string(static_cast<std::size_t>(inner - full), ' ') + "]";
}

Table::Table(std::vector<std::pair<std::string, Align>> columns) {
  std::vector<std::string> header;
  for (auto& [name, align] : columns) {
    header.push_back(std::move(name));
    aligns_.push_back(align);
  }
  rows_.push_back(std::move(header));
}

void Table::add(std::vector<std::string> cells) {
  cells.resize(aligns_.size());
  rows_.push_back(std::move(cells));
}

std::string Table::text() const {
  std::vector<std::size_t> widths(aligns_.size(), 0);
  for (const auto& row : rows_)
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  std::string text;
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::string padding(widths[c] - row[c].size(), ' ');
      line += (c == 0 ? "" : "  ");
      line += aligns_[c] == Align::kLeft ? row[c] + padding : padding + row[c];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

void LiveBlock::draw(const std::vector<std::string>& lines) {
  std::string out = drawn_ > 0 ? "\x1b[" + std::to_string(drawn_) + "A" : "";
  for (const std::string& line : lines) out += "\x1b[2K" + line + "\n";
  drawn_ = lines.size();
  write_all(fd_, out);
}

// --- progress

ProgressLine::ProgressLine(std::string what)
    : what_(std::move(what)), shown_to_people_(is_terminal(STDERR_FILENO)), start_(Clock::now()) {}

ProgressLine::~ProgressLine() { clear(); }

std::string progress_text(const std::string& what, std::uint64_t bytes, std::uint64_t size, double seconds, int columns,
                          const std::string& note) {
  if (size == 0) return what + ": " + (note.empty() ? "waiting" : note);
  const double share = static_cast<double>(bytes) / static_cast<double>(size);
  const double rate = seconds > 0 ? static_cast<double>(bytes) / seconds : 0;
  char percent[16];
  std::snprintf(percent, sizeof percent, " %3.0f %%  ", share * 100);
  std::string facts = percent + format_size(bytes) + " of " + format_size(size) + "  " + format_rate(rate);
  if (rate > 0)
    facts += "  " + format_duration(Duration::from_seconds(static_cast<double>(size - bytes) / rate)) + " left";
  if (!note.empty()) facts += "  " + note;
  const int room = columns - static_cast<int>(what.size() + facts.size()) - 3;
  return what + " " + (room >= 10 ? bar(share, std::min(room, 40)) : "") + facts;
}

void ProgressLine::update(std::uint64_t bytes, std::uint64_t size, const std::string& note) {
  const auto now = Clock::now();
  if (!shown_to_people_ || now - start_ < kShowAfter || now - last_drawn_ < kDrawEvery) return;
  last_drawn_ = now;
  drawn_ = true;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  write_all(STDERR_FILENO,
            "\r\x1b[2K" + progress_text(what_, bytes, size, seconds, terminal_columns(STDERR_FILENO), note));
}

void ProgressLine::clear() {
  if (drawn_) write_all(STDERR_FILENO, "\r\x1b[2K");
  drawn_ = false;
}

// --- signals and keys

Interrupts::Interrupts() {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0) {
    wake_pipe_read = ends[0];
    wake_pipe_write = ends[1];
  }
  interrupt_asked = false;
  struct sigaction action{};
  action.sa_handler = on_signal;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD}) ::sigaction(signal, &action, nullptr);
}

Interrupts::~Interrupts() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD}) ::signal(signal, SIG_DFL);
  ::close(wake_pipe_read);
  ::close(wake_pipe_write);
  wake_pipe_write = -1;
}

bool Interrupts::asked() const { return interrupt_asked; }

std::optional<char> Interrupts::sleep(std::chrono::milliseconds time, bool keys) {
  if (asked()) return std::nullopt;
  pollfd wanted[] = {{.fd = wake_pipe_read, .events = POLLIN, .revents = 0},
                     {.fd = keys ? STDIN_FILENO : -1, .events = POLLIN, .revents = 0}};
  ::poll(wanted, 2, static_cast<int>(time.count()));
  char drained[64];
  while (::read(wake_pipe_read, drained, sizeof drained) > 0) continue;
  char key = 0;
  if ((wanted[1].revents & POLLIN) != 0 && ::read(STDIN_FILENO, &key, 1) == 1) return key;
  return std::nullopt;
}

struct RawKeys::Saved {
  termios settings{};
};

RawKeys::RawKeys() {
  termios settings{};
  if (!is_terminal(STDIN_FILENO) || ::tcgetattr(STDIN_FILENO, &settings) != 0) return;
  saved_ = new Saved{settings};
  settings.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  ::tcsetattr(STDIN_FILENO, TCSANOW, &settings);
}

RawKeys::~RawKeys() {
  if (saved_ == nullptr) return;
  ::tcsetattr(STDIN_FILENO, TCSANOW, &saved_->settings);
  delete saved_;
}

}  // namespace hoplite
