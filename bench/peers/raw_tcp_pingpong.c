/* SIZE bytes to another host and back over one blocking TCP connection. Run
 * beside a bulk transfer it says how long the loaded link itself makes a small
 * message wait. */
#include "peer.h"

static const char* const USAGE = "raw_tcp_pingpong server SIZE PORT | client SIZE ADDRESS PORT ROUNDS WARMUP PAUSE_MS";

int main(int argc, char** argv) {
  if (argc == 4 && strcmp(argv[1], "server") == 0) {
    echo(accept_one(tcp_address("0.0.0.0", parse_count(argv[3]))), parse_count(argv[2]));
  } else if (argc == 8 && strcmp(argv[1], "client") == 0) {
    int fd = connect_patiently(tcp_address(argv[3], parse_count(argv[4])));
    ping(fd, parse_count(argv[2]), parse_count(argv[5]), parse_count(argv[6]), parse_count(argv[7]));
  } else {
    usage(USAGE);
  }
  return 0;
}
