#include "common/local_cluster.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <thread>

#include "daemon_options.h"
#include "hoplite/client.h"

namespace hoplite {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kJoinTimeout = 20s;
constexpr auto kStopTimeout = 5s;  // then they are killed
constexpr auto kLook = 10ms;

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status))
    return std::string("signal ") + std::to_string(WTERMSIG(status)) + ", " + strsignal(WTERMSIG(status));
  return "status " + std::to_string(WEXITSTATUS(status));
}

const Error kInterrupted{Code::kCancelled, "interrupted"};

}  // namespace

Result<void> LocalCluster::start_node(int index) {
  DaemonOptions daemon;
  daemon.listen = "127.0.0.1:0";
  daemon.socket = folder_ + "/node" + std::to_string(index) + ".sock";
  daemon.memory_bytes = options_.memory_bytes;
  daemon.max_rate = options_.max_rate;
  daemon.drain = Duration{};  // they stop together
  if (!nodes_.empty()) daemon.join = {nodes_.front().process.address};

  Node node;
  node.log_file = folder_ + "/node" + std::to_string(index) + ".log";
  auto process = spawn_daemon({.arguments = to_arguments(daemon), .output_file = node.log_file});
  if (!process) return process.error();
  node.process = *std::move(process);
  node.running = true;
  nodes_.push_back(std::move(node));
  return {};
}

Result<void> LocalCluster::start(const std::function<bool()>& interrupted) {
  folder_ = (std::filesystem::temp_directory_path() / "hoplite-local-XXXXXX").string();
  if (::mkdtemp(folder_.data()) == nullptr) {
    const Error error{Code::kUnavailable, "cannot create the directory " + folder_ + ": " + std::strerror(errno)};
    folder_.clear();
    return error;
  }
  for (int index = 1; index <= options_.nodes; ++index) {
    if (interrupted()) return kInterrupted;
    if (auto started = start_node(index); !started)
      return Error{started.code(), "node " + std::to_string(index) + ": " + started.error().message};
  }
  return wait_until_joined(interrupted);
}

Result<void> LocalCluster::wait_until_joined(const std::function<bool()>& interrupted) {
  const auto deadline = Clock::now() + kJoinTimeout;
  for (std::size_t index = 0; index < nodes_.size(); ++index) {
    auto client = Client::connect({.socket = nodes_[index].process.socket});
    if (!client) return client.error();
    while (true) {
      const auto status = client->status();
      if (!status) return status.error();
      if (status->members == nodes_.size()) break;
      if (interrupted()) return kInterrupted;
      if (Clock::now() > deadline)
        return Error{Code::kTimedOut, "node " + std::to_string(index + 1) + " sees only " +
                                          std::to_string(status->members) + " of " + std::to_string(nodes_.size()) +
                                          " nodes"};
      std::this_thread::sleep_for(kLook);
    }
  }
  return {};
}

void LocalCluster::kill(int node) { ::kill(nodes_.at(static_cast<std::size_t>(node)).process.pid, SIGKILL); }

std::vector<std::pair<int, std::string>> LocalCluster::reap() {
  std::vector<std::pair<int, std::string>> ended;
  for (std::size_t index = 0; index < nodes_.size(); ++index) {
    Node& node = nodes_[index];
    int status = 0;
    if (!node.running || ::waitpid(node.process.pid, &status, WNOHANG) != node.process.pid) continue;
    node.running = false;
    ended.emplace_back(static_cast<int>(index), how_it_ended(status));
  }
  return ended;
}

void LocalCluster::stop() {
  for (const Node& node : nodes_)
    if (node.running) ::kill(node.process.pid, SIGTERM);
  const auto any_running = [&] {
    for (const Node& node : nodes_)
      if (node.running) return true;
    return false;
  };
  const auto deadline = Clock::now() + kStopTimeout;
  for (reap(); any_running() && Clock::now() < deadline; reap()) std::this_thread::sleep_for(kLook);
  for (Node& node : nodes_) {
    if (!node.running) continue;
    ::kill(node.process.pid, SIGKILL);
    ::waitpid(node.process.pid, nullptr, 0);
    node.running = false;
  }
  nodes_.clear();
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
  folder_.clear();
}

}  // namespace hoplite
