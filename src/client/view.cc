#include <utility>

#include "client/states.h"
#include "protocol/metadata.h"

namespace hoplite {

std::span<const std::byte> View::bytes() const { return state_ ? state_->bytes : ByteView(); }

const std::string& View::metadata() const {
  static const std::string none;
  return state_ ? state_->metadata : none;
}

const ArrayType& View::array() const {
  static const ArrayType none;
  return state_ ? state_->array : none;
}

namespace client {

Error unexpected(const Subject& subject) {
  return subject.error(Code::kInternal, "the daemon's reply is of the wrong kind");
}

Result<hoplite::View> to_view(const std::shared_ptr<Connection>& connection, const Subject& subject,
                              Result<Reply> reply) {
  if (!reply) return reply.error();
  auto* view = std::get_if<client::View>(&*reply);
  if (view == nullptr) return unexpected(subject);
  const auto bytes = connection->mapping().view({view->offset, view->size});
  if (!bytes) {
    connection->release(view->copy);
    return subject.error(bytes.code(), bytes.error().message);
  }
  auto state = std::make_shared<hoplite::View::State>();
  state->connection = connection;
  state->copy = view->copy;
  state->bytes = *bytes;
  Metadata metadata = decode_metadata(view->meta);
  state->metadata = std::move(metadata.text);
  state->array = {metadata.type, std::move(metadata.shape)};
  return hoplite::View(std::move(state));
}

Result<ObjectId> to_id(const Subject& subject, Result<Reply> reply) {
  if (!reply) return reply.error();
  const auto* done = std::get_if<PutDone>(&*reply);
  if (done == nullptr) return unexpected(subject);
  return done->id;
}

}  // namespace client

// --- Future

namespace {

template <typename T>
Result<T> to_result(const std::shared_ptr<client::Connection>& connection, const client::Subject& subject,
                    Result<client::Reply> reply) {
  if constexpr (std::is_same_v<T, View>) return client::to_view(connection, subject, std::move(reply));
  else return client::to_id(subject, std::move(reply));
}

}  // namespace

template <typename T>
Future<T>::Future(std::shared_ptr<client::Connection> connection, std::shared_ptr<client::Call> call)
    : connection_(std::move(connection)), call_(std::move(call)) {}

template <typename T>
Future<T>::Future(Future&& other) noexcept = default;

template <typename T>
Future<T>& Future<T>::operator=(Future&& other) noexcept {
  if (this != &other) {
    if (call_) connection_->abandon(*call_);
    connection_ = std::move(other.connection_);
    call_ = std::move(other.call_);
  }
  return *this;
}

template <typename T>
Future<T>::~Future() {
  if (call_) connection_->abandon(*call_);
}

template <typename T>
bool Future<T>::ready() {
  return connection_->poll(*call_);
}

template <typename T>
bool Future<T>::wait_for(std::chrono::nanoseconds timeout) {
  return connection_->wait_until(*call_, client::Deadline::after(timeout).at);
}

template <typename T>
Result<T> Future<T>::get() {
  const auto call = std::move(call_);
  return to_result<T>(connection_, call->subject, connection_->wait(*call));
}

template <typename T>
void Future<T>::cancel() {
  connection_->cancel(call_->ticket);
}

template class Future<ObjectId>;
template class Future<View>;

}  // namespace hoplite
