#include <algorithm>

#include "base/check.h"
#include "client/states.h"

namespace hoplite {
namespace {

// How much must be new before the daemon is told at once; smaller steps travel with the next tick. At 10 GB/s this is a
// message every 25 us, which costs a few percent.
constexpr std::size_t kWorthTelling = 256 * kKiB;

}  // namespace

namespace client {

Result<std::unique_ptr<Writing>> create(const std::shared_ptr<Connection>& connection, const Subject& subject,
                                        std::uint64_t size, const std::string& encoded_metadata,
                                        const Deadline& deadline) {
  auto reply = connection->ask(subject, Create{subject.object, size, encoded_metadata, deadline.left_ns()}, deadline);
  if (!reply) return reply.error();
  const auto* created = std::get_if<Created>(&*reply);
  if (created == nullptr) return unexpected(subject);
  auto window = WriteWindow::open(connection->mapping(), {created->offset, created->size});
  if (!window || created->size != size) {
    connection->tell(Abort{created->copy}, Connection::Urgency::kSoon);
    return subject.error(Code::kInternal, window ? "the daemon gave room of another size" : window.error().message);
  }
  auto writing = std::make_unique<Writing>();
  writing->connection = connection;
  writing->id = created->id;
  writing->copy = created->copy;
  writing->window = *std::move(window);
  return writing;
}

void advance(Writing& writing, std::size_t bytes) {
  if (!writing.open) return;
  writing.advanced = std::clamp(bytes, writing.advanced, writing.window.bytes().size());
  if (writing.advanced == writing.told) return;
  const bool much = writing.advanced - writing.told >= kWorthTelling;
  writing.told = writing.advanced;
  writing.connection->tell(Advance{writing.copy, writing.advanced},
                           much ? Connection::Urgency::kNow : Connection::Urgency::kSoon);
}

Seal close_for_seal(Writing& writing, const Deadline& deadline) {
  CHECK(writing.open);
  writing.open = false;
  writing.window.close();
  return {writing.copy, deadline.left_ns()};
}

}  // namespace client

ObjectWriter::ObjectWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
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

std::span<std::byte> ObjectWriter::buffer() { return state_->open ? state_->window.bytes() : ByteSpan(); }

void ObjectWriter::advance(std::size_t bytes) { client::advance(*state_, bytes); }

Result<ObjectId> ObjectWriter::seal(Timeout timeout) {
  const client::Subject subject{"put", state_->id};
  if (!state_->open) return subject.error(Code::kInvalidArgument, "it was sealed or given up already");
  const auto deadline = client::Deadline::after(timeout);
  return client::to_id(subject, state_->connection->ask(subject, client::close_for_seal(*state_, deadline), deadline));
}

void ObjectWriter::abort() {
  if (!state_ || !state_->open) return;
  state_->open = false;
  state_->window.close();
  state_->connection->tell(client::Abort{state_->copy}, client::Connection::Urgency::kSoon);
}

}  // namespace hoplite
