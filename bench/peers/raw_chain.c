/* The least that a message through two daemons costs: blocking sockets, no
 * protocol, four processes. The reference for Hoplite's small objects.
 *
 *   near client -unix- near daemon -TCP- far daemon -unix- far client
 *
 * The near client sends SIZE bytes all the way, the far client returns them. */
#include "peer.h"

static const char* const USAGE =
    "raw_chain near-client SIZE ROUNDS WARMUP | near-daemon SIZE ADDRESS PORT |\n"
    "       raw_chain far-daemon SIZE PORT | far-client SIZE";
static const char* const SOCKET_NAME = "hoplite-raw-chain";

/* Carries requests from `front` to `back` and replies the other way. */
static void carry(int front, int back, size_t size) {
  char* message = touched(size);
  while (read_full(front, message, size)) {
    write_full(back, message, size);
    if (!read_full(back, message, size)) return;
    write_full(front, message, size);
  }
}

int main(int argc, char** argv) {
  if (argc < 3) usage(USAGE);
  const char* role = argv[1];
  size_t size = parse_count(argv[2]);
  struct address local = unix_address(SOCKET_NAME);
  if (strcmp(role, "near-client") == 0 && argc == 5) {
    ping(connect_patiently(local), size, parse_count(argv[3]), parse_count(argv[4]), 0);
  } else if (strcmp(role, "near-daemon") == 0 && argc == 5) {
    int back = connect_patiently(tcp_address(argv[3], parse_count(argv[4])));
    carry(accept_one(local), back, size);
  } else if (strcmp(role, "far-daemon") == 0 && argc == 4) {
    int front = accept_one(tcp_address("0.0.0.0", parse_count(argv[3])));
    carry(front, accept_one(local), size);
  } else if (strcmp(role, "far-client") == 0 && argc == 3) {
    echo(connect_patiently(local), size);
  } else {
    usage(USAGE);
  }
  return 0;
}
