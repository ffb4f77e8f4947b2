// Errors a caller can react to.
//
// Every failure carries one of a dozen codes and a sentence that names the object, the node and the reason. Bugs are not
// errors: they end the process through CHECK.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace hoplite {

enum class Code : unsigned char {
  kOk = 0,
  kTimedOut,         // the deadline passed; the message says what was being waited for
  kLost,             // the object existed, and no complete copy is left
  kDeleted,          // the object was deleted
  kExists,           // the id already names an object
  kStoreFull,        // no room before the deadline; the message has the numbers
  kNotAuthorised,    // wrong or missing cluster token
  kInvalidArgument,  // the request makes no sense
  kVersionMismatch,  // the two sides speak different protocol versions
  kUnavailable,      // the daemon is gone or not reachable
  kCancelled,        // the caller cancelled it
  kInternal,         // the store failed in a way it should not; please report
  kTypeMismatch,     // an array has another element type or shape than is asked for; the message names it
  kSizeMismatch,     // a source of a reduce has another size than the others; the message names both
  kFailed,           // whoever was to put the object committed a failure instead; the message has the reason given
};
constexpr Code last_enumerator(Code) { return Code::kFailed; }

std::string_view code_name(Code code);

struct Error {
  Code code = Code::kInternal;
  std::string message;

  // "timed out: ..." as shown to people.
  std::string to_string() const;
};

// A value or an Error. Asking for the one that is not there is a bug (std::bad_variant_access).
template <typename T>
class [[nodiscard]] Result {
 public:
  using Value = T;

  Result(T value) : state_(std::move(value)) {}      // NOLINT(google-explicit-constructor): `return value;`
  Result(Error error) : state_(std::move(error)) {}  // NOLINT(google-explicit-constructor): `return Error{...};`

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const { return std::get<1>(state_); }
  Code code() const { return ok() ? Code::kOk : error().code; }

 private:
  std::variant<T, Error> state_;
};

// Success, or an Error.
template <>
class [[nodiscard]] Result<void> {
 public:
  using Value = void;

  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor): `return Error{...};`

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Error& error() const { return error_.value(); }
  Code code() const { return ok() ? Code::kOk : error().code; }

 private:
  std::optional<Error> error_;
};

}  // namespace hoplite
