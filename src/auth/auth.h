// Proving knowledge of the cluster token without sending it: HMAC-SHA256 over nonces of both sides.
//
// All functions are pure apart from make_nonce, and thread-safe.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

namespace hoplite {

constexpr std::size_t kNonceBytes = 32;
constexpr std::size_t kProofBytes = 32;

// Fresh random bytes from the system's generator.
std::string make_nonce();

// HMAC-SHA256(token, label and parts), each with its length in front, so that no two lists of parts give the same
// input. An empty token is a key like any other: a side without one does not convince a side that has one. The label
// separates the uses of one token ("hoplite node dialler", "hoplite client", ...), so that a proof for one is none for
// another.
std::string proof(std::string_view token, std::string_view label, std::initializer_list<std::string_view> parts);

// What a client proves to its daemon: that it knows the token, for this greeting.
std::string client_proof(std::string_view token, std::string_view nonce);

// In a time that depends on the lengths only.
bool equal_in_constant_time(std::string_view a, std::string_view b);

}  // namespace hoplite
