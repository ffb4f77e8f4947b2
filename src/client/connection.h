// A client's connection to its daemon: requests out, replies in, views given back.
//
// Leader and followers. One thread at a time has the reader's role. A thread that waits for a reply takes it if nobody has
// it, reads, and hands replies to whom they belong; others that wait sleep until their reply is there or the role is free.
// So a blocking call is one send and one receive on the caller's own thread. The connection's own thread ("service") steps
// in where nobody waits: it reads when calls are under way that nobody waits for, sends what was queued and not sent for a
// millisecond, gives views back within about ten, ends calls that the daemon left unanswered, and runs callbacks.
//
// Requests are appended to a queue. The queue is sent by whoever waits next, by the submitter when there is enough or
// nothing else is under way, else by the service at its next tick; a thread that sends takes along what others have queued
// in the meantime. Nobody ever blocks in a send: when the socket is full the service goes on as soon as there is room.
//
// The service ticks only while there is something to look after; `need` makes it tick faster, and costs a system call only
// if it was not doing so already. All state is guarded by one mutex, which is never held during a system call that waits.
#pragma once

#include <poll.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/lingering.h"
#include "base/unique_fd.h"
#include "client/call.h"
#include "client/forks.h"
#include "client/frame_reader.h"
#include "client/handshake.h"

namespace hoplite::client {

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Attachment attachment, bool busy_poll);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Starts the service; once, after construction through a shared_ptr.
  void start();
  // Every call fails; callbacks of those under way run before it returns (unless it is called from one).
  void close();

  const ipc::Welcome& welcome() const { return attachment_.welcome; }
  ClientMapping& mapping() { return *attachment_.mapping; }
  const std::string& socket_path() const { return attachment_.socket_path; }
  ObjectId new_id();

  enum class Sending {
    kByWaiter,  // the caller waits for the call at once, and that sends it
    kBatched,   // nobody may ever wait for it: with others, and within a millisecond
  };
  // Queues a request. Its last reply, or an error, becomes the call's result.
  void submit(const std::shared_ptr<Call>& call, const ipc::Request& message, Sending sending, ByteView payload = {});
  // The calls of a group, with a request for each. `whole` ends as the group says, with an error or with any reply.
  void submit_group(const std::shared_ptr<Call>& whole, std::span<const ipc::Request> messages, Sending sending);
  // A call that ends before it begins.
  void submit_ended(const std::shared_ptr<Call>& call, Result<ipc::Reply> result);
  // Waits for the result and takes it.
  Result<ipc::Reply> wait(Call& call);
  // Waits until the call has a result or `ready`, which is called with the lock held. False: `until` came first.
  bool wait_until(Call& call, TimePoint until, const std::function<bool()>& ready = {});
  // Reads what has arrived, without waiting; true if the call has a result.
  bool poll(Call& call);
  // Runs `look` with the lock held: how others look at a call's fields.
  void locked(const std::function<void()>& look);

  // Nobody wants this call's result any more.
  void abandon(Call& call);
  // Asks the daemon to end the call.
  void cancel(const Call& call);
  // The service runs `callback` when the call has a result; this thread does if there is no service any more.
  void then(const std::shared_ptr<Call>& call, std::function<void(CallHandle)> callback);

  enum class Urgency { kNow, kSoon };
  // A message without reply.
  void tell(const ipc::Request& message, Urgency urgency);
  // --- what is held: a view, or a reader of what grows. Forks that come later share it; `born` is how many there were.
  std::uint64_t hold();
  void let_go_of_hold();
  // One view of `copy` is given back: with the next request, or soon, or when no child sees it any more.
  void release(CopyKey copy, std::uint64_t born);
  // An object that was being written is given up.
  void give_up(CopyKey copy);
  // Whether the daemon is still there to hear of it.
  Result<void> is_up();
  // This is a child of the process that made the connection: nothing can be asked or written.
  bool forked() const { return forked_; }

  // --- around a fork (forks.h): from the first to one of the others the mutex is held
  void before_fork();
  void after_fork_in_parent();
  void after_fork_in_child();

 private:
  using Lock = std::unique_lock<std::mutex>;
  enum class Reader { kNobody, kCaller, kService };
  // How often the service looks around. In order: from busy to asleep.
  enum class Pace { kTick, kSlowTick, kWatch, kAsleep };

  // --- sending (connection.cc)
  bool admit(Lock& lock, const std::shared_ptr<Call>& call);
  void start_locked(Lock& lock, const std::shared_ptr<Call>& call, const ipc::Request& message, ByteView payload);
  void send_soon(Lock& lock, bool alone);
  void abandon_locked(Call& call);
  void cancel_locked(const Call& call);
  void enqueue(std::uint64_t request, const ipc::Request& message, ByteView payload);
  void flush(Lock& lock);
  bool take_batch();
  int send_batch();  // without the lock, with the sender's role; 0, or errno
  bool anything_queued() const { return !queue_.empty() || !releases_.empty(); }
  void wait_for_room(Lock& lock, const Call& call);

  // --- waiting and receiving (receive.cc)
  bool wait_locked(Lock& lock, Call& call, TimePoint until, const std::function<bool()>& ready);
  Result<ipc::Reply> take_result(Lock& lock, Call& call);
  void lead(Lock& lock, TimePoint until);
  Result<bool> receive(TimePoint until);
  Result<bool> spin(TimePoint until);
  void pass_on_reader();

  // --- what replies do (dispatch.cc)
  void dispatch(const Result<bool>& received);
  void handle(std::uint64_t request, ipc::Reply reply);
  Result<void> accept_writable();
  bool step_put(const std::shared_ptr<Call>& call, const ipc::Reply& reply);
  bool step_follow(Call& call, const ipc::Reply& reply);
  void resubmit(const std::shared_ptr<Call>& call, const ipc::Request& message);
  void finish(const std::shared_ptr<Call>& call, Result<ipc::Reply> result);
  void part_ended(const std::shared_ptr<Call>& whole, const Call& part);
  void take_back(Group& group);
  void expire(Call& call);
  void let_go(const ipc::Reply& reply);
  void let_go(CopyKey copy, std::uint64_t born = 0);
  void give_back();
  Error gone(Code code, const std::string& why) const;
  void fail_all(const Error& error);

  // --- the service (service.cc)
  void need(Pace pace);
  void wake();
  void serve();
  void tick(Lock& lock);
  Pace pace_wanted() const;
  bool service_may_read() const;
  bool sleep(Lock& lock, bool read);
  void notice_forks(std::span<const pollfd> forks);
  void run_callbacks(Lock& lock);
  void expire_overdue();
  bool on_service_thread() const { return std::this_thread::get_id() == service_id_; }

  Attachment attachment_;
  const bool busy_poll_;
  Lingering lingering_;  // the reader's
  UniqueFd wake_;        // an eventfd
  std::thread service_;
  std::thread::id service_id_;

  std::mutex mutex_;
  std::optional<Error> broken_;  // why nothing can be sent any more
  bool closing_ = false;
  bool service_ended_ = false;
  std::uint64_t next_request_ = 1;
  std::uint32_t next_id_ = 1;
  std::unordered_map<std::uint64_t, std::shared_ptr<Call>> pending_;
  std::size_t pending_callbacks_ = 0;         // of them, those with a callback
  std::vector<Call*> waiting_;                // calls that a thread sleeps for or reads for
  std::deque<std::shared_ptr<Call>> called_;  // done, their callbacks are to be run

  // The reader's.
  Reader reader_ = Reader::kNobody;
  std::uint64_t caller_activity_ = 0;  // counts what shows that a caller will read for himself

  // The sender's. `sending_` and `sent_` belong to whoever has the role; the rest is guarded as usual.
  bool sender_active_ = false;
  bool socket_full_ = false;  // the service waits until it can take more
  std::string queue_;
  std::string sending_;
  std::size_t sent_ = 0;  // of sending_
  std::uint64_t flushes_ = 0;
  std::vector<CopyKey> releases_;
  std::vector<CopyKey> releasing_;  // part of sending_
  std::size_t holds_ = 0;
  Forks forks_;
  bool forked_ = false;
  std::condition_variable room_;  // in the queue

  // What the service saw at its last look, to tell what nobody else has taken care of since.
  Pace pace_ = Pace::kAsleep;
  bool busy_since_tick_ = false;
  int calm_ticks_ = 0;  // since something was busy
  std::uint64_t seen_flushes_ = 0;
  std::uint64_t seen_activity_ = 0;
  TimePoint next_expiry_;
};

}  // namespace hoplite::client
