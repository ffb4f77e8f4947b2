// What is said of an object's bytes, checked against them.
#include "base/limits.h"
#include "client/states.h"
#include "protocol/metadata.h"

namespace hoplite::client {
namespace {

static_assert(kLimits.max_text_bytes + kMaxTypeBytes <= Limits{}.max_meta_bytes, "the daemon takes what we accept");

std::string words(const std::vector<std::uint64_t>& shape) {
  std::string text;
  for (const std::uint64_t extent : shape) text += (text.empty() ? "" : " x ") + std::to_string(extent);
  return text;
}

// Empty if it would not fit into 64 bits.
std::optional<std::uint64_t> bytes_of(const ArrayType& array) {
  std::uint64_t bytes = size_of(array.type);
  for (const std::uint64_t extent : array.shape)
    if (extent == 0) return 0;
  for (const std::uint64_t extent : array.shape)
    if (__builtin_mul_overflow(bytes, extent, &bytes)) return std::nullopt;
  return bytes;
}

std::string wrong_with(const ArrayType& array, std::uint64_t size) {
  if (array.type > last_enumerator(DType{})) return "the element type is unknown";
  if (array.shape.size() > kMaxDimensions)
    return std::to_string(array.shape.size()) + " dimensions exceed the limit of " + std::to_string(kMaxDimensions);
  const std::string type(to_string(array.type));
  if (size % size_of(array.type) != 0)
    return std::to_string(size) + " bytes are not a whole number of elements of type " + type;
  if (array.shape.empty()) return "";
  const auto said = bytes_of(array);
  if (said == size) return "";
  return "an array of " + words(array.shape) + " elements of type " + type + " has " +
         (said ? std::to_string(*said) : std::string("more than 2^64")) + " bytes, but the object has " +
         std::to_string(size);
}

}  // namespace

Result<std::string> encoded_metadata(const Subject& subject, const PutOptions& options, std::uint64_t size,
                                     bool failure) {
  if (options.metadata.size() > kLimits.max_text_bytes)
    return subject.error(Code::kInvalidArgument, std::to_string(options.metadata.size()) +
                                                     " bytes of metadata exceed the limit of " +
                                                     std::to_string(kLimits.max_text_bytes));
  if (!options.name.empty() && subject.object != ObjectId::named(options.name))
    return subject.error(Code::kInvalidArgument, "the id does not match the name");
  if (const std::string wrong = wrong_with(options.array, size); !wrong.empty())
    return subject.error(Code::kInvalidArgument, wrong);
  const std::string_view name = options.name.size() <= kMaxNameBytes ? options.name : std::string_view();
  return encode_metadata({options.array.type, options.array.shape, std::string(name), options.metadata, failure});
}

}  // namespace hoplite::client
