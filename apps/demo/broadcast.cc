#include "broadcast.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>

namespace hoplite {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kLook = std::chrono::milliseconds(100);

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

bool same(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0;
}

bool all_ended(const std::vector<Receiver>& receivers) {
  return std::all_of(receivers.begin(), receivers.end(),
                     [](const Receiver& r) { return r.seconds || r.failed || r.killed; });
}

// Collects the ends of the gets, which come on the clients' own threads.
struct Ends {
  std::mutex mutex;
  std::vector<std::pair<std::size_t, double>> done;  // index into the receivers, seconds
  std::vector<std::pair<std::size_t, std::string>> failed;
  std::size_t under_way = 0;
};

void start_get(Client& client, ObjectId id, std::chrono::seconds timeout, std::size_t index, Clock::time_point start,
               std::span<const std::byte> expected, const std::shared_ptr<Ends>& ends) {
  client.get_async(id, {.timeout = timeout}).then([=](const Result<View>& view) {
    const double seconds = since(start);
    const bool right = view.ok() && same(view->bytes(), expected);
    const std::lock_guard lock(ends->mutex);
    --ends->under_way;
    if (right) ends->done.emplace_back(index, seconds);
    else ends->failed.emplace_back(index, view.ok() ? "the bytes are not those that were put" : view.error().message);
  });
}

// Asks the node itself how far it is, and where the bytes come from.
void look_at(Attendants& nodes, ObjectId id, Receiver& receiver) {
  if (receiver.seconds || receiver.failed || receiver.killed) return;
  const auto objects = nodes.at(receiver.node).objects();
  if (!objects) return;  // its get will say what is wrong
  for (const ObjectStatus& object : *objects) {
    if (object.id != id) continue;
    if (object.size > 0) receiver.share = static_cast<double>(object.bytes) / static_cast<double>(object.size);
    const int parent = nodes.index_of(object.parent);
    if (parent >= 0 && (receiver.parents.empty() || receiver.parents.back() != parent))
      receiver.parents.push_back(parent);
  }
}

void take_ends(Ends& ends, std::vector<Receiver>& receivers) {
  const std::lock_guard lock(ends.mutex);
  for (const auto& [index, seconds] : ends.done) {
    receivers[index].seconds = seconds;
    receivers[index].share = 1;
  }
  for (const auto& [index, why] : ends.failed)
    if (!receivers[index].killed) receivers[index].failed = why;
}

}  // namespace

Result<BroadcastResult> run_broadcast(Attendants& nodes, std::span<const std::byte> expected,
                                      const BroadcastOptions& options) {
  BroadcastResult result;
  const auto ends = std::make_shared<Ends>();
  ends->under_way = options.receivers.size();
  const auto start = Clock::now();
  for (const std::size_t node : options.receivers) {
    Receiver receiver;
    receiver.node = node;
    result.receivers.push_back(receiver);
    start_get(nodes.at(node), options.id, options.timeout, result.receivers.size() - 1, start, expected, ends);
  }
  auto next_look = start;
  while (true) {
    for (Receiver& receiver : result.receivers) look_at(nodes, options.id, receiver);
    take_ends(*ends, result.receivers);
    if (!options.watch(since(start), result.receivers)) return Error{Code::kCancelled, "interrupted"};
    if (all_ended(result.receivers)) break;
    next_look = std::max(next_look + kLook, Clock::now() + kLook / 4);
    std::this_thread::sleep_until(next_look);
  }
  for (const Receiver& receiver : result.receivers) {
    if (receiver.failed)
      return Error{Code::kInternal, "node " + std::to_string(receiver.node + 1) + " failed: " + *receiver.failed};
    result.seconds = std::max(result.seconds, receiver.seconds.value_or(0));
  }
  return result;
}

}  // namespace hoplite
