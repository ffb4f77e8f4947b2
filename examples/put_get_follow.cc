// Puts an object through one daemon, gets it through another, and follows a third object while it is being written.
//
//   hoplite local 2                                  # prints two sockets
//   hoplite-example SOCKET_1 SOCKET_2
#include <hoplite/client.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

namespace {

// Every call returns a value or an error that says what went wrong, with which object and why.
template <typename T>
T or_exit(hoplite::Result<T> result) {
  if (result.ok()) return *std::move(result);
  std::fprintf(stderr, "hoplite-example: %s\n", result.error().to_string().c_str());
  std::exit(1);
}

void or_exit(const hoplite::Result<void>& result) {
  if (result.ok()) return;
  std::fprintf(stderr, "hoplite-example: %s\n", result.error().to_string().c_str());
  std::exit(1);
}

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

// An id is a future: the reader may come before the writer.
void put_and_get(hoplite::Client& here, hoplite::Client& there) {
  const hoplite::ObjectId id = here.new_id();
  std::thread reader([&] {
    const hoplite::View view = or_exit(there.get(id, {.timeout = 10s}));
    std::printf("got %zu bytes without a copy: %.*s\n", view.size(), static_cast<int>(view.size()),
                reinterpret_cast<const char*>(view.data()));
  });
  or_exit(here.put(bytes_of("hello from the other node"), {.id = id, .timeout = 10s}));
  reader.join();
  or_exit(here.remove(id));
}

// Many at once from one thread: requests travel in batches.
void many_at_once(hoplite::Client& here) {
  std::vector<hoplite::Future<hoplite::ObjectId>> puts;
  for (int i = 0; i < 100; ++i) puts.push_back(here.put_async(bytes_of(std::to_string(i))));
  for (auto& put : puts) or_exit(here.remove(or_exit(put.get())));
  std::printf("put and removed %zu objects\n", puts.size());
}

// A large object is read while it is written.
void follow(hoplite::Client& here, hoplite::Client& there) {
  constexpr std::size_t kSize = 32 << 20;
  constexpr std::size_t kStep = 4 << 20;
  auto writer = or_exit(here.create(kSize, {.timeout = 10s}));
  const hoplite::ObjectId id = writer.id();
  std::thread reader([&] {
    auto follower = or_exit(there.follow(id, {.timeout = 30s}));
    while (true) {
      const auto progress = or_exit(follower.next());
      if (progress.event == hoplite::Follower::Event::kComplete) break;
      if (progress.event == hoplite::Follower::Event::kReset) continue;  // start over: other bytes will come
    }
    std::printf("followed %zu bytes to the end\n", follower.view().size());
  });
  for (std::size_t at = 0; at < kSize; at += kStep) {
    std::memset(writer.buffer().data() + at, 'x', kStep);
    or_exit(writer.advance(at + kStep));  // readers may have it up to here
  }
  or_exit(writer.seal(10s));
  reader.join();
  or_exit(here.remove(id));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3 || std::strcmp(argv[1], "--help") == 0) {
    std::printf("usage: hoplite-example SOCKET [SOCKET_OF_ANOTHER_NODE]\n");
    return argc == 2 ? 0 : 2;
  }
  auto here = or_exit(hoplite::Client::connect({.socket = argv[1]}));
  auto there = or_exit(hoplite::Client::connect({.socket = argv[argc - 1]}));
  put_and_get(here, there);
  many_at_once(here);
  follow(here, there);
  return 0;
}
