// A daemon for tests: one thread that speaks the client protocol over a real unix socket in a folder of its own, with a
// small store behind it. Tests look at what it was asked, and may answer instead of it.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "hoplite/client.h"
#include "protocol/client_messages.h"
#include "shm/arena.h"

namespace hoplite::client {

inline std::string text_of(ByteView bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

class FakeDaemon {
 public:
  struct Options {
    std::uint64_t arena_bytes = 16 * kMiB;
    std::uint64_t inline_bytes = 4096;
    ipc::Greeting greeting = {};
    std::string token = {};  // wanted from clients if not empty
  };

  FakeDaemon() : FakeDaemon(Options{}) {}
  explicit FakeDaemon(Options options);
  ~FakeDaemon();

  const std::string& socket_path() const { return socket_path_; }
  ConnectOptions connect_options() const;
  // A client of this daemon; the test ends if that fails.
  hoplite::Client connect(bool busy_poll = false);

  // Called on the daemon's thread for each request before the daemon itself looks at it. True: it was dealt with.
  using Interceptor = std::function<bool(std::uint64_t request, const ipc::Request& message, ByteView payload)>;
  void intercept(Interceptor interceptor);
  // From any thread, also from an interceptor.
  void reply(std::uint64_t request, const ipc::Reply& message);
  void send_raw(const std::string& bytes);
  // Ends the connection; the listening socket stays.
  void hang_up();
  // Stops reading requests, as a stopped process would, until `resume`.
  void pause();
  void resume();

  // Stores an object as if somebody had put it; waiting gets are answered.
  Extent store(ObjectId id, const std::string& bytes, const std::string& metadata = "");
  Extent allocate(std::uint64_t bytes);
  std::byte* memory(Extent extent) const { return arena_->base() + extent.offset; }

  // Waits until the daemon has seen `count` requests of one kind, and returns them with their numbers.
  template <typename Message>
  std::vector<std::pair<std::uint64_t, Message>> await(std::size_t count) {
    std::vector<std::pair<std::uint64_t, Message>> found;
    std::unique_lock lock(mutex_);
    seen_changed_.wait_for(lock, std::chrono::seconds(20), [&] {
      found.clear();
      for (const auto& [request, message] : seen_)
        if (const auto* m = std::get_if<Message>(&message)) found.emplace_back(request, *m);
      return found.size() >= count;
    });
    return found;
  }
  // How many holds (views and opened copies) have been given back, by copy.
  std::map<CopyKey, int> await_releases(std::size_t count);
  // Reads from the socket so far: shows how requests were batched.
  std::size_t receives() const;

 private:
  struct Stored {
    Extent extent;
    std::string metadata;
    CopyKey copy = 0;
  };

  void run();
  bool handshake();
  bool wait_readable(int fd);
  bool receive_some();
  void handle(std::uint64_t request, const ipc::Request& message, ByteView payload);
  void on(std::uint64_t request, const ipc::Put& put, ByteView payload);
  void on(std::uint64_t request, const ipc::Create& create, ByteView payload);
  void on(std::uint64_t request, const ipc::Seal& seal, ByteView payload);
  void on(std::uint64_t request, const ipc::Get& get, ByteView payload);
  void on(std::uint64_t request, const ipc::Cancel& cancel, ByteView payload);
  void on(std::uint64_t request, const ipc::Wait& wait, ByteView payload);
  void on(std::uint64_t request, const ipc::Remove& remove, ByteView payload);
  void on(std::uint64_t request, const ipc::GetStatus& status, ByteView payload);
  template <typename Other>
  void on(std::uint64_t, const Other&, ByteView) {}
  void send_view(std::uint64_t request, const Stored& stored);
  void answer_waiting(ObjectId id);

  const Options options_;
  std::string folder_;
  std::string socket_path_;
  std::unique_ptr<Arena> arena_;
  UniqueFd listener_;
  UniqueFd stop_;  // an eventfd
  UniqueFd client_;
  UniqueFd lease_;
  std::string in_;

  mutable std::mutex mutex_;
  std::mutex send_mutex_;
  std::condition_variable seen_changed_;
  Interceptor interceptor_;
  std::vector<std::pair<std::uint64_t, ipc::Request>> seen_;
  std::map<CopyKey, int> released_;
  std::size_t receives_ = 0;
  bool paused_ = false;
  std::uint64_t next_offset_ = 0;
  CopyKey next_copy_ = 1;
  std::map<ObjectId, Stored> objects_;
  std::map<CopyKey, std::pair<ObjectId, Stored>> writing_;
  std::map<std::uint64_t, ipc::Get> waiting_;

  std::thread thread_;
};

}  // namespace hoplite::client
