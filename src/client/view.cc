#include <cstdint>

#include "client/states.h"
#include "protocol/metadata.h"

namespace hoplite {

ObjectId View::id() const { return state_ ? state_->id : ObjectId(); }

std::span<const std::byte> View::bytes() const { return state_ ? state_->bytes : ByteView(); }

const std::string& View::metadata() const {
  static const std::string none;
  return state_ ? state_->metadata : none;
}

bool View::is_failure() const { return state_ && state_->failure; }

const ArrayType& View::array() const {
  static const ArrayType none;
  return state_ ? state_->array : none;
}

namespace client {

Result<void> check_elements(ObjectId id, DType put_as, DType wanted, std::span<const std::byte> bytes) {
  const Subject subject{"array", id};
  const std::string type(to_string(wanted));
  if (put_as != wanted && put_as != DType::kBytes)
    return subject.error(Code::kTypeMismatch, "its elements are " + std::string(to_string(put_as)) + ", not " + type);
  if (bytes.size() % size_of(wanted) != 0)
    return subject.error(Code::kInvalidArgument,
                         std::to_string(bytes.size()) + " bytes are not a whole number of elements of type " + type);
  if (reinterpret_cast<std::uintptr_t>(bytes.data()) % size_of(wanted) != 0)
    return subject.error(Code::kInternal, "its address in the store is not aligned for elements of type " + type);
  return {};
}

Error unexpected(const Subject& subject) {
  return subject.error(Code::kInternal, "the daemon sent a reply of the wrong kind");
}

Result<hoplite::View> to_view(const Link& connection, const Call& call, Result<ipc::Reply> reply) {
  if (!reply) return reply.error();
  auto* view = std::get_if<ipc::View>(&*reply);
  if (view == nullptr) return unexpected(call.subject);
  const auto bytes = connection->mapping().view({view->offset, view->size});
  if (!bytes) {
    connection->release(view->copy, 0);
    return call.subject.error(bytes.code(), bytes.error().message);
  }
  auto state = std::make_shared<Viewing>(connection);
  state->id = call.subject.object;
  state->copy = view->copy;
  state->bytes = *bytes;
  Metadata metadata = decode_metadata(view->meta);
  state->metadata = std::move(metadata.text);
  state->array = {metadata.type, std::move(metadata.shape)};
  state->failure = metadata.failure;
  if (state->failure && !call.wants_failures) return call.subject.error(Code::kFailed, state->metadata);
  return Access::handle<hoplite::View>(std::move(state));
}

}  // namespace client
}  // namespace hoplite
