// The client of a Hoplite daemon: what a program links to put, get, reduce and delete objects.
//
//     auto client = hoplite::Client::connect();                   // HOPLITE_SOCKET, or the default socket
//     auto id = client->put(values);                              // a std::vector<float>, say; visible to every node
//     auto view = client->get(*id, {.timeout = 5s});              // read-only shared memory, no copy
//     for (float value : *view->as<float>()) ...
//     auto sum = client->reduce({*id, other}, {.type = DType::kF32});   // of arrays that may not exist yet
//
// Objects are immutable bytes named by ids that are futures: an id can be waited for before anybody has put it. Every
// call has a deadline or can be cancelled, and every failure is a Result whose error names the object, the node and the
// reason. When the daemon goes away, views stay readable and calls fail with Code::kUnavailable.
//
// A Client may be used from several threads. Every call that waits for the daemon has an _async form, which returns a Future
// (hoplite/future.h), for many at once from one thread. Requests are then sent in batches: when somebody waits, when 16 KiB
// are queued, or within a millisecond. A Client does not survive fork(): in the child its calls fail with Code::kUnavailable, and
// it is to connect again. How long Views and ObjectWriters last: hoplite/objects.h.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "hoplite/array.h"
#include "hoplite/error.h"
#include "hoplite/future.h"
#include "hoplite/object_id.h"
#include "hoplite/objects.h"
#include "hoplite/priority.h"
#include "hoplite/reduce.h"
#include "hoplite/status.h"
#include "hoplite/waiting.h"

namespace hoplite {

struct ConnectOptions {
  std::string socket = {};  // empty: $HOPLITE_SOCKET, else the default of `hoplite start`
  std::string token = {};   // empty: $HOPLITE_TOKEN; needed only if the daemon runs as another user
  Timeout timeout = std::chrono::seconds(5);
  bool busy_poll = false;  // spin for a while before sleeping for a reply: lower latency, for a core
};

struct PutOptions {
  ObjectId id = {};  // nil: that of the name, or a fresh one
  // What people call it: shown by `hoplite ls` and in messages on every node if it has at most 255 bytes. Its id is
  // ObjectId::named(name); kInvalidArgument if `id` is another one.
  std::string name = {};
  std::string metadata = {};  // the user's own text, travels with the object, at most 4 KiB
  // What the bytes are, travels with the object. kInvalidArgument if the size is no multiple of the element's, or not what
  // the shape says.
  ArrayType array = {};
  // For room in the store, and for the home's answer. Without that answer a put is taken back, but somebody may have read it.
  Timeout timeout = {};
  // Of its bytes while they leave this node, if their readers do not ask for more.
  Priority priority = Priority::kNormal;
};

struct GetOptions {
  Timeout timeout = {};
  OnLost on_lost = OnLost::kFail;
  Priority priority = Priority::kNormal;  // of the transfer; Client::prioritize() changes it
  OnFailure on_failure = OnFailure::kError;
};

// A vector, array or span of numbers.
template <typename R>
concept NumberRange = std::ranges::contiguous_range<const R> && std::ranges::sized_range<const R> &&
                      Element<std::ranges::range_value_t<const R>>;

// What has become of objects that somebody waits for.
struct GoneObject {
  ObjectId id;
  Code why = Code::kDeleted;  // or kLost, or why the reduce into it failed
};
struct Waited {
  std::vector<ObjectId> ready;
  std::vector<GoneObject> gone;
};

// How long calls wait that the daemon answers at once.
constexpr auto kPromptTimeout = std::chrono::seconds(5);

class Client {
 public:
  static Result<Client> connect(const ConnectOptions& options = {});
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;
  ~Client();

  // A fresh id whose home is this node; no message is sent.
  ObjectId new_id();

  // --- objects
  // The bytes are taken before the call returns; in put_async() an object too large to travel in the request is also given
  // its room in the store before that.
  Result<ObjectId> put(std::span<const std::byte> bytes, const PutOptions& options = {});
  Future<ObjectId> put_async(std::span<const std::byte> bytes, const PutOptions& options = {});
  // Numbers: the type of options.array is theirs.
  template <NumberRange R>
  Result<ObjectId> put(const R& numbers, PutOptions options = {}) {
    options.array.type = dtype_of<std::ranges::range_value_t<const R>>();
    return put(std::as_bytes(std::span(numbers)), options);
  }
  template <NumberRange R>
  Future<ObjectId> put_async(const R& numbers, PutOptions options = {}) {
    options.array.type = dtype_of<std::ranges::range_value_t<const R>>();
    return put_async(std::as_bytes(std::span(numbers)), options);
  }
  // Whoever has promised an object and cannot deliver it says so: a failure is committed in its place. Every get of it ends with
  // Code::kFailed and `reason` (at most 4 KiB), unless it asks for the failure itself and the `payload` that goes with it. A reduce
  // does not count it. Otherwise it is an object like any other: a second put or fail of the id is "exists", and remove() frees it.
  Result<ObjectId> fail(ObjectId id, const std::string& reason, std::span<const std::byte> payload = {},
                        Timeout timeout = {});
  Future<ObjectId> fail_async(ObjectId id, const std::string& reason, std::span<const std::byte> payload = {},
                              Timeout timeout = {});
  Result<ObjectWriter> create(std::uint64_t size, const PutOptions& options = {});
  Future<ObjectWriter> create_async(std::uint64_t size, const PutOptions& options = {});
  Result<View> get(ObjectId id, const GetOptions& options = {});
  Future<View> get_async(ObjectId id, const GetOptions& options = {});
  // Copies the object to the front of `out` while it arrives; its size. kInvalidArgument if `out` is too small. After an error
  // the contents of `out` are unspecified.
  Result<std::uint64_t> get_into(ObjectId id, std::span<std::byte> out, const GetOptions& options = {});
  // Does not wait; Follower::next() does.
  Result<Follower> follow(ObjectId id, const GetOptions& options = {});
  // The gets of `id` that this client has under way (also as follow() or gather()) have another priority from now on; false
  // if there are none.
  Result<bool> prioritize(ObjectId id, Priority priority, Timeout timeout = kPromptTimeout);
  Future<bool> prioritize_async(ObjectId id, Priority priority, Timeout timeout = kPromptTimeout);
  // Which of `ids` are ready: `count` of them, or as many as are ready when the time is over, or when so many are deleted or
  // lost that `count` cannot be. Never an error for time.
  // At most 4,000 ids in one call.
  Result<std::vector<ObjectId>> wait(ObjectIds ids, std::size_t count, Timeout timeout = {});
  Future<std::vector<ObjectId>> wait_async(ObjectIds ids, std::size_t count, Timeout timeout = {});
  // The same, and which of them will not be ready unless they are put again: a wait ends at once when those are too many.
  Result<Waited> wait_or_gone(ObjectIds ids, std::size_t count, Timeout timeout = {});
  Future<Waited> wait_or_gone_async(ObjectIds ids, std::size_t count, Timeout timeout = {});
  // Frees every copy everywhere; false if nobody knew the object. Views that are held stay valid. A name may be put again at
  // once. An id that was minted may not, also if nobody knows it and its node is not here: it may be about to come, with the
  // object, which is freed then.
  Result<bool> remove(ObjectId id, Timeout timeout = {});
  Future<bool> remove_async(ObjectId id, Timeout timeout = {});

  // --- collectives (hoplite/reduce.h); none of them needs a group, a rank or a barrier
  // Starts a reduce, and returns its target as soon as the target's home has taken it. Who wants the result gets the target,
  // on any node; what goes wrong later is the error of that get. remove(target) cancels. kInvalidArgument for what makes no
  // sense: no sources, one given twice, the target among them, a count that cannot be reached, a mean of integers.
  Result<ObjectId> reduce(ObjectIds sources, const ReduceOptions& options = {});
  Future<ObjectId> reduce_async(ObjectIds sources, const ReduceOptions& options = {});
  // The same, for a result that every node with a source is going to get(): it is made where that is fastest for all of
  // them, and reaches those who get it while it grows.
  Result<ObjectId> allreduce(ObjectIds sources, const ReduceOptions& options = {});
  Future<ObjectId> allreduce_async(ObjectIds sources, const ReduceOptions& options = {});
  // One reduce for each part of the arrays (at most 64), all of all sources; the targets in the order of the parts. `target`, `part` and
  // `count` cannot be chosen: parts of different sources would not belong together. If one cannot be started, none is left.
  Result<std::vector<ObjectId>> reduce_scatter(ObjectIds sources, const ReduceOptions& options = {});
  Future<std::vector<ObjectId>> reduce_scatter_async(ObjectIds sources, const ReduceOptions& options = {});
  // More sources for a reduce for which fewer than its count have arrived. `names` as in ReduceOptions.
  Result<void> add_sources(ObjectId target, ObjectIds sources, Timeout timeout = kPromptTimeout,
                           const std::vector<std::string>& names = {});
  Future<void> add_sources_async(ObjectId target, ObjectIds sources, Timeout timeout = kPromptTimeout,
                                 const std::vector<std::string>& names = {});
  // How far it is; the last thousand that have ended are remembered.
  Result<ReduceStatus> reduce_status(ObjectId target, Timeout timeout = kPromptTimeout);
  Future<ReduceStatus> reduce_status_async(ObjectId target, Timeout timeout = kPromptTimeout);
  // All of these to this node, at the same time; the views in the order of the ids. The first failure ends it with an error
  // that names the object; the other gets are cancelled.
  Result<std::vector<View>> gather(ObjectIds ids, const GetOptions& options = {});
  Future<std::vector<View>> gather_async(ObjectIds ids, const GetOptions& options = {});
  // Every node gathers the same ids: each makes this call, and the transfers form a broadcast of each object. The same call
  // as gather(), under the name that others look for.
  Result<std::vector<View>> allgather(ObjectIds ids, const GetOptions& options = {}) { return gather(ids, options); }

  // --- facts
  Result<StoreStatus> status(Timeout timeout = kPromptTimeout);
  Future<StoreStatus> status_async(Timeout timeout = kPromptTimeout);
  Result<ObjectList> objects(Timeout timeout = kPromptTimeout);
  Future<ObjectList> objects_async(Timeout timeout = kPromptTimeout);
  Result<std::vector<NodeStatus>> nodes(Timeout timeout = kPromptTimeout);
  Future<std::vector<NodeStatus>> nodes_async(Timeout timeout = kPromptTimeout);

 private:
  explicit Client(std::shared_ptr<client::Connection> connection);
  std::shared_ptr<client::Connection> connection_;
};

}  // namespace hoplite
