// hoplite-bench-worker: a client of one daemon that bench/run commands.
//
//     hoplite-bench-worker SOCKET [--busy-poll]
//
// Reads commands from standard input, one in a line, and answers each with a line of JSON: the result, or {"error": "..."}.
// Times are those of CLOCK_MONOTONIC, which all hosts of the lab share, so several workers can be told to start at the
// same moment. A transfer is complete when the client has a view of all bytes; whether they are right is looked at later
// (`check`), when nobody is being timed.
#include <sys/prctl.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <functional>
#include <iostream>
#include <map>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "hoplite/client.h"
#include "worker/collectives.h"
#include "worker/command.h"
#include "worker/crowd.h"
#include "worker/pattern.h"

namespace hoplite::bench {
namespace {

class Worker {
 public:
  explicit Worker(Client client) : client_(std::move(client)) {}

  // The answer to one command; throws std::runtime_error.
  std::string run(const std::string& line) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    const auto found = commands_.find(name);
    if (found == commands_.end()) throw std::runtime_error("no such command: " + name);
    return found->second(words).line();
  }

 private:
  Json put(std::istream& words) {
    const auto size = next<std::uint64_t>(words);
    const auto seed = next<std::uint64_t>(words);
    auto writer = value_of(client_.create(size, {.timeout = kPatience}));
    fill(writer.buffer(), seed);
    return Json().add("id", value_of(writer.seal(kPatience)).to_string());
  }

  Json get(std::istream& words) {
    const ObjectId id = next_id(words);
    sleep_until(next<std::int64_t>(words));
    std::string priority = "normal";
    words >> priority;
    const std::int64_t start_ns = now_ns();
    views_ = {value_of(client_.get(id, {.timeout = kPatience, .priority = parse_priority(priority).value()}))};
    Json answer;
    return add_times(answer, start_ns, now_ns());
  }

  // All of them at once.
  Json get_many(std::istream& words) {
    std::vector<Future<View>> under_way;
    for (const ObjectId& id : next_ids(words)) under_way.push_back(client_.get_async(id, {.timeout = kPatience}));
    const std::int64_t start_ns = now_ns();
    views_.clear();
    for (Future<View>& view : under_way) views_.push_back(value_of(view.get()));
    Json answer;
    return add_times(answer, start_ns, now_ns());
  }

  // How many bytes of each there are here now, and whom they come from.
  Json progress(std::istream& words) {
    std::map<ObjectId, ObjectStatus> here;
    for (const ObjectStatus& status : value_of(client_.objects())) here[status.id] = status;
    std::vector<Json> all;
    for (const ObjectId& id : next_ids(words))
      all.push_back(Json().add("bytes", here[id].bytes).add("parent", here[id].parent));
    return Json().add("objects", all);
  }

  Json check_views(std::istream& words) {
    const auto size = next<std::size_t>(words);
    const std::vector<std::uint64_t> seeds = next_seeds(words);
    if (seeds.size() != views_.size())
      throw std::runtime_error("there are " + std::to_string(views_.size()) + " views");
    for (std::size_t i = 0; i < seeds.size(); ++i) check(views_[i].bytes(), size, seeds[i]);
    return {};
  }

  Json release(std::istream&) {
    views_.clear();
    return {};
  }

  Json remove(std::istream& words) {
    remove_all(next_ids(words));
    return {};
  }

  Json object(std::istream& words) {
    const ObjectId id = next_id(words);
    for (const ObjectStatus& status : value_of(client_.objects())) {
      if (status.id != id) continue;
      return Json()
          .add("phase", std::string(to_string(status.state)))
          .add("bytes", status.bytes)
          .add("parent", status.parent)
          .add("receivers", std::uint64_t{status.receivers});
    }
    return Json().add("phase", std::string("unknown"));
  }

  Json status(std::istream&) {
    const StoreStatus status = value_of(client_.status());
    return Json()
        .add("node", status.node)
        .add("incarnation", std::uint64_t{status.incarnation})
        .add("directory_entries", status.directory_entries)
        .add("members", status.members)
        .add("pid", status.pid)
        .add("objects", status.objects)
        .add("used_bytes", status.used_bytes);
  }

  // --- there and back

  std::vector<ObjectId> mint(std::size_t count) {
    std::vector<ObjectId> ids(count);
    for (ObjectId& id : ids) id = client_.new_id();
    return ids;
  }

  // Ids travel between workers as an object of their own.
  void publish(const std::string& name, const std::vector<ObjectId>& ids) {
    value_of(client_.put(std::as_bytes(std::span(ids)), {.id = ObjectId::named(name), .timeout = kPatience}));
  }

  std::vector<ObjectId> published(const std::string& name) {
    const View view = value_of(client_.get(ObjectId::named(name), {.timeout = kPatience}));
    std::vector<ObjectId> ids(view.size() / sizeof(ObjectId));
    std::memcpy(ids.data(), view.data(), ids.size() * sizeof(ObjectId));
    return ids;
  }

  // What round trips left behind; when both sides are done, since a delete would take the last object from the other.
  Json remove_minted(std::istream&) {
    remove_all(std::exchange(minted_, {}));
    return {};
  }

  void remove_all(const std::vector<ObjectId>& ids) {
    for (const ObjectId id : ids) value_of(client_.remove(id, kPatience));
  }

  // `first` puts an object, `second` gets it and puts another, `first` gets that. Each asks for what comes next before it
  // answers, as a program with futures does and as one posts a receive in MPI.
  Json pingpong(std::istream& words) {
    const auto role = next<std::string>(words);
    const auto session = next<std::string>(words);
    const auto size = next<std::size_t>(words);
    const auto rounds = next<std::size_t>(words);
    const auto warmup = next<std::size_t>(words);
    const bool first = role == "first";
    const std::vector<ObjectId> ours = mint(rounds + warmup);
    publish(session + role, ours);
    const std::vector<ObjectId> theirs = published(session + (first ? "second" : "first"));
    const std::vector<double> seconds = first ? ping(ours, theirs, size) : pong(ours, theirs, size);
    minted_.insert(minted_.end(), ours.begin(), ours.end());
    return Json().add("seconds", std::vector(seconds.begin() + static_cast<std::ptrdiff_t>(warmup), seconds.end()));
  }

  std::vector<double> ping(const std::vector<ObjectId>& ours, const std::vector<ObjectId>& theirs, std::size_t size) {
    std::vector<std::byte> message = pattern(size, 0);
    std::vector<double> seconds;
    Future<View> awaited = client_.get_async(theirs[0], {.timeout = kPatience});
    for (std::size_t i = 0; i < ours.size(); ++i) {
      const std::int64_t start_ns = now_ns();
      Future<ObjectId> sent = client_.put_async(message, {.id = ours[i], .timeout = kPatience});
      Future<View> next;
      if (i + 1 < theirs.size()) next = client_.get_async(theirs[i + 1], {.timeout = kPatience});
      const View view = value_of(awaited.get());
      seconds.push_back(seconds_since(start_ns));
      value_of(sent.get());
      check(view.bytes(), size, i);
      fill(message, i + 1);
      awaited = std::move(next);
    }
    return seconds;
  }

  std::vector<double> pong(const std::vector<ObjectId>& ours, const std::vector<ObjectId>& theirs, std::size_t size) {
    std::vector<std::byte> message = pattern(size, 0);
    std::vector<double> seconds(ours.size());  // the other side takes the time
    Future<View> awaited = client_.get_async(theirs[0], {.timeout = kPatience});
    for (std::size_t i = 0; i < ours.size(); ++i) {
      const View view = value_of(awaited.get());
      Future<ObjectId> sent = client_.put_async(message, {.id = ours[i], .timeout = kPatience});
      if (i + 1 < theirs.size()) awaited = client_.get_async(theirs[i + 1], {.timeout = kPatience});
      value_of(sent.get());
      check(view.bytes(), size, i);
      fill(message, i + 1);
    }
    return seconds;
  }

  // --- small objects, one after the other

  Json put_small(std::istream& words) {
    const auto name = next<std::string>(words);
    const std::vector<ObjectId> ids = mint(next<std::size_t>(words));
    const auto size = next<std::size_t>(words);
    for (std::size_t i = 0; i < ids.size(); ++i)
      value_of(client_.put(pattern(size, i), {.id = ids[i], .timeout = kPatience}));
    publish(name, ids);
    return {};
  }

  Json get_small(std::istream& words) {
    const std::vector<ObjectId> ids = published(next<std::string>(words));
    const auto size = next<std::size_t>(words);
    const auto pause_ns = next<std::int64_t>(words) * kNsPerMs;
    std::vector<double> seconds;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      sleep_until(now_ns() + pause_ns);
      const std::int64_t start_ns = now_ns();
      const View view = value_of(client_.get(ids[i], {.timeout = kPatience}));
      seconds.push_back(seconds_since(start_ns));
      check(view.bytes(), size, i);
    }
    return Json().add("seconds", seconds);
  }

  // --- how many in a second, with this node alone

  // Starts `count` operations, at most `outstanding` at a time; the seconds until the last is done.
  template <typename T>
  static double time_pipelined(std::size_t count, std::size_t outstanding,
                               const std::function<Future<T>(std::size_t)>& start) {
    std::deque<Future<T>> pending;
    const std::int64_t start_ns = now_ns();
    for (std::size_t i = 0; i < count; ++i) {
      if (pending.size() == outstanding) {
        value_of(pending.front().get());
        pending.pop_front();
      }
      pending.push_back(start(i));
    }
    for (Future<T>& last : pending) value_of(last.get());
    return seconds_since(start_ns);
  }

  template <typename Operation>
  static double time_blocking(std::size_t count, Operation operation) {
    const std::int64_t start_ns = now_ns();
    for (std::size_t i = 0; i < count; ++i) value_of(operation(i));
    return seconds_since(start_ns);
  }

  Json put_rate(std::istream& words) {
    const auto size = next<std::size_t>(words);
    const auto count = next<std::size_t>(words);
    const auto outstanding = next<std::size_t>(words);
    const std::vector<std::byte> bytes = pattern(size, 0);
    const std::vector<ObjectId> ids = mint(count);
    const double seconds = outstanding == 1
                               ? time_blocking(count, [&](std::size_t i) { return client_.put(bytes, {.id = ids[i]}); })
                               : time_pipelined<ObjectId>(count, outstanding, [&](std::size_t i) {
                                   return client_.put_async(bytes, {.id = ids[i]});
                                 });
    remove_all(ids);
    return Json().add("seconds", seconds);
  }

  Json get_rate(std::istream& words) {
    const auto size = next<std::size_t>(words);
    const auto count = next<std::size_t>(words);
    const auto outstanding = next<std::size_t>(words);
    constexpr std::size_t kObjects = 1000;  // gets of one object only would flatter caches
    const std::vector<ObjectId> ids = mint(kObjects);
    for (std::size_t i = 0; i < ids.size(); ++i) value_of(client_.put(pattern(size, i), {.id = ids[i]}));
    const double seconds =
        outstanding == 1 ? time_blocking(count, [&](std::size_t i) { return client_.get(ids[i % kObjects]); })
                         : time_pipelined<View>(count, outstanding,
                                                [&](std::size_t i) { return client_.get_async(ids[i % kObjects]); });
    for (std::size_t i = 0; i < ids.size(); ++i) check(value_of(client_.get(ids[i])).bytes(), size, i);
    remove_all(ids);
    return Json().add("seconds", seconds);
  }

  // Puts of one object after another from warm memory, each deleted before the next.
  Json timed_puts(std::istream& words) {
    const auto size = next<std::size_t>(words);
    const auto reps = next<std::size_t>(words);
    const std::vector<std::byte> bytes = pattern(size, 0);
    std::vector<double> seconds;
    for (std::size_t i = 0; i < reps; ++i) {
      const std::int64_t start_ns = now_ns();
      const ObjectId id = value_of(client_.put(bytes, {.timeout = kPatience}));
      seconds.push_back(seconds_since(start_ns));
      check(value_of(client_.get(id)).bytes(), size, 0);
      value_of(client_.remove(id, kPatience));
    }
    return Json().add("seconds", seconds);
  }

  // Puts objects that stay.
  Json keep(std::istream& words) {
    const auto count = next<std::size_t>(words);
    const std::vector<std::byte> bytes = pattern(next<std::size_t>(words), 0);
    time_pipelined<ObjectId>(count, 64, [&](std::size_t) { return client_.put_async(bytes); });
    return {};
  }

  using Command = std::function<Json(std::istream&)>;
  Command bound(Json (Worker::*method)(std::istream&)) {
    return [this, method](std::istream& words) { return (this->*method)(words); };
  }
  Command bound(Json (Collectives::*method)(std::istream&)) {
    return [this, method](std::istream& words) { return (collectives_.*method)(words); };
  }
  Command bound(Json (Crowd::*method)(std::istream&)) {
    return [this, method](std::istream& words) { return (crowd_.*method)(words); };
  }

  Client client_;
  std::vector<View> views_;  // of the last get, reduce or gather
  Collectives collectives_{client_, views_};
  Crowd crowd_{client_};
  std::vector<ObjectId> minted_;  // put by round trips
  const std::map<std::string, Command> commands_ = {
      {"put", bound(&Worker::put)},                      // SIZE SEED
      {"get", bound(&Worker::get)},                      // ID AT_NS [PRIORITY]
      {"get_many", bound(&Worker::get_many)},            // ID...
      {"progress", bound(&Worker::progress)},            // ID...
      {"check", bound(&Worker::check_views)},            // SIZE SEED...
      {"release", bound(&Worker::release)},              //
      {"remove", bound(&Worker::remove)},                // ID...
      {"object", bound(&Worker::object)},                // ID
      {"status", bound(&Worker::status)},                //
      {"pingpong", bound(&Worker::pingpong)},            // first|second SESSION SIZE ROUNDS WARMUP
      {"remove_minted", bound(&Worker::remove_minted)},  //
      {"put_small", bound(&Worker::put_small)},          // NAME COUNT SIZE
      {"get_small", bound(&Worker::get_small)},          // NAME SIZE PAUSE_MS
      {"put_rate", bound(&Worker::put_rate)},            // SIZE COUNT OUTSTANDING
      {"get_rate", bound(&Worker::get_rate)},            // SIZE COUNT OUTSTANDING
      {"timed_puts", bound(&Worker::timed_puts)},        // SIZE REPS
      {"keep", bound(&Worker::keep)},                    // COUNT SIZE
      // Their arguments: see crowd.h.
      {"crowd_put", bound(&Crowd::put)},
      {"crowd_know", bound(&Crowd::know)},
      {"crowd_share", bound(&Crowd::share)},
      {"crowd_learn", bound(&Crowd::learn)},
      {"crowd_use", bound(&Crowd::use)},
      {"crowd_get_all", bound(&Crowd::get_all)},
      {"crowd_remove", bound(&Crowd::remove)},
      {"churn", bound(&Crowd::churn)},
      {"came_back", bound(&Crowd::came_back)},
      // Their arguments: see collectives.h.
      {"mint", bound(&Collectives::mint)},
      {"put_array", bound(&Collectives::put_array)},
      {"stage", bound(&Collectives::stage)},
      {"put_staged", bound(&Collectives::put_staged)},
      {"reduce", bound(&Collectives::reduce)},
      {"allreduce", bound(&Collectives::allreduce)},
      {"reduce_status", bound(&Collectives::reduce_status)},
      {"gather", bound(&Collectives::gather)},
      {"check_sum", bound(&Collectives::check_sum)},
  };
};

int serve(const ConnectOptions& options) {
  auto client = Client::connect(options);
  if (!client) {
    std::cout << Json().add("error", client.error().to_string()).line() << std::endl;
    return 1;
  }
  Worker worker(std::move(*client));
  std::cout << Json().add("ready", options.socket).line() << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    try {
      std::cout << worker.run(line) << std::endl;
    } catch (const std::runtime_error& error) {
      std::cout << Json().add("error", error.what()).line() << std::endl;
    }
  }
  return 0;
}

}  // namespace
}  // namespace hoplite::bench

int main(int argc, char** argv) {
  const bool busy_poll = argc == 3 && std::strcmp(argv[2], "--busy-poll") == 0;
  if (argc != 2 && !busy_poll) {
    std::fprintf(stderr, "usage: hoplite-bench-worker SOCKET [--busy-poll]\n");
    return 2;
  }
  ::prctl(PR_SET_TIMERSLACK, 1);  // a common start must not be blurred by the kernel's 50 us of slack
  return hoplite::bench::serve({.socket = argv[1], .timeout = hoplite::bench::kPatience, .busy_poll = busy_poll});
}
