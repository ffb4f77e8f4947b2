#include "common/daemon_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/unique_fd.h"

namespace hoplite {
namespace {

namespace fs = std::filesystem;

bool is_program(const std::string& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && ::access(path.c_str(), X_OK) == 0;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (std::string& text : strings) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

std::vector<std::string> command(const std::string& program, const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

std::vector<std::string> environment_with(const std::string& variable) {
  const std::string name = variable.substr(0, variable.find('=') + 1);
  std::vector<std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (std::string_view(*entry).substr(0, name.size()) != name) variables.emplace_back(*entry);
  variables.push_back(variable);
  return variables;
}

// What the child does between fork and exec: only calls that are safe there, since we may have threads.
struct ChildPlan {
  char* const* argv = nullptr;
  char* const* environment = nullptr;
  int input = -1;
  int output = -1;
  int ready = -1;
  bool detached = false;
  pid_t parent = -1;
};

[[noreturn]] void become_daemon(const ChildPlan& plan) {
  if (plan.detached) {
    ::setsid();
  } else {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != plan.parent) ::_exit(127);  // it died before that was set
    // Ctrl-C is for us; we stop the daemons in order.
    ::setpgid(0, 0);
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::dup2(plan.input, STDIN_FILENO);
  ::dup2(plan.output, STDOUT_FILENO);
  ::dup2(plan.output, STDERR_FILENO);
  ::fcntl(plan.ready, F_SETFD, 0);
  ::execve(plan.argv[0], plan.argv, plan.environment);
  ::_exit(127);
}

// One line, or what came before the end or the deadline.
std::string read_line(int fd, std::chrono::seconds timeout, bool& timed_out) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  std::string line;
  timed_out = false;
  while (line.find('\n') == std::string::npos) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) {
      timed_out = true;
      break;
    }
    pollfd wanted{.fd = fd, .events = POLLIN, .revents = 0};
    if (::poll(&wanted, 1, static_cast<int>(left.count())) <= 0) continue;
    char buffer[4096];
    const ssize_t n = ::read(fd, buffer, sizeof buffer);
    if (n == 0) break;
    if (n > 0) line.append(buffer, static_cast<std::size_t>(n));
  }
  return line.substr(0, line.find('\n'));
}

// Of what was written to it behind `begin`.
std::string last_line_of(const std::string& path, std::streamoff begin) {
  std::ifstream file(path);
  file.seekg(begin);
  std::string line;
  std::string last;
  while (std::getline(file, line))
    if (!line.empty()) last = line;
  return last;
}

Error never_ready(const SpawnOptions& options, pid_t pid, bool timed_out, std::streamoff log_begin) {
  if (timed_out) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    return {Code::kTimedOut, "hoplited was not ready within " + std::to_string(options.ready_timeout.count()) +
                                 " s; its log is " + options.output_file};
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  const std::string how = WIFSIGNALED(status) ? "was ended by signal " + std::to_string(WTERMSIG(status))
                                              : "ended with status " + std::to_string(WEXITSTATUS(status));
  const std::string last = last_line_of(options.output_file, log_begin);
  return {Code::kUnavailable, "hoplited " + how + " before it was ready" + (last.empty() ? "" : ": " + last)};
}

}  // namespace

Result<std::string> find_daemon() {
  std::error_code ignored;
  const fs::path self = fs::read_symlink("/proc/self/exe", ignored);
  const std::string beside = (self.parent_path() / "hoplited").string();
  if (is_program(beside)) return beside;
  const char* path = std::getenv("PATH");
  std::string_view rest = path != nullptr ? path : "";
  while (!rest.empty()) {
    const std::string_view folder = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(rest.size(), folder.size() + 1));
    const std::string candidate = std::string(folder) + "/hoplited";
    if (!folder.empty() && is_program(candidate)) return candidate;
  }
  return Error{Code::kUnavailable, "cannot find hoplited, neither next to this program nor in $PATH"};
}

Result<DaemonProcess> parse_ready_line(const std::string& line) {
  constexpr std::string_view kReady = "ready ";
  constexpr std::string_view kError = "error ";
  if (line.starts_with(kError)) return Error{Code::kUnavailable, line.substr(kError.size())};
  const std::size_t before_address = line.rfind(' ');
  const std::size_t before_pid = before_address == std::string::npos || before_address == 0
                                     ? std::string::npos
                                     : line.rfind(' ', before_address - 1);
  DaemonProcess daemon;
  const bool shape = line.starts_with(kReady) && before_pid != std::string::npos && before_pid >= kReady.size();
  if (shape) {
    daemon.socket = line.substr(kReady.size(), before_pid - kReady.size());
    daemon.address = line.substr(before_address + 1);
    std::from_chars(line.data() + before_pid + 1, line.data() + before_address, daemon.pid);
  }
  if (daemon.pid <= 0 || daemon.socket.empty() || daemon.address.empty())
    return Error{Code::kInternal, "hoplited said \"" + line + "\" instead of reporting that it is ready"};
  return daemon;
}

Result<DaemonProcess> spawn_daemon(const SpawnOptions& options) {
  const auto program = find_daemon();
  if (!program) return program.error();
  const UniqueFd input(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const UniqueFd output(::open(options.output_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!output)
    return Error{Code::kUnavailable, "cannot write the log " + options.output_file + ": " + std::strerror(errno)};
  const std::streamoff log_begin = ::lseek(output.get(), 0, SEEK_END);  // there may be the words of an earlier one
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return Error{Code::kUnavailable, std::string("cannot create a pipe: ") + std::strerror(errno)};
  const UniqueFd ready(ends[0]);
  UniqueFd ready_end(ends[1]);

  auto words = command(*program, options.arguments);
  auto variables = environment_with("HOPLITE_READY_FD=" + std::to_string(ready_end.get()));
  const auto argv = pointers(words);
  const auto environment = pointers(variables);
  const ChildPlan plan{argv.data(),     environment.data(), input.get(), output.get(),
                       ready_end.get(), options.detached,   ::getpid()};
  const pid_t pid = ::fork();
  if (pid < 0) return Error{Code::kUnavailable, std::string("cannot start a process: ") + std::strerror(errno)};
  if (pid == 0) become_daemon(plan);
  ready_end.reset();

  bool timed_out = false;
  const std::string line = read_line(ready.get(), options.ready_timeout, timed_out);
  if (line.empty()) return never_ready(options, pid, timed_out, log_begin);
  auto daemon = parse_ready_line(line);
  if (!daemon) ::waitpid(pid, nullptr, 0);
  return daemon;
}

Error exec_daemon(const std::vector<std::string>& arguments) {
  const auto program = find_daemon();
  if (!program) return program.error();
  auto words = command(*program, arguments);
  ::execv(program->c_str(), pointers(words).data());
  return {Code::kUnavailable, "cannot run " + *program + ": " + std::strerror(errno)};
}

}  // namespace hoplite
