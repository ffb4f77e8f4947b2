#include <algorithm>

#include "client/states.h"

namespace hoplite {
namespace {

// How much must be new before the daemon is told at once; smaller steps travel with the next tick. At 10 GB/s this is a
// message every 25 us, which costs a few percent.
constexpr std::size_t kWorthTelling = 256 * kKiB;

}  // namespace

namespace client {

Result<std::unique_ptr<Writing>> to_writing(const Link& connection, const Call& call, Result<ipc::Reply> reply) {
  if (!reply) return reply.error();
  const auto* created = std::get_if<ipc::Created>(&*reply);
  if (created == nullptr) return unexpected(call.subject);
  auto window = WriteWindow::open(connection->mapping(), *created, call.created_size);
  if (!window) {
    connection->tell(ipc::Abort{created->copy}, Connection::Urgency::kSoon);
    return call.subject.error(Code::kInternal, window.error().message);
  }
  auto writing = std::make_unique<Writing>();
  writing->connection = connection;
  writing->id = created->id;
  writing->copy = created->copy;
  writing->type = call.created_as;
  writing->window = *std::move(window);
  return writing;
}

namespace {

Error ended(const Writing& writing) {
  return Subject{"put", writing.id}.error(Code::kInvalidArgument, "it has already been sealed or aborted");
}

}  // namespace

// What is written after the connection has ended stays where it is: the memory is nobody else's while it can be written.
Result<void> check_open(const Writing& writing) {
  if (!writing.open) return ended(writing);
  const auto up = writing.connection->is_up();
  if (up) return {};
  return Subject{"put", writing.id}.error(up.code(), up.error().message + "; put it again with a new client");
}

Result<void> advance(Writing& writing, std::size_t bytes) {
  if (auto open = check_open(writing); !open) return open;
  writing.advanced = std::clamp(bytes, writing.advanced, writing.window.bytes().size());
  if (writing.advanced == writing.told) return {};
  const bool much = writing.advanced - writing.told >= kWorthTelling;
  writing.told = writing.advanced;
  writing.connection->tell(ipc::Advance{writing.copy, writing.advanced},
                           much ? Connection::Urgency::kNow : Connection::Urgency::kSoon);
  return {};
}

void give_up(Writing& writing) {
  if (!writing.open) return;
  writing.open = false;
  writing.window.close();
  writing.connection->give_up(writing.copy);
}

// From here on nothing can be written.
Future<ObjectId> start_seal(Writing& writing, const Deadline& deadline, Sending sending) {
  const Subject subject{"put", writing.id};
  if (!writing.open) return start_ended<to_id>(writing.connection, ended(writing));
  if (auto open = check_open(writing); !open) {
    give_up(writing);
    return start_ended<to_id>(writing.connection, open.error());
  }
  writing.open = false;
  writing.window.close();
  return start<to_id>(writing.connection, new_call(subject, deadline), ipc::Seal{writing.copy, deadline.left_ns()},
                      sending);
}

}  // namespace client

ObjectWriter::ObjectWriter(std::unique_ptr<client::Writing> state) : state_(std::move(state)) {}
ObjectWriter::ObjectWriter(ObjectWriter&&) noexcept = default;

ObjectWriter& ObjectWriter::operator=(ObjectWriter&& other) noexcept {
  if (this != &other) {
    abort();
    state_ = std::move(other.state_);
  }
  return *this;
}

ObjectWriter::~ObjectWriter() { abort(); }

ObjectId ObjectWriter::id() const { return state_->id; }

std::span<std::byte> ObjectWriter::buffer() {
  return state_->open && !state_->connection->forked() ? state_->window.bytes() : ByteSpan();
}

Result<void> ObjectWriter::advance(std::size_t bytes) { return client::advance(*state_, bytes); }

Result<void> ObjectWriter::check_elements(DType wanted) {
  if (auto open = client::check_open(*state_); !open) return open;
  return client::check_elements(id(), state_->type, wanted, buffer());
}

Result<ObjectId> ObjectWriter::seal(Timeout timeout) {
  return client::start_seal(*state_, client::Deadline::after(timeout), client::Sending::kByWaiter).get();
}

Future<ObjectId> ObjectWriter::seal_async(Timeout timeout) {
  return client::start_seal(*state_, client::Deadline::after(timeout), client::Sending::kBatched);
}

void ObjectWriter::abort() {
  if (state_) client::give_up(*state_);
}

}  // namespace hoplite
