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
#include "base/printable.h"

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
  for (std::string& cell : cells) cell = printable(cell);
  rows_.push_back(std::move(cells));
}

std::string Table::text() const {
  std::vector<std::size_t> widths(aligns_.size(), 0);
  for (const auto& row : rows_)
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], columns_of(row[c]));
  std::string text;
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::string padding(widths[c] - columns_of(row[c]), ' ');
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
  // A line that wraps would take two rows, and the next picture would begin too low.
  const auto columns = static_cast<std::size_t>(terminal_columns(fd_));
  for (const std::string& line : lines) out += "\x1b[2K" + cut_to_columns(printable(line), columns) + "\n";
  drawn_ = lines.size();
  write_all(fd_, out);
}

// --- progress

ProgressLine::ProgressLine(std::string what)
    : what_(std::move(what)), shown_to_people_(is_terminal(STDERR_FILENO)), start_(Clock::now()) {}

ProgressLine::~ProgressLine() { clear(); }

std::string progress_text(const std::string& what, const Progressed& done, int columns, const std::string& note) {
  // The last column stays free: a character there makes some terminals wrap.
  const auto room = static_cast<std::size_t>(std::max(columns - 1, 0));
  const std::string said = printable(note);
  if (done.size == 0) return shorten_to_columns(what + ": " + (said.empty() ? "waiting" : said), room);
  const double share = static_cast<double>(done.bytes) / static_cast<double>(done.size);
  char percent[16];
  std::snprintf(percent, sizeof percent, " %3.0f %%", share * 100);
  std::string line = what + percent;
  // What fits is added, the most important first.
  const auto add = [&](const std::string& fact) {
    if (!fact.empty() && columns_of(line) + 2 + columns_of(fact) <= room) line += "  " + fact;
  };
  add(said);
  const std::string left =
      done.rate > 0 ? format_duration(Duration::from_seconds(static_cast<double>(done.size - done.bytes) / done.rate))
                    : "";
  add(left.empty() ? "" : left + " left");
  add(format_size(done.bytes) + " of " + format_size(done.size));
  add(done.rate > 0 ? format_rate(done.rate) : "");
  constexpr std::size_t kLeastBar = 10;
  constexpr std::size_t kWidestBar = 40;
  const std::size_t used = columns_of(line) + 1;
  if (used + kLeastBar <= room)
    line.insert(what.size(), " " + bar(share, static_cast<int>(std::min(room - used, kWidestBar))));
  return shorten_to_columns(line, room);
}

// The time before the first byte is somebody else's: it says nothing about how fast bytes come.
double RateSinceFirstByte::update(Clock::time_point now, std::uint64_t bytes) {
  if (bytes < last_) first_.reset();  // it starts over
  last_ = bytes;
  if (bytes == 0) return 0;
  if (!first_) first_ = {now, bytes};
  const double seconds = std::chrono::duration<double>(now - first_->at).count();
  return seconds > 0 ? static_cast<double>(bytes - first_->bytes) / seconds : 0;
}

void ProgressLine::update(std::uint64_t bytes, std::uint64_t size, const std::string& note) {
  const auto now = Clock::now();
  const double rate = rate_.update(now, bytes);
  if (!shown_to_people_ || now - start_ < kShowAfter || now - last_drawn_ < kDrawEvery) return;
  last_drawn_ = now;
  drawn_ = true;
  write_all(STDERR_FILENO,
            "\r\x1b[2K" + progress_text(what_, {bytes, size, rate}, terminal_columns(STDERR_FILENO), note));
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
