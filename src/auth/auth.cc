#include "auth/auth.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <cstdint>
#include <cstring>

#include "base/check.h"

namespace hoplite {
namespace {

void append(std::string& out, std::string_view part) {
  const std::uint64_t size = part.size();
  char bytes[sizeof size];
  std::memcpy(bytes, &size, sizeof size);
  out.append(bytes, sizeof bytes).append(part);
}

unsigned char* bytes_of(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }

}  // namespace

std::string make_nonce() {
  std::string nonce(kNonceBytes, '\0');
  // Without randomness there is no authentication to offer.
  CHECK(RAND_bytes(bytes_of(nonce), static_cast<int>(kNonceBytes)) == 1);
  return nonce;
}

std::string proof(std::string_view token, std::string_view label, std::initializer_list<std::string_view> parts) {
  std::string input;
  append(input, label);
  for (const std::string_view part : parts) append(input, part);
  std::string out(kProofBytes, '\0');
  unsigned int size = 0;
  // HMAC() takes a null key for "the previous one"; an empty token still needs an address.
  const char* key = token.empty() ? "" : token.data();
  CHECK(HMAC(EVP_sha256(), key, static_cast<int>(token.size()), bytes_of(input), input.size(), bytes_of(out), &size) !=
        nullptr);
  CHECK(size == kProofBytes, size);
  return out;
}

std::string client_proof(std::string_view token, std::string_view nonce) {
  return proof(token, "hoplite client", {nonce});
}

bool equal_in_constant_time(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace hoplite
