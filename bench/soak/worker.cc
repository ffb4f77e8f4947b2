// hoplite-soak-worker: a client of one daemon that the soak (soak/run) commands.
//
//     hoplite-soak-worker SOCKET
//
// Each line of standard input is a number and a command; many are under way at once, and each is answered by one line:
//
//     NUMBER ok WORDS...       it was done
//     NUMBER fail CODE TEXT    the store said why not
//     NUMBER wrong TEXT        bytes that nobody has put, or a call that breaks its contract: a bug, whatever the faults
//
// Bytes follow from a tag, a number that each put has for itself. The metadata name the id, the tag and the size, so that any
// reader, on any node, can check all bytes without having heard of the put.
#include <sys/prctl.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <functional>
#include <iostream>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "hoplite/client.h"
#include "worker/command.h"
#include "worker/pattern.h"

namespace hoplite::bench {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::size_t kThreads = 48;  // so many commands at once; the driver sends fewer
constexpr std::size_t kWhole =
    64 * 1024;                         // objects up to this size are put in one call, larger ones are written in pieces
constexpr std::size_t kSummands = 16;  // of one reduce: all subsets are looked at

struct Failed {
  Error error;
};

template <typename T>
T must(Result<T> result) {
  if (!result) throw Failed{result.error()};
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

[[noreturn]] void wrong(const std::string& text) { throw std::runtime_error(text); }

// What is left of a command's time: its calls share one deadline.
class Deadline {
 public:
  explicit Deadline(std::istream& words) : at_(steady_clock::now() + milliseconds(next<std::int64_t>(words))) {}
  Timeout left() const { return std::max<std::chrono::nanoseconds>(at_ - steady_clock::now(), milliseconds(1)); }

 private:
  steady_clock::time_point at_;
};

// --- contents

enum class Kind : char { kBytes = 'b', kArray = 'a' };

// What a put says of its bytes.
struct Label {
  ObjectId id;
  std::uint64_t tag = 0;
  std::size_t size = 0;
  Kind kind = Kind::kBytes;

  std::string text() const {
    std::ostringstream out;
    out << "soak " << id.to_string() << ' ' << tag << ' ' << size << ' ' << static_cast<char>(kind);
    return out.str();
  }
  static Label parse(const std::string& text) {
    std::istringstream words(text);
    std::string soak, id;
    Label label;
    char kind = 0;
    if (!(words >> soak >> id >> label.tag >> label.size >> kind) || soak != "soak" || !ObjectId::parse(id))
      wrong("metadata that nobody has put: \"" + text + "\"");
    label.id = *ObjectId::parse(id);
    label.kind = static_cast<Kind>(kind);
    return label;
  }
};

void fill(const Label& label, std::span<std::byte> bytes) {
  label.kind == Kind::kArray ? fill_array(bytes, label.tag) : bench::fill(bytes, label.tag);
}

// What a reader expects: what the metadata say, or for the target of a reduce the sum of some of these arrays.
struct Expected {
  std::size_t count = 0;  // of the tags; 0: no target
  std::vector<std::uint64_t> tags;

  static Expected next(std::istream& words) {
    Expected expected;
    std::string word;
    if (!(words >> word)) return expected;
    if (word != "sum") wrong("\"sum\" expected, not \"" + word + "\"");
    expected.count = bench::next<std::size_t>(words);
    expected.tags = next_seeds(words);
    if (expected.tags.size() > kSummands) wrong("too many sources");
    return expected;
  }
};

std::vector<std::uint64_t> chosen(const std::vector<std::uint64_t>& tags, std::uint32_t mask) {
  std::vector<std::uint64_t> some;
  for (std::size_t i = 0; i < tags.size(); ++i)
    if (mask >> i & 1) some.push_back(tags[i]);
  return some;
}

bool is_sum(std::span<const std::byte> bytes, const std::vector<std::uint64_t>& tags) {
  try {
    check_sum(bytes, bytes.size(), tags);
    return true;
  } catch (const std::runtime_error&) {
    return false;
  }
}

// Which of the sources the array is the sum of, as bits: exactly `count` of them.
std::uint32_t summands(std::span<const std::byte> bytes, const Expected& expected) {
  const auto front = bytes.first(std::min<std::size_t>(bytes.size(), 256));
  for (std::uint32_t mask = 0; mask < 1U << expected.tags.size(); ++mask) {
    if (static_cast<std::size_t>(std::popcount(mask)) != expected.count) continue;
    const auto some = chosen(expected.tags, mask);
    if (is_sum(front, some) && is_sum(bytes, some)) return mask;
  }
  wrong("the array is not the sum of " + std::to_string(expected.count) + " of its sources");
}

// "tag T" or "sum MASK", after every byte has been looked at.
std::string check(const View& view, ObjectId id, const Expected& expected) {
  if (view.id() != id) wrong("a view of " + view.id().to_string());
  if (expected.count > 0) return "sum " + std::to_string(summands(view.bytes(), expected));
  const Label label = Label::parse(view.metadata());
  if (label.id != id) wrong("the metadata of " + label.id.to_string());
  if (label.kind == Kind::kArray) {
    if (view.size() != label.size) wrong("wrong size: " + std::to_string(view.size()));
    check_sum(view.bytes(), label.size, {label.tag});
  } else {
    bench::check(view.bytes(), label.size, label.tag);
  }
  return "tag " + std::to_string(label.tag);
}

// --- commands

class Worker {
 public:
  Worker(std::string socket, Client client) : socket_(std::move(socket)), client_(std::move(client)) {}

  std::string run(std::istream& words) {
    const auto name = next<std::string>(words);
    const auto found = commands_.find(name);
    if (found == commands_.end()) wrong("no such command: " + name);
    return found->second(words);
  }

 private:
  Label next_label(std::istream& words) {
    Label label;
    label.id = next_id(words);
    label.tag = next<std::uint64_t>(words);
    label.size = next<std::size_t>(words);
    label.kind = static_cast<Kind>(next<char>(words));
    return label;
  }

  static PutOptions options(const Label& label, const Deadline& deadline) {
    PutOptions options{.id = label.id, .metadata = label.text(), .timeout = deadline.left()};
    if (label.kind == Kind::kArray) options.array = {.type = DType::kF32};
    return options;
  }

  // Writes it in pieces, and waits in between: readers follow.
  static void write(ObjectWriter& writer, const Label& label, std::size_t upto, milliseconds pause) {
    fill(label, writer.buffer());
    constexpr std::size_t kPieces = 8;
    for (std::size_t piece = 1; piece <= kPieces; ++piece) {
      if (!writer.advance(std::min(upto, label.size / kPieces * piece))) return;  // what comes next says why
      if (pause.count() > 0) std::this_thread::sleep_for(pause);
    }
  }

  std::string put(std::istream& words) {
    const Label label = next_label(words);
    const Deadline deadline(words);
    const milliseconds pause(next<std::int64_t>(words));
    if (label.size <= kWhole && pause.count() == 0) {
      std::vector<std::byte> bytes(label.size);
      fill(label, bytes);
      must(client_.put(bytes, options(label, deadline)));
      return "";
    }
    auto writer = must(client_.create(label.size, options(label, deadline)));
    write(writer, label, label.size, pause);
    must(writer.seal(deadline.left()));
    return "";
  }

  // Begins a put, and gives it up half-way.
  std::string abandon(std::istream& words) {
    const Label label = next_label(words);
    const Deadline deadline(words);
    auto writer = must(client_.create(label.size, options(label, deadline)));
    write(writer, label, label.size / 2, milliseconds(20));
    writer.abort();
    return "";
  }

  // The view is looked at again after a while, whatever has become of the object and the daemon.
  std::string get(std::istream& words) {
    const ObjectId id = next_id(words);
    const Deadline deadline(words);
    const auto on_lost = next<std::string>(words) == "wait" ? OnLost::kWait : OnLost::kFail;
    const milliseconds hold(next<std::int64_t>(words));
    const Expected expected = Expected::next(words);
    const View view = must(client_.get(id, {.timeout = deadline.left(), .on_lost = on_lost}));
    const std::string found = check(view, id, expected);
    if (hold.count() > 0) {
      std::this_thread::sleep_for(hold);
      if (check(view, id, expected) != found) wrong("the bytes of a view that is held have changed");
    }
    return found;
  }

  // As `get`, by a client of its own, which is gone when the view is looked at again.
  std::string outlive(std::istream& words) {
    const ObjectId id = next_id(words);
    const Deadline deadline(words);
    const milliseconds hold(next<std::int64_t>(words));
    std::optional<Client> another = must(Client::connect({.socket = socket_, .timeout = deadline.left()}));
    const View view = must(another->get(id, {.timeout = deadline.left()}));
    const std::string found = check(view, id, {});
    another.reset();
    std::this_thread::sleep_for(hold);
    if (check(view, id, {}) != found) wrong("the bytes of a view whose client is gone have changed");
    return found;
  }

  // Reads while it grows; what was shown before completion must be the front of what is complete.
  std::string follow(std::istream& words) {
    const ObjectId id = next_id(words);
    const Deadline deadline(words);
    const Expected expected = Expected::next(words);
    Follower follower = must(client_.follow(id, {.timeout = deadline.left()}));
    std::vector<std::byte> seen;
    while (true) {
      const Follower::Progress progress = must(follower.next(deadline.left()));
      if (progress.event == Follower::Event::kReset) {
        seen.clear();
        continue;
      }
      if (progress.bytes.size() < seen.size()) wrong("a follower's bytes have become fewer");
      if (!std::equal(seen.begin(), seen.end(), progress.bytes.begin())) wrong("bytes that were followed have changed");
      seen.assign(progress.bytes.begin(), progress.bytes.end());
      if (progress.event != Follower::Event::kComplete) continue;
      const View view = follower.view();
      if (!std::equal(seen.begin(), seen.end(), view.bytes().begin(), view.bytes().end()))
        wrong("what was followed is not what is complete");
      return check(view, id, expected);
    }
  }

  std::string remove(std::istream& words) {
    const ObjectId id = next_id(words);
    const Deadline deadline(words);
    return must(client_.remove(id, deadline.left())) ? "known" : "unknown";
  }

  std::string wait(std::istream& words) {
    const auto count = next<std::size_t>(words);
    const Deadline deadline(words);
    const std::vector<ObjectId> ids = next_ids(words);
    std::string ready;
    for (const ObjectId& id : must(client_.wait(ids, count, deadline.left()))) {
      if (std::find(ids.begin(), ids.end(), id) == ids.end()) wrong("nobody waits for " + id.to_string());
      ready += id.to_string() + ' ';
    }
    return ready;
  }

  std::string reduce(std::istream& words) {
    const ObjectId target = next_id(words);
    const bool all = next<std::string>(words) == "allreduce";
    const auto count = next<std::size_t>(words);
    const Deadline deadline(words);
    const std::vector<ObjectId> sources = next_ids(words);
    const ReduceOptions options{.target = target, .type = DType::kF32, .count = count, .timeout = deadline.left()};
    must(all ? client_.allreduce(sources, options) : client_.reduce(sources, options));
    return "";
  }

  // Many small objects that live for a moment.
  std::string burst(std::istream& words) {
    const auto count = next<std::size_t>(words);
    const auto first = next<std::uint64_t>(words);
    const Deadline deadline(words);
    constexpr std::size_t kSize = 1000;
    std::vector<Label> labels;
    std::deque<Future<ObjectId>> puts;
    for (std::size_t i = 0; i < count; ++i) {
      const Label& label = labels.emplace_back(client_.new_id(), first + i, kSize, Kind::kBytes);
      puts.push_back(client_.put_async(pattern(kSize, label.tag), options(label, deadline)));
    }
    for (auto& put : puts) must(put.get());
    std::deque<Future<View>> gets;
    for (const Label& label : labels) gets.push_back(client_.get_async(label.id, {.timeout = deadline.left()}));
    for (std::size_t i = 0; i < count; ++i) check(must(gets[i].get()), labels[i].id, {});
    std::deque<Future<bool>> removals;
    for (const Label& label : labels) removals.push_back(client_.remove_async(label.id, deadline.left()));
    for (auto& removal : removals)
      if (!must(removal.get())) wrong("an object that was put here is unknown to its delete");
    return "";
  }

  std::string mint(std::istream& words) {
    std::string ids;
    for (auto count = next<std::size_t>(words); count > 0; --count) ids += client_.new_id().to_string() + ' ';
    return ids;
  }

  std::string status(std::istream&) {
    const StoreStatus status = must(client_.status());
    std::ostringstream out;
    out << status.node << ' ' << status.incarnation << ' ' << status.members << ' ' << status.objects << ' '
        << status.growing << ' ' << status.used_bytes << ' ' << status.pinned_bytes << ' ' << status.waiting << ' '
        << status.clients;
    return out.str();
  }

  std::string socket_;
  Client client_;

  using Command = std::function<std::string(std::istream&)>;
  Command bound(std::string (Worker::*method)(std::istream&)) {
    return [this, method](std::istream& words) { return (this->*method)(words); };
  }
  const std::map<std::string, Command> commands_ = {
      {"put", bound(&Worker::put)},          // ID TAG SIZE b|a TIMEOUT_MS PAUSE_MS
      {"abandon", bound(&Worker::abandon)},  // ID TAG SIZE b|a TIMEOUT_MS
      {"get", bound(&Worker::get)},          // ID TIMEOUT_MS fail|wait HOLD_MS [sum COUNT TAG...]
      {"outlive", bound(&Worker::outlive)},  // ID TIMEOUT_MS HOLD_MS
      {"follow", bound(&Worker::follow)},    // ID TIMEOUT_MS [sum COUNT TAG...]
      {"remove", bound(&Worker::remove)},    // ID TIMEOUT_MS
      {"wait", bound(&Worker::wait)},        // COUNT TIMEOUT_MS ID...
      {"reduce", bound(&Worker::reduce)},    // TARGET reduce|allreduce COUNT TIMEOUT_MS SOURCE...
      {"burst", bound(&Worker::burst)},      // COUNT FIRST_TAG TIMEOUT_MS
      {"mint", bound(&Worker::mint)},        // COUNT
      {"status", bound(&Worker::status)},    //
  };
};

// --- many at once

std::string one_line(std::string text) {
  std::replace_if(text.begin(), text.end(), [](unsigned char c) { return c < ' '; }, ' ');
  return text;
}

std::string answer(Worker& worker, const std::string& line) {
  std::istringstream words(line);
  std::string number;
  words >> number;
  try {
    return number + " ok " + worker.run(words);
  } catch (const Failed& failed) {
    std::string code(code_name(failed.error.code));
    std::replace(code.begin(), code.end(), ' ', '_');
    return number + " fail " + code + ' ' + one_line(failed.error.message);
  } catch (const std::exception& error) {
    return number + " wrong " + one_line(error.what());
  }
}

class Pool {
 public:
  explicit Pool(Worker& worker) : worker_(worker) {
    for (std::size_t i = 0; i < kThreads; ++i) threads_.emplace_back([this] { serve(); });
  }
  void add(std::string line) {
    const std::lock_guard lock(mutex_);
    lines_.push_back(std::move(line));
    more_.notify_one();
  }

 private:
  void serve() {
    while (true) {
      std::string line;
      {
        std::unique_lock lock(mutex_);
        more_.wait(lock, [this] { return !lines_.empty(); });
        line = std::move(lines_.front());
        lines_.pop_front();
      }
      const std::string text = answer(worker_, line) + '\n';
      const std::lock_guard lock(output_);
      std::fwrite(text.data(), 1, text.size(), stdout);
      std::fflush(stdout);
    }
  }

  Worker& worker_;
  std::mutex mutex_, output_;
  std::condition_variable more_;
  std::deque<std::string> lines_;
  std::vector<std::thread> threads_;
};

int serve(const std::string& socket) {
  auto client = Client::connect({.socket = socket, .timeout = kPatience});
  if (!client) {
    std::fprintf(stderr, "hoplite-soak-worker: %s\n", client.error().to_string().c_str());
    return 1;
  }
  Worker worker(socket, *std::move(client));
  Pool pool(worker);
  std::printf("0 ok ready\n");
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) pool.add(std::move(line));
  std::quick_exit(0);  // whoever commands is gone, and commands that are under way answer to nobody
}

}  // namespace
}  // namespace hoplite::bench

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: hoplite-soak-worker SOCKET\n");
    return 2;
  }
  std::signal(SIGPIPE, SIG_IGN);
  return hoplite::bench::serve(argv[1]);
}
