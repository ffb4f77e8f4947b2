#include "auth/auth.h"

#include <gtest/gtest.h>

#include "base/hex.h"

namespace hoplite {
namespace {

std::string hex(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) out += hex64(static_cast<unsigned char>(c)).substr(14);
  return out;
}

TEST(Auth, NoncesAreFreshAndLong) {
  EXPECT_EQ(make_nonce().size(), kNonceBytes);
  EXPECT_NE(make_nonce(), make_nonce());
}

TEST(Auth, ProofIsHmacSha256OfLengthPrefixedParts) {
  // python3: hmac.new(b"token", b"".join(len(p).to_bytes(8, "little") + p for p in (b"label", b"a", b"")), "sha256")
  EXPECT_EQ(hex(proof("token", "label", {"a", ""})),
            "8ca54837ea75fbd10ef0e983616f00941e0009a6300cf65db6990f0d3dfadcb3");
}

TEST(Auth, ProofDependsOnEverything) {
  const std::string reference = proof("token", "label", {"a", "b"});
  EXPECT_EQ(reference, proof("token", "label", {"a", "b"}));
  EXPECT_NE(reference, proof("Token", "label", {"a", "b"}));
  EXPECT_NE(reference, proof("", "label", {"a", "b"}));
  EXPECT_NE(reference, proof("token", "Label", {"a", "b"}));
  EXPECT_NE(reference, proof("token", "label", {"b", "a"}));
  EXPECT_NE(reference, proof("token", "label", {"ab", ""}));
  EXPECT_NE(reference, proof("token", "label", {"ab"}));
}

TEST(Auth, AnEmptyTokenWorks) { EXPECT_EQ(proof("", "label", {}).size(), kProofBytes); }

TEST(Auth, ComparesBytes) {
  EXPECT_TRUE(equal_in_constant_time("", ""));
  EXPECT_TRUE(equal_in_constant_time("abc", "abc"));
  EXPECT_FALSE(equal_in_constant_time("abc", "abd"));
  EXPECT_FALSE(equal_in_constant_time("abc", "ab"));
}

}  // namespace
}  // namespace hoplite
