#include "sim/many_runs.h"

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <iomanip>
#include <new>
#include <sstream>
#include <thread>
#include <vector>

#include "base/coverage.h"

namespace hoplite::sim {
namespace {

constexpr std::size_t kMaxWorkers = 64;
constexpr std::size_t kMaxMarks = 1024;
constexpr std::size_t kMaxFailovers = 1 << 20;  // further ones are counted, not measured
constexpr std::uint64_t kIdle = ~std::uint64_t{0};
constexpr int kHangSeconds = 120;  // a run takes milliseconds; sanitizers make that a second

using Clock = std::chrono::steady_clock;

// What workers and their parent share.
struct Board {
  std::atomic<std::uint64_t> next{0};
  std::atomic<std::uint64_t> done{0};
  std::atomic<std::uint64_t> events{0};
  std::atomic<std::uint64_t> repairs{0};
  std::atomic<std::uint64_t> seeds_with_repairs{0};
  std::atomic<std::uint64_t> failovers{0};
  std::array<std::atomic<std::int64_t>, kMaxFailovers> took{};  // nanoseconds, of each
  std::array<std::atomic<std::uint64_t>, kMaxWorkers> current{};
  std::array<std::atomic<std::uint64_t>, kMaxMarks> marks{};
};

// Marks have the same order in every process that was forked from this one.
std::vector<CoverageMark*> all_marks() {
  std::vector<CoverageMark*> marks;
  for (CoverageMark* mark = CoverageMark::first(); mark != nullptr; mark = mark->next()) marks.push_back(mark);
  if (marks.size() > kMaxMarks) marks.resize(kMaxMarks);
  return marks;
}

void collect_marks(const std::vector<CoverageMark*>& marks, Board& board) {
  for (std::size_t i = 0; i < marks.size(); ++i) {
    board.marks[i] += marks[i]->hits();
    marks[i]->clear();
  }
}

void write_line(const std::string& line) {
  const std::string text = line + "\n";
  if (::write(STDERR_FILENO, text.data(), text.size()) < 0) _exit(3);  // the parent is gone
}

constexpr const char* kFailure = "FAIL ";  // marks a line that reports a failed seed; other lines are last words

[[noreturn]] void work(const ManyRunsOptions& options, Board& board, std::size_t worker) {
  const std::vector<CoverageMark*> marks = all_marks();
  for (;;) {
    const std::uint64_t seed = options.first + board.next.fetch_add(1);
    if (seed > options.last || seed < options.first) break;
    board.current[worker] = seed;
    RunResult result;
    if (const auto wrong = run_one(seed, options, nullptr, &result))
      write_line(kFailure + std::to_string(seed) + " " + *wrong);
    board.events += result.events;
    board.repairs += result.repairs;
    board.seeds_with_repairs += result.repairs > 0 ? 1 : 0;
    for (const Failover& failover : result.failovers)
      if (const std::uint64_t place = board.failovers++; place < kMaxFailovers) board.took[place] = failover.took.ns;
    collect_marks(marks, board);
    board.current[worker] = kIdle;
    ++board.done;
  }
  _exit(0);
}

class Foreman {
 public:
  Foreman(const ManyRunsOptions& options, std::ostream& out) : options_(options), out_(out) {
    void* memory = ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED, "no shared memory for the workers");
    board_ = new (memory) Board;
    std::size_t count = options.workers != 0 ? options.workers : std::max(1U, std::thread::hardware_concurrency());
    workers_.resize(std::min(count, kMaxWorkers));
  }
  ~Foreman() { ::munmap(board_, sizeof(Board)); }
  Foreman(const Foreman&) = delete;
  Foreman& operator=(const Foreman&) = delete;

  bool run() {
    for (std::size_t i = 0; i < workers_.size(); ++i) launch(i);
    while (std::any_of(workers_.begin(), workers_.end(), [](const Worker& w) { return w.pid > 0; })) {
      listen();
      reap();
      stop_hanging();
      if (failures_ >= options_.max_failures) stop_all();
      show_progress();
    }
    summarise();
    return failures_ == 0;
  }

 private:
  struct Worker {
    pid_t pid = 0;
    int pipe = -1;
    std::string unread;
    std::string last_words;
    std::uint64_t seen = kIdle;  // the seed that it was at when we last looked
    Clock::time_point since;
  };

  void launch(std::size_t index) {
    int ends[2];
    CHECK(::pipe(ends) == 0, "no pipe for a worker");
    board_->current[index] = kIdle;
    out_.flush();
    const pid_t pid = ::fork();
    CHECK(pid >= 0, "no process for a worker");
    if (pid == 0) {
      ::dup2(ends[1], STDERR_FILENO);
      ::close(ends[0]);
      ::close(ends[1]);
      work(options_, *board_, index);
    }
    ::close(ends[1]);
    workers_[index] = Worker{pid, ends[0], {}, {}, kIdle, Clock::now()};
  }

  void listen() {
    std::vector<pollfd> fds;
    for (const Worker& worker : workers_) fds.push_back({worker.pipe, POLLIN, 0});
    ::poll(fds.data(), fds.size(), 200);
    for (std::size_t i = 0; i < workers_.size(); ++i)
      if (workers_[i].pipe >= 0 && (fds[i].revents & (POLLIN | POLLHUP)) != 0) read_from(workers_[i]);
  }

  void read_from(Worker& worker) {
    std::array<char, 4096> buffer;
    const ssize_t length = ::read(worker.pipe, buffer.data(), buffer.size());
    if (length <= 0) {
      ::close(worker.pipe);
      worker.pipe = -1;
      return;
    }
    worker.unread.append(buffer.data(), static_cast<std::size_t>(length));
    for (std::size_t end; (end = worker.unread.find('\n')) != std::string::npos; worker.unread.erase(0, end + 1)) {
      const std::string line = worker.unread.substr(0, end);
      if (line.starts_with(kFailure)) {
        const std::size_t space = line.find(' ', std::strlen(kFailure));
        report(line.substr(std::strlen(kFailure), space - std::strlen(kFailure)), line.substr(space + 1));
      } else if (worker.last_words.size() < 2000) {
        worker.last_words += (worker.last_words.empty() ? "" : " | ") + line;
      }
    }
  }

  void reap() {
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      Worker& worker = workers_[i];
      int status = 0;
      if (worker.pid <= 0 || worker.pipe >= 0 || ::waitpid(worker.pid, &status, 0) != worker.pid) continue;
      worker.pid = 0;
      if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
      if (stopping_) continue;
      const std::uint64_t seed = board_->current[i];
      std::string what = "the run ended with ";
      what += WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "exit code " + std::to_string(WEXITSTATUS(status));
      report(std::to_string(seed), what + ": " + worker.last_words);
      ++board_->done;
      launch(i);
    }
  }

  void stop_hanging() {
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      Worker& worker = workers_[i];
      const std::uint64_t seed = board_->current[i];
      if (seed != worker.seen || seed == kIdle) {
        worker.seen = seed;
        worker.since = Clock::now();
      } else if (worker.pid > 0 && Clock::now() - worker.since > std::chrono::seconds(kHangSeconds)) {
        worker.last_words += " (it took too long and was ended)";
        ::kill(worker.pid, SIGKILL);
        worker.since = Clock::now();
      }
    }
  }

  void stop_all() {
    stopping_ = true;
    for (const Worker& worker : workers_)
      if (worker.pid > 0) ::kill(worker.pid, SIGKILL);
  }

  void report(const std::string& seed, const std::string& what) {
    if (failures_++ >= options_.max_failures) return;
    clear_line();
    out_ << "seed " << seed << ": " << what << "\n  to reproduce: " << options_.program << " --seed " << seed;
    if (options_.nodes) out_ << " --nodes " << *options_.nodes;
    out_ << " --trace\n" << std::flush;
  }

  void clear_line() {
    if (on_terminal_) out_ << "\r\033[K";
  }

  void show_progress() {
    const auto now = Clock::now();
    const auto pace = on_terminal_ ? std::chrono::milliseconds(500) : std::chrono::milliseconds(10'000);
    if (now - shown_ < pace) return;
    shown_ = now;
    const double seconds = std::chrono::duration<double>(now - began_).count();
    const auto done = static_cast<double>(board_->done.load());
    const double rate = done / seconds;
    const double total = static_cast<double>(options_.last - options_.first) + 1;
    clear_line();
    out_ << std::fixed << std::setprecision(0) << done << " of " << total << " seeds, " << rate << " a second, "
         << failures_ << (failures_ == 1 ? " failure" : " failures");
    if (rate > 0) out_ << ", " << format_duration(Duration::from_seconds((total - done) / rate)) << " left";
    out_ << (on_terminal_ ? "" : "\n") << std::flush;
  }

  void summarise() {
    clear_line();
    const double seconds = std::chrono::duration<double>(Clock::now() - began_).count();
    out_ << std::fixed << std::setprecision(0) << board_->done.load() << " seeds"
         << (options_.twice ? ", each twice" : "") << ", " << failures_
         << (failures_ == 1 ? " failure, " : " failures, ") << std::setprecision(1) << seconds << " s, "
         << std::setprecision(0) << static_cast<double>(board_->done.load()) / seconds << " a second, "
         << board_->events.load() << " events\n";
    std::vector<std::int64_t> took(board_->took.begin(),
                                   board_->took.begin() + std::min(board_->failovers.load(), kMaxFailovers));
    std::sort(took.begin(), took.end());
    out_ << board_->failovers.load() << " failovers";
    if (!took.empty())
      out_ << ", half of them within " << format_duration({took[took.size() / 2]}) << ", the longest "
           << format_duration({took.back()});
    out_ << "; " << board_->repairs.load() << " repairs in " << board_->seeds_with_repairs.load()
         << " seeds with faults or evictions\n";
    show_coverage();
  }

  void show_coverage() {
    const std::vector<CoverageMark*> marks = all_marks();
    std::vector<std::pair<std::string, std::uint64_t>> lines;
    for (std::size_t i = 0; i < marks.size(); ++i) lines.push_back({marks[i]->name(), board_->marks[i]});
    std::sort(lines.begin(), lines.end());
    for (const auto& [name, hits] : lines) {
      if (options_.coverage) out_ << "  " << std::setw(12) << hits << "  " << name << "\n";
      if (hits != 0 || !options_.require_coverage) continue;
      out_ << "no seed reached " << name << "\n";
      ++failures_;
    }
  }

  const ManyRunsOptions& options_;
  std::ostream& out_;
  Board* board_ = nullptr;
  std::vector<Worker> workers_;
  std::uint64_t failures_ = 0;
  bool stopping_ = false;
  bool on_terminal_ = ::isatty(STDOUT_FILENO) != 0;
  Clock::time_point began_ = Clock::now();
  Clock::time_point shown_ = Clock::now();
};

}  // namespace

std::optional<std::string> run_one(std::uint64_t seed, const ManyRunsOptions& options, std::ostream* trace,
                                   RunResult* first) {
  const RunResult result = run_random({seed, options.nodes, trace});
  if (first != nullptr) *first = result;
  if (result.violation) return result.violation->invariant + ": " + result.violation->text;
  if (!options.twice) return std::nullopt;
  const RunResult again = run_random({seed, options.nodes, nullptr});
  if (again.digest == result.digest && again.events == result.events) return std::nullopt;
  return "deterministic: the second run differs from the first";
}

bool run_many(const ManyRunsOptions& options, std::ostream& out) { return Foreman(options, out).run(); }

}  // namespace hoplite::sim
