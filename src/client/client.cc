#include "hoplite/client.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "client/states.h"

namespace hoplite {
namespace {

using client::Call;
using client::Connection;
using client::Deadline;
using client::Link;
using client::Sending;
using client::Subject;
using client::Writing;

// Readers follow a large put at this grain: an eighth of it, so that few messages are needed, between what takes 25 us and what
// takes 1 ms to copy.
constexpr std::size_t kLeastPutStep = 256 * kKiB;
constexpr std::size_t kMostPutStep = 8 * kMiB;

// Copies in steps, so that readers anywhere can begin before the end is there.
void write_all(Writing& writing, ByteView bytes) {
  std::byte* const to = writing.window.bytes().data();
  const std::size_t grain = std::clamp(bytes.size() / 8, kLeastPutStep, kMostPutStep);
  for (std::size_t at = 0; at < bytes.size(); at += grain) {
    const std::size_t step = std::min(grain, bytes.size() - at);
    std::memcpy(to + at, bytes.data() + at, step);
    if (at + step < bytes.size() && !client::advance(writing, at + step)) return;  // and the seal says why
  }
}

// What a put says of its object.
struct Putting {
  Subject subject;
  const PutOptions& options;
  bool failure = false;

  Result<std::string> metadata(std::uint64_t size) const {
    return client::encoded_metadata(subject, options, size, failure);
  }
};

Putting putting_as(Connection& connection, const PutOptions& options) {
  if (options.id.is_nil() && !options.name.empty()) return {{"put", ObjectId::named(options.name)}, options};
  return {{"put", options.id.is_nil() ? connection.new_id() : options.id}, options};
}

template <auto Convert>
auto start_create(const Link& connection, const Putting& putting, std::uint64_t size, const Deadline& deadline,
                  Sending sending) {
  const auto metadata = putting.metadata(size);
  if (!metadata) return client::start_ended<Convert>(connection, metadata.error());
  const auto call = client::new_call(putting.subject, deadline);
  call->created_size = size;
  call->created_as = putting.options.array.type;
  const ipc::Create request{putting.subject.object, size, *metadata, deadline.left_ns(), putting.options.priority};
  return client::start<Convert>(connection, call, request, sending);
}

Future<ObjectId> start_inline_put(const Link& connection, const Putting& putting, ByteView bytes,
                                  const Deadline& deadline, Sending sending) {
  const auto metadata = putting.metadata(bytes.size());
  if (!metadata) return client::start_ended<client::to_id>(connection, metadata.error());
  const auto call = client::new_call(putting.subject, deadline);
  call->put = std::make_unique<client::PutInSteps>();
  client::PutInSteps& put = *call->put;
  if (sending == Sending::kBatched) put.kept.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  put.bytes = sending == Sending::kBatched ? as_bytes(put.kept) : bytes;
  put.metadata = *metadata;
  put.priority = putting.options.priority;
  const ipc::Put request{putting.subject.object, *metadata, deadline.left_ns(), put.priority};
  return client::start<client::to_id>(connection, call, request, sending, bytes);
}

Future<ObjectId> start_put(const Link& connection, const Putting& putting, ByteView bytes, Sending sending) {
  const auto deadline = Deadline::after(putting.options.timeout);
  if (bytes.size() <= connection->welcome().inline_bytes)
    return start_inline_put(connection, putting, bytes, deadline, sending);
  auto writing =
      start_create<client::to_writing>(connection, putting, bytes.size(), deadline, Sending::kByWaiter).get();
  if (!writing) return client::start_ended<client::to_id>(connection, writing.error());
  write_all(**writing, bytes);
  return client::start_seal(**writing, deadline, sending);
}

Future<ObjectId> start_fail(const Link& connection, ObjectId id, const std::string& reason, ByteView payload,
                            const Timeout& timeout, Sending sending) {
  const Subject subject{"fail", id};
  if (auto ok = client::check_id(subject); !ok) return client::start_ended<client::to_id>(connection, ok.error());
  const PutOptions options{.metadata = reason, .timeout = timeout};
  return start_put(connection, {subject, options, true}, payload, sending);
}

Result<ObjectWriter> to_writer(const Link& connection, const Call& call, Result<ipc::Reply> reply) {
  auto writing = client::to_writing(connection, call, std::move(reply));
  if (!writing) return writing.error();
  return client::Access::handle<ObjectWriter>(*std::move(writing));
}

Future<View> start_get(const Link& connection, ObjectId id, const GetOptions& options, Sending sending) {
  const auto deadline = Deadline::after(options.timeout);
  const Subject subject{"get", id};
  if (auto ok = client::check_id(subject); !ok) return client::start_ended<client::to_view>(connection, ok.error());
  return client::start<client::to_view>(connection, client::new_get_call(id, options, deadline),
                                        client::get_request(id, options, deadline), sending);
}

Waited waited_of(ipc::WaitDone&& done) {
  Waited waited{std::move(done.ready), {}};
  for (const ipc::Gone& gone : done.gone) waited.gone.push_back({gone.id, gone.code});
  return waited;
}
constexpr auto to_ready_ids = client::from_reply<ipc::WaitDone, &ipc::WaitDone::ready>;
constexpr auto to_waited = client::from_reply<ipc::WaitDone, &waited_of>;

template <auto to_ready>
auto start_wait(const Link& connection, ObjectIds ids, std::size_t count, const Timeout& timeout, Sending sending) {
  const Subject subject{"wait", ids.size() == 1 ? ids[0] : ObjectId()};
  if (count > ids.size() || ids.size() > client::kLimits.max_wait_ids)
    return client::start_ended<to_ready>(
        connection, subject.error(Code::kInvalidArgument, "asked for " + std::to_string(count) + " of " +
                                                              std::to_string(ids.size()) + " objects, of at most " +
                                                              std::to_string(client::kLimits.max_wait_ids)));
  if (count == 0) return client::start_ended<to_ready>(connection, ipc::Reply(ipc::WaitDone{}));
  const auto deadline = Deadline::after(timeout);
  const ipc::Wait request{{ids.begin(), ids.end()}, static_cast<std::uint32_t>(count), deadline.left_ns()};
  return client::start<to_ready>(connection, client::new_call(subject, deadline), request, sending);
}

Future<bool> start_remove(const Link& connection, ObjectId id, const Timeout& timeout, Sending sending) {
  const ipc::Remove request{id, Deadline::after(timeout).left_ns()};
  constexpr auto to_existed = client::from_reply<ipc::Removed, &ipc::Removed::existed>;
  return client::start_about<to_existed>(connection, {"remove", id}, timeout, request, sending);
}

Future<bool> start_prioritize(const Link& connection, ObjectId id, Priority priority, const Timeout& timeout,
                              Sending sending) {
  constexpr auto to_under_way = client::from_reply<ipc::Prioritized, &ipc::Prioritized::under_way>;
  return client::start_about<to_under_way>(connection, {"prioritize", id}, timeout, ipc::Prioritize{id, priority},
                                           sending);
}

}  // namespace

namespace client {

std::shared_ptr<Call> new_call(const Subject& subject, const Deadline& deadline) {
  auto call = std::make_shared<Call>();
  call->subject = subject;
  call->deadline = deadline;
  return call;
}

Result<void> check_id(const Subject& subject) {
  if (!subject.object.is_nil()) return {};
  return subject.error(Code::kInvalidArgument, "the id is nil");
}

std::shared_ptr<Call> new_get_call(ObjectId id, const GetOptions& options, const Deadline& deadline) {
  auto call = new_call({"get", id}, deadline);
  call->wants_failures = options.on_failure == OnFailure::kView;
  return call;
}

ipc::Get get_request(ObjectId id, const GetOptions& options, const Deadline& deadline) {
  return {id, deadline.left_ns(), options.on_lost == OnLost::kWait, false, options.priority};
}

}  // namespace client

Client::Client(Link connection) : connection_(std::move(connection)) {}
Client::Client(Client&&) noexcept = default;

Client& Client::operator=(Client&& other) noexcept {
  if (this != &other) {
    if (connection_) connection_->close();
    connection_ = std::move(other.connection_);
  }
  return *this;
}

Client::~Client() {
  if (connection_) connection_->close();
}

Result<Client> Client::connect(const ConnectOptions& options) {
  auto attachment = client::attach(options);
  if (!attachment) return attachment.error();
  auto connection = std::make_shared<Connection>(*std::move(attachment), options.busy_poll);
  connection->start();
  return Client(std::move(connection));
}

ObjectId Client::new_id() { return connection_->new_id(); }

Result<ObjectId> Client::put(std::span<const std::byte> bytes, const PutOptions& options) {
  return start_put(connection_, putting_as(*connection_, options), bytes, Sending::kByWaiter).get();
}

Future<ObjectId> Client::put_async(std::span<const std::byte> bytes, const PutOptions& options) {
  return start_put(connection_, putting_as(*connection_, options), bytes, Sending::kBatched);
}

Result<ObjectId> Client::fail(ObjectId id, const std::string& reason, std::span<const std::byte> payload,
                              Timeout timeout) {
  return start_fail(connection_, id, reason, payload, timeout, Sending::kByWaiter).get();
}

Future<ObjectId> Client::fail_async(ObjectId id, const std::string& reason, std::span<const std::byte> payload,
                                    Timeout timeout) {
  return start_fail(connection_, id, reason, payload, timeout, Sending::kBatched);
}

Result<ObjectWriter> Client::create(std::uint64_t size, const PutOptions& options) {
  return start_create<to_writer>(connection_, putting_as(*connection_, options), size, Deadline::after(options.timeout),
                                 Sending::kByWaiter)
      .get();
}

Future<ObjectWriter> Client::create_async(std::uint64_t size, const PutOptions& options) {
  return start_create<to_writer>(connection_, putting_as(*connection_, options), size, Deadline::after(options.timeout),
                                 Sending::kBatched);
}

Result<View> Client::get(ObjectId id, const GetOptions& options) {
  return start_get(connection_, id, options, Sending::kByWaiter).get();
}

Future<View> Client::get_async(ObjectId id, const GetOptions& options) {
  return start_get(connection_, id, options, Sending::kBatched);
}

Result<std::uint64_t> Client::get_into(ObjectId id, std::span<std::byte> out, const GetOptions& options) {
  auto follower = follow(id, options);
  if (!follower) return follower.error();
  for (std::size_t copied = 0;;) {
    const auto progress = follower->next();
    if (!progress) return progress.error();
    if (progress->event == Follower::Event::kReset) {
      copied = 0;
      continue;
    }
    if (progress->size > out.size())
      return Subject{"get", id}.error(
          Code::kInvalidArgument,
          "its " + std::to_string(progress->size) + " bytes do not fit into a buffer of " + std::to_string(out.size()));
    CHECK(progress->bytes.size() >= copied, id, copied, progress->bytes.size());
    const auto fresh = progress->bytes.subspan(copied);
    if (!fresh.empty()) std::memcpy(out.data() + copied, fresh.data(), fresh.size());
    copied += fresh.size();
    if (progress->event == Follower::Event::kComplete) return copied;
  }
}

Result<Follower> Client::follow(ObjectId id, const GetOptions& options) {
  const Subject subject{"get", id};
  if (auto ok = client::check_id(subject); !ok) return ok.error();
  auto reading = std::make_unique<client::Reading>(connection_);
  reading->call = client::new_get_call(id, options, Deadline::after(options.timeout));
  reading->call->following = std::make_unique<client::Following>();
  ipc::Get request = client::get_request(id, options, reading->call->deadline);
  request.follow = true;
  connection_->submit(reading->call, request, Sending::kBatched);
  return client::Access::handle<Follower>(std::move(reading));
}

Result<bool> Client::prioritize(ObjectId id, Priority priority, Timeout timeout) {
  return start_prioritize(connection_, id, priority, timeout, Sending::kByWaiter).get();
}

Future<bool> Client::prioritize_async(ObjectId id, Priority priority, Timeout timeout) {
  return start_prioritize(connection_, id, priority, timeout, Sending::kBatched);
}

Result<std::vector<ObjectId>> Client::wait(ObjectIds ids, std::size_t count, Timeout timeout) {
  return start_wait<to_ready_ids>(connection_, ids, count, timeout, Sending::kByWaiter).get();
}

Future<std::vector<ObjectId>> Client::wait_async(ObjectIds ids, std::size_t count, Timeout timeout) {
  return start_wait<to_ready_ids>(connection_, ids, count, timeout, Sending::kBatched);
}

Result<Waited> Client::wait_or_gone(ObjectIds ids, std::size_t count, Timeout timeout) {
  return start_wait<to_waited>(connection_, ids, count, timeout, Sending::kByWaiter).get();
}

Future<Waited> Client::wait_or_gone_async(ObjectIds ids, std::size_t count, Timeout timeout) {
  return start_wait<to_waited>(connection_, ids, count, timeout, Sending::kBatched);
}

Result<bool> Client::remove(ObjectId id, Timeout timeout) {
  return start_remove(connection_, id, timeout, Sending::kByWaiter).get();
}

Future<bool> Client::remove_async(ObjectId id, Timeout timeout) {
  return start_remove(connection_, id, timeout, Sending::kBatched);
}

}  // namespace hoplite
