// The client of a Hoplite daemon: what a program links to put, get, reduce and delete objects.
//
//     auto client = hoplite::Client::connect({});                 // HOPLITE_SOCKET, or the default socket
//     auto id = client->put(bytes);                               // visible to every node of the cluster
//     auto view = client->get(*id, {.timeout = 5s});              // read-only shared memory, no copy
//     auto sum = client->reduce(ids, {.type = DType::kF32});      // the sum of arrays that may not exist yet
//
// Objects are immutable bytes named by ids that are futures: an id can be waited for before anybody has put it. Every
// call has a deadline or can be cancelled, and every failure is a Result whose error names the object, the node and the
// reason. When the daemon goes away, views stay readable and calls fail with Code::kUnavailable.
//
// A Client may be used from several threads. A thread that waits for its own reply reads the socket itself; the client's
// own thread reads only when nobody waits, so that a blocking call costs one round trip and no hop between threads.
// Callbacks run on the client's own thread and must not block. A Client does not survive fork(): connect again in the child.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hoplite/array.h"
#include "hoplite/error.h"
#include "hoplite/object_id.h"
#include "hoplite/reduce.h"
#include "hoplite/status.h"
#include "hoplite/waiting.h"

namespace hoplite {

namespace client {
struct Call;  // internal
class Connection;
}  // namespace client

struct ConnectOptions {
  std::string socket = {};  // empty: $HOPLITE_SOCKET, else the default of `hoplite start`
  std::string token = {};   // empty: $HOPLITE_TOKEN; needed only if the daemon runs as another user
  Timeout timeout = std::chrono::seconds(5);
  bool busy_poll = false;  // spin for a while before sleeping for a reply: lower latency, for a core
};

struct PutOptions {
  ObjectId id = {};           // nil: a fresh one
  std::string metadata = {};  // the user's own text, travels with the object, at most 4 KiB
  // What the bytes are, travels with the object. kInvalidArgument if the size is no multiple of the element's, or not what
  // the shape says.
  ArrayType array = {};
  // For room in the store, and for the home's answer. Without that answer a put is taken back, but somebody may have read it.
  Timeout timeout = {};
};

struct GetOptions {
  Timeout timeout = {};
  OnLost on_lost = OnLost::kFail;
};

// Read-only bytes in shared memory. They stay valid, and the object stays in this node's store, until the last copy of the
// View is gone. Writing through it faults.
class View {
 public:
  View() = default;
  std::span<const std::byte> bytes() const;
  const std::byte* data() const { return bytes().data(); }
  std::size_t size() const { return bytes().size(); }
  const std::string& metadata() const;
  const ArrayType& array() const;
  explicit operator bool() const { return state_ != nullptr; }

  struct State;  // internal
  explicit View(std::shared_ptr<State> state) : state_(std::move(state)) {}

 private:
  std::shared_ptr<State> state_;
};

// An object that is being written. Readers anywhere may follow what was advanced. Destroyed without seal(): given up.
// One thread at a time.
class ObjectWriter {
 public:
  ObjectWriter(ObjectWriter&&) noexcept;
  ObjectWriter& operator=(ObjectWriter&&) noexcept;
  ~ObjectWriter();

  ObjectId id() const;
  // The whole object, writable until seal().
  std::span<std::byte> buffer();
  // The first `bytes` are final: readers may have them. Never decreases.
  void advance(std::size_t bytes);
  // Everything is final; returns when the object is committed.
  Result<ObjectId> seal(Timeout timeout = {});
  // Gives the object up; nothing after seal().
  void abort();

  struct State;  // internal
  explicit ObjectWriter(std::unique_ptr<State> state);

 private:
  std::unique_ptr<State> state_;
};

// A streaming read: bytes as they arrive, possibly before the object is committed. One thread at a time.
class Follower {
 public:
  Follower(Follower&&) noexcept;
  Follower& operator=(Follower&&) noexcept;
  ~Follower();

  enum class Event { kBytes, kReset, kComplete };
  struct Progress {
    Event event = Event::kBytes;
    std::span<const std::byte> bytes;  // the valid front of the object, growing from call to call
    std::uint64_t size = 0;            // of the whole object
  };
  // Waits for more bytes than the last call returned, for a reset (start over: other bytes will come; the bytes of earlier
  // calls stay readable until the next call), or for completion. `timeout` is for this call; when it passes, kTimedOut, and
  // the next call goes on. The deadline of follow() ends the read as a whole.
  Result<Progress> next(Timeout timeout = {});
  // After kComplete.
  View view() const;
  // The read is over: it is complete, or has failed for good.
  bool ended() const;

  struct State;  // internal
  explicit Follower(std::shared_ptr<State> state);

 private:
  std::shared_ptr<State> state_;
};

// The result of an asynchronous call. Dropped before it is ready: the call goes on, its result is let go.
template <typename T>
class [[nodiscard]] Future {
 public:
  Future() = default;
  Future(Future&& other) noexcept;
  Future& operator=(Future&& other) noexcept;
  ~Future();

  bool valid() const { return call_ != nullptr; }
  // Never waits.
  bool ready();
  // True if it is ready within `timeout`.
  bool wait_for(std::chrono::nanoseconds timeout);
  // Waits; once.
  Result<T> get();
  // get() returns Code::kCancelled unless the call has ended already.
  void cancel();

  // internal
  Future(std::shared_ptr<client::Connection> connection, std::shared_ptr<client::Call> call);

 private:
  std::shared_ptr<client::Connection> connection_;
  std::shared_ptr<client::Call> call_;
};
extern template class Future<ObjectId>;
extern template class Future<View>;

class Client {
 public:
  static Result<Client> connect(const ConnectOptions& options = {});
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;
  ~Client();

  // A fresh id whose home is this node; no message is sent.
  ObjectId new_id();

  // --- one at a time: these block
  Result<ObjectId> put(std::span<const std::byte> bytes, const PutOptions& options = {});
  Result<ObjectWriter> create(std::uint64_t size, const PutOptions& options = {});
  Result<View> get(ObjectId id, const GetOptions& options = {});
  // Copies the object to the front of `out`; its size. kInvalidArgument if `out` is too small.
  Result<std::uint64_t> get_into(ObjectId id, std::span<std::byte> out, const GetOptions& options = {});
  Result<Follower> follow(ObjectId id, const GetOptions& options = {});
  // Which of `ids` are ready: `count` of them, or as many as are ready when the time is over. Never an error for time.
  // At most 4,000 ids in one call.
  Result<std::vector<ObjectId>> wait(std::span<const ObjectId> ids, std::size_t count, Timeout timeout = {});
  // Frees every copy everywhere; false if nobody knew the object. Views that are held stay valid. An id that was deleted is
  // refused to puts for ten minutes; so is an unknown one that a node minted which is not here: it may be about to come, with
  // the object, which is freed then.
  Result<bool> remove(ObjectId id, Timeout timeout = {});

  // --- many at once from one thread
  // Requests are sent in batches: when somebody waits, when 16 KiB are queued, or within a millisecond. The bytes are taken
  // before the call returns; an object too large to travel in the request is given its room in the store before that, too.
  Future<ObjectId> put_async(std::span<const std::byte> bytes, const PutOptions& options = {});
  Future<View> get_async(ObjectId id, const GetOptions& options = {});
  using PutCallback = std::function<void(Result<ObjectId>)>;
  using GetCallback = std::function<void(Result<View>)>;
  // Return a number for cancel().
  std::uint64_t put_async(std::span<const std::byte> bytes, const PutOptions& options, PutCallback done);
  std::uint64_t get_async(ObjectId id, const GetOptions& options, GetCallback done);
  // The request ends with Code::kCancelled unless it has ended already.
  void cancel(std::uint64_t request);

  // --- collectives (hoplite/reduce.h); none of them needs a group, a rank or a barrier
  // Starts a reduce, and returns its target as soon as the target's home has taken it. Who wants the result gets the target,
  // on any node; what goes wrong later is the error of that get. remove(target) cancels. kInvalidArgument for what makes no
  // sense: no sources, one given twice, the target among them, a count that cannot be reached, a mean of integers.
  Result<ObjectId> reduce(std::span<const ObjectId> sources, const ReduceOptions& options = {});
  // The same, for a result that every node with a source is going to get(): it is made where that is fastest for all of
  // them, and reaches those who get it while it grows.
  Result<ObjectId> allreduce(std::span<const ObjectId> sources, const AllReduceOptions& options = {});
  // One reduce for each part of the arrays (at most 64), all of all sources; the targets in the order of the parts. `target`, `part` and
  // `count` cannot be chosen: parts of different sources would not belong together.
  Result<std::vector<ObjectId>> reduce_scatter(std::span<const ObjectId> sources, const ReduceOptions& options = {});
  // More sources for a reduce for which fewer than its count have arrived.
  Result<void> add_sources(ObjectId target, std::span<const ObjectId> sources,
                           Timeout timeout = std::chrono::seconds(5));
  // How far it is; the last thousand that have ended are remembered.
  Result<ReduceStatus> reduce_status(ObjectId target, Timeout timeout = std::chrono::seconds(5));
  // All of these to this node, at the same time; the views in the order of the ids. The first failure ends it with an error
  // that names the object; the other gets are cancelled.
  Result<std::vector<View>> gather(std::span<const ObjectId> ids, const GetOptions& options = {});
  // Every node gathers the same ids: each makes this call, and the transfers form a broadcast of each object. The same call
  // as gather(), under the name that others look for.
  Result<std::vector<View>> allgather(std::span<const ObjectId> ids, const GetOptions& options = {}) {
    return gather(ids, options);
  }

  // --- facts
  Result<StoreStatus> status(Timeout timeout = std::chrono::seconds(5));
  Result<ObjectList> objects(Timeout timeout = std::chrono::seconds(5));
  Result<std::vector<NodeStatus>> nodes(Timeout timeout = std::chrono::seconds(5));

 private:
  explicit Client(std::shared_ptr<client::Connection> connection);
  std::shared_ptr<client::Connection> connection_;
};

}  // namespace hoplite
