#include "hoplite/client.h"

#include <algorithm>
#include <cstring>

#include "client/connection.h"
#include "client/states.h"

namespace hoplite {
namespace {

using client::Call;
using client::Connection;
using client::Deadline;
using client::Subject;
using client::Writing;

constexpr std::size_t kMaxWaitIds = 4'000;       // 16 bytes each: stays below the daemon's limit for one message
constexpr std::size_t kPutStepBytes = 8 * kMiB;  // readers may follow a large put at this grain; 1 ms of copying

std::shared_ptr<Call> new_call(const Subject& subject, const Timeout& timeout) {
  auto call = std::make_shared<Call>();
  call->subject = subject;
  call->deadline = Deadline::after(timeout);
  return call;
}

Result<void> check_id(const Subject& subject) {
  if (!subject.object.is_nil()) return {};
  return subject.error(Code::kInvalidArgument, "the id is nil");
}

// Copies in steps, so that readers anywhere can begin before the end is there.
void write_all(Writing& writing, ByteView bytes) {
  std::byte* const to = writing.window.bytes().data();
  for (std::size_t at = 0; at < bytes.size(); at += kPutStepBytes) {
    const std::size_t step = std::min(kPutStepBytes, bytes.size() - at);
    std::memcpy(to + at, bytes.data() + at, step);
    if (at + step < bytes.size()) client::advance(writing, at + step);
  }
}

Result<ObjectId> put_large(const std::shared_ptr<Connection>& connection, const Subject& subject, ByteView bytes,
                           const std::string& encoded_metadata, const Deadline& deadline) {
  auto writing = client::create(connection, subject, bytes.size(), encoded_metadata, deadline);
  if (!writing) return writing.error();
  write_all(**writing, bytes);
  return client::to_id(subject, connection->ask(subject, client::close_for_seal(**writing, deadline), deadline));
}

client::Get get_request(ObjectId id, const GetOptions& options, const Deadline& deadline, bool follow) {
  return {id, deadline.left_ns(), options.on_lost == OnLost::kWait, follow};
}

// Starts a put whose result becomes the call's.
void start_put(const std::shared_ptr<Connection>& connection, const std::shared_ptr<Call>& call, ByteView bytes,
               const PutOptions& options) {
  const Subject& subject = call->subject;
  const auto metadata = client::encoded_metadata(subject, options, bytes.size());
  if (!metadata) return connection->submit_failed(call, metadata.error());
  if (bytes.size() <= connection->welcome().inline_bytes) {
    call->put = std::make_unique<client::PutInSteps>();
    call->put->bytes.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    call->put->metadata = *metadata;
    return connection->submit(call, client::Put{subject.object, *metadata, call->deadline.left_ns()}, bytes);
  }
  auto writing = client::create(connection, subject, bytes.size(), *metadata, call->deadline);
  if (!writing) return connection->submit_failed(call, writing.error());
  write_all(**writing, bytes);
  connection->submit(call, client::close_for_seal(**writing, call->deadline));
}

void start_get(const std::shared_ptr<Connection>& connection, const std::shared_ptr<Call>& call,
               const GetOptions& options) {
  if (auto ok = check_id(call->subject); !ok) return connection->submit_failed(call, ok.error());
  connection->submit(call, get_request(call->subject.object, options, call->deadline, call->following != nullptr));
}

}  // namespace

Client::Client(std::shared_ptr<Connection> connection) : connection_(std::move(connection)) {}
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
  const Subject subject{"put", options.id.is_nil() ? new_id() : options.id};
  const auto metadata = client::encoded_metadata(subject, options, bytes.size());
  if (!metadata) return metadata.error();
  const auto deadline = Deadline::after(options.timeout);
  if (bytes.size() <= connection_->welcome().inline_bytes) {
    const client::Put request{subject.object, *metadata, deadline.left_ns()};
    auto reply = connection_->ask(subject, request, deadline, bytes);
    if (!reply || !std::holds_alternative<client::UseCreate>(*reply)) return client::to_id(subject, std::move(reply));
  }
  return put_large(connection_, subject, bytes, *metadata, deadline);
}

Result<ObjectWriter> Client::create(std::uint64_t size, const PutOptions& options) {
  const Subject subject{"put", options.id.is_nil() ? new_id() : options.id};
  const auto metadata = client::encoded_metadata(subject, options, size);
  if (!metadata) return metadata.error();
  auto writing = client::create(connection_, subject, size, *metadata, Deadline::after(options.timeout));
  if (!writing) return writing.error();
  return ObjectWriter(*std::move(writing));
}

Result<View> Client::get(ObjectId id, const GetOptions& options) {
  const Subject subject{"get", id};
  if (auto ok = check_id(subject); !ok) return ok.error();
  const auto deadline = Deadline::after(options.timeout);
  return client::to_view(connection_, subject,
                         connection_->ask(subject, get_request(id, options, deadline, false), deadline));
}

Result<std::uint64_t> Client::get_into(ObjectId id, std::span<std::byte> out, const GetOptions& options) {
  const auto view = get(id, options);
  if (!view) return view.error();
  if (view->size() > out.size())
    return Subject{"get", id}.error(
        Code::kInvalidArgument,
        "its " + std::to_string(view->size()) + " bytes do not fit into a buffer of " + std::to_string(out.size()));
  if (view->size() > 0) std::memcpy(out.data(), view->data(), view->size());
  return view->size();
}

Result<Follower> Client::follow(ObjectId id, const GetOptions& options) {
  const Subject subject{"get", id};
  if (auto ok = check_id(subject); !ok) return ok.error();
  auto state = std::make_shared<Follower::State>();
  state->connection = connection_;
  state->call = new_call(subject, options.timeout);
  state->call->following = std::make_unique<client::Following>();
  start_get(connection_, state->call, options);
  return Follower(std::move(state));
}

Result<std::vector<ObjectId>> Client::wait(std::span<const ObjectId> ids, std::size_t count, Timeout timeout) {
  const Subject subject{"wait", ids.size() == 1 ? ids[0] : ObjectId()};
  if (count > ids.size() || ids.size() > kMaxWaitIds)
    return subject.error(Code::kInvalidArgument, "asked for " + std::to_string(count) + " of " +
                                                     std::to_string(ids.size()) + " objects, of at most " +
                                                     std::to_string(kMaxWaitIds));
  if (count == 0) return std::vector<ObjectId>();
  const auto deadline = Deadline::after(timeout);
  const client::Wait request{{ids.begin(), ids.end()}, static_cast<std::uint32_t>(count), deadline.left_ns()};
  auto reply = connection_->ask(subject, request, deadline);
  if (!reply) return reply.error();
  auto* done = std::get_if<client::WaitDone>(&*reply);
  if (done == nullptr) return client::unexpected(subject);
  return std::move(done->ready);
}

Result<bool> Client::remove(ObjectId id, Timeout timeout) {
  const Subject subject{"remove", id};
  if (auto ok = check_id(subject); !ok) return ok.error();
  const auto deadline = Deadline::after(timeout);
  auto reply = connection_->ask(subject, client::Remove{id, deadline.left_ns()}, deadline);
  if (!reply) return reply.error();
  const auto* removed = std::get_if<client::Removed>(&*reply);
  if (removed == nullptr) return client::unexpected(subject);
  return removed->existed;
}

// --- many at once

Future<ObjectId> Client::put_async(std::span<const std::byte> bytes, const PutOptions& options) {
  const auto call = new_call({"put", options.id.is_nil() ? new_id() : options.id}, options.timeout);
  start_put(connection_, call, bytes, options);
  return {connection_, call};
}

Future<View> Client::get_async(ObjectId id, const GetOptions& options) {
  const auto call = new_call({"get", id}, options.timeout);
  start_get(connection_, call, options);
  return {connection_, call};
}

std::uint64_t Client::put_async(std::span<const std::byte> bytes, const PutOptions& options, PutCallback done) {
  const auto call = new_call({"put", options.id.is_nil() ? new_id() : options.id}, options.timeout);
  call->callback = [subject = call->subject, done = std::move(done)](Result<client::Reply> reply) {
    done(client::to_id(subject, std::move(reply)));
  };
  start_put(connection_, call, bytes, options);
  return call->ticket;
}

std::uint64_t Client::get_async(ObjectId id, const GetOptions& options, GetCallback done) {
  const auto call = new_call({"get", id}, options.timeout);
  call->callback = [subject = call->subject, connection = connection_, done = std::move(done)](
                       Result<client::Reply> reply) { done(client::to_view(connection, subject, std::move(reply))); };
  start_get(connection_, call, options);
  return call->ticket;
}

void Client::cancel(std::uint64_t request) { connection_->cancel(request); }

}  // namespace hoplite
