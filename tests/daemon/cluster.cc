#include "cluster.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>

#include "base/random.h"
#include "base/unique_fd.h"

namespace hoplite::testing {
namespace {

constexpr auto kStartTimeout = 60s;  // sanitizers on a busy machine
constexpr auto kPoll = 2ms;

[[noreturn]] void exec_daemon(const std::vector<std::string>& arguments,
                              const std::vector<std::pair<std::string, std::string>>& environment, int ready_fd,
                              const std::string& log_file) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::fcntl(ready_fd, F_SETFD, 0);
  ::setenv("HOPLITE_READY_FD", std::to_string(ready_fd).c_str(), 1);
  for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
  const int log = ::open(log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  ::dup2(log, STDERR_FILENO);
  ::dup2(log, STDOUT_FILENO);
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  ::execv(argv[0], argv.data());
  ::_exit(127);
}

// The line that the daemon says when it listens, or when it does not.
std::string read_ready_line(int fd) {
  std::string line;
  const auto end = std::chrono::steady_clock::now() + kStartTimeout;
  while (line.empty() || line.back() != '\n') {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    pollfd readable{fd, POLLIN, 0};
    if (left.count() <= 0 || ::poll(&readable, 1, static_cast<int>(left.count())) <= 0) return "error no word in time";
    char buffer[512];
    const ssize_t got = ::read(fd, buffer, sizeof buffer);
    if (got <= 0) return "error it ended without a word";
    line.append(buffer, static_cast<std::size_t>(got));
  }
  line.pop_back();
  return line;
}

std::vector<std::string> command_line(const DaemonSetup& setup) {
  std::vector<std::string> arguments = {HOPLITED_PATH, "--foreground", "--listen", setup.listen,
                                        "--socket",    setup.socket,   "--memory", setup.memory};
  for (const std::string& member : setup.join) arguments.insert(arguments.end(), {"--join", member});
  arguments.insert(arguments.end(), setup.arguments.begin(), setup.arguments.end());
  return arguments;
}

}  // namespace

// --- Daemon

Daemon::~Daemon() {
  if (pid_ > 0) kill();
}

std::string Daemon::log() const {
  std::stringstream text;
  text << std::ifstream(log_file_).rdbuf();
  return text.str();
}

void Daemon::signal(int number) const {
  if (pid_ > 0) ::kill(pid_, number);
}

std::optional<int> Daemon::wait_for_exit(std::chrono::milliseconds timeout) {
  int status = 0;
  const bool gone = eventually(
      [&] {
        const pid_t waited = ::waitpid(pid_, &status, WNOHANG);
        return waited == pid_ || (waited < 0 && errno == ECHILD);
      },
      timeout);
  if (!gone) return std::nullopt;
  pid_ = -1;
  return status;
}

bool Daemon::running() { return pid_ > 0 && !wait_for_exit(0ms); }

void Daemon::kill() {
  signal(SIGKILL);
  if (pid_ > 0) wait_for_exit(30s);
}
void Daemon::pause() { signal(SIGSTOP); }
void Daemon::resume() { signal(SIGCONT); }

int Daemon::terminate() {
  signal(SIGTERM);
  const auto status = wait_for_exit(20s);
  if (!status) kill();
  return status && WIFEXITED(*status) ? WEXITSTATUS(*status) : -1;
}

Result<Client> Daemon::try_connect(const std::string& token) const {
  ConnectOptions options;
  options.socket = socket_;
  options.token = token;
  options.timeout = 30s;
  return Client::connect(options);
}

Client Daemon::connect() const {
  auto client = try_connect();
  if (!client) throw std::runtime_error("cannot connect to " + socket_ + ": " + client.error().to_string());
  return std::move(*client);
}

// --- Cluster

Cluster::Cluster() {
  char folder[] = "/tmp/hoplite-test-XXXXXX";
  if (::mkdtemp(folder) == nullptr) throw std::runtime_error("mkdtemp failed");
  folder_ = folder;
}

Cluster::~Cluster() {
  for (const auto& daemon : daemons_) {
    daemon->kill();
    if (::testing::Test::HasFailure())
      std::fprintf(stderr, "--- %s\n%s", daemon->log_file().c_str(), daemon->log().c_str());
  }
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

Result<Daemon*> Cluster::try_start(DaemonSetup setup) {
  const std::string name = folder_ + "/" + std::to_string(daemons_.size());
  if (setup.socket.empty()) setup.socket = name + ".sock";
  if (setup.join.empty()) {
    const auto running = std::find_if(daemons_.begin(), daemons_.end(), [](const auto& d) { return d->running(); });
    if (running != daemons_.end()) setup.join = {(*running)->address()};
  }
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC) != 0) return Error{Code::kInternal, "pipe2 failed"};
  UniqueFd ready(pipe[0]);
  UniqueFd child_end(pipe[1]);

  std::unique_ptr<Daemon> daemon(new Daemon);
  daemon->socket_ = setup.socket;
  daemon->log_file_ = name + ".log";
  const auto arguments = command_line(setup);
  daemon->pid_ = ::fork();
  if (daemon->pid_ == 0) exec_daemon(arguments, setup.environment, child_end.get(), daemon->log_file_);
  child_end.reset();

  std::stringstream line(read_ready_line(ready.get()));
  std::string word;
  line >> word;
  if (word != "ready") {
    daemon->wait_for_exit(10s);
    std::string message;
    std::getline(line >> std::ws, message);
    return Error{Code::kUnavailable, message};
  }
  std::string socket;
  std::string pid;
  line >> socket >> pid >> daemon->address_;
  daemons_.push_back(std::move(daemon));
  return daemons_.back().get();
}

Daemon& Cluster::start(DaemonSetup setup) {
  auto daemon = try_start(std::move(setup));
  if (!daemon) throw std::runtime_error("a daemon did not start: " + daemon.error().message);
  return **daemon;
}

void Cluster::start_many(std::size_t count, const DaemonSetup& setup) {
  for (std::size_t i = 0; i < count; ++i) start(setup);
  wait_for_members(count);
}

void Cluster::wait_for_members(std::size_t members) {
  for (const auto& daemon : daemons_) {
    if (!daemon->running()) continue;
    Client client = daemon->connect();
    const bool all = eventually([&] {
      auto status = client.status();
      return status.ok() && status->members == members;
    });
    if (!all) throw std::runtime_error(daemon->address() + " does not count " + std::to_string(members) + " members");
  }
}

// --- bytes and time

std::vector<std::byte> pattern(std::size_t size, std::uint64_t seed) {
  std::vector<std::byte> bytes(size);
  Random random(seed);
  for (std::size_t at = 0; at < size; at += 8) {
    const std::uint64_t word = random.next();
    std::memcpy(bytes.data() + at, &word, std::min<std::size_t>(8, size - at));
  }
  return bytes;
}

std::string difference(std::span<const std::byte> bytes, std::size_t size, std::uint64_t seed) {
  if (bytes.size() != size) return "there are " + std::to_string(bytes.size()) + " bytes, not " + std::to_string(size);
  Random random(seed);
  for (std::size_t at = 0; at < size; at += 8) {
    const std::uint64_t word = random.next();
    if (std::memcmp(bytes.data() + at, &word, std::min<std::size_t>(8, size - at)) != 0)
      return "the bytes differ in the 8 from " + std::to_string(at);
  }
  return "";
}

bool eventually(const std::function<bool()>& holds, std::chrono::milliseconds timeout) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  for (;;) {
    if (holds()) return true;
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(kPoll);
  }
}

std::uint64_t bytes_at(Client& client, ObjectId id) {
  const auto objects = client.objects();
  if (!objects) return 0;
  for (const ObjectStatus& object : *objects) {
    if (object.id == id) return object.bytes;
  }
  return 0;
}

std::uint64_t anonymous_kib(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  std::string word;
  std::uint64_t value = 0;
  while (status >> word)
    if (word == "RssAnon:" && status >> value) return value;
  return 0;
}

}  // namespace hoplite::testing
