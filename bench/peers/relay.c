/* A chain of hosts, each forwarding what it has of the object while it still
 * receives: the practical limit of a broadcast. One process per host: head
 * (has the object), middle ..., tail. The head prints, for each repetition, the
 * seconds until the tail's word that it has everything has come back.
 * REST_MS: see rest() in peer.h. */
#include <poll.h>

#include "peer.h"

static const char* const USAGE =
    "relay head|middle SIZE REPS REST_MS BLOCK PORT NEXT_ADDRESS |\n"
    "       relay tail SIZE REPS REST_MS BLOCK PORT";

enum { NOBODY = -1 };

/* How far a non-blocking send or recv came: 0 means "not now". */
static size_t progress(ssize_t n, const char* what) {
  if (n < 0 && errno != EAGAIN && errno != EINTR) die(what);
  return n < 0 ? 0 : (size_t)n;
}

static size_t at_most(size_t n, size_t block) { return n < block ? n : block; }

/* Moves one object from `up` (or, at the head, from `object` itself) to `down`,
 * in pieces of up to `block` bytes: a byte goes out as soon as it is in. */
static void pass_on(int up, int down, char* object, size_t size, size_t block) {
  size_t in = up == NOBODY ? size : 0;
  size_t out = down == NOBODY ? size : 0;
  while (in < size || out < size) {
    /* poll ignores an entry whose fd is negative. */
    struct pollfd ready[2] = {{.fd = in < size ? up : NOBODY, .events = POLLIN},
                              {.fd = out < in ? down : NOBODY, .events = POLLOUT}};
    if (poll(ready, 2, -1) < 0) die("poll");
    if (ready[0].revents != 0) {
      ssize_t n = recv(up, object + in, at_most(size - in, block), MSG_DONTWAIT);
      if (n == 0) die("the host before closed");
      in += progress(n, "recv");
    }
    if (ready[1].revents != 0) {
      ssize_t n = send(down, object + out, at_most(in - out, block), MSG_DONTWAIT | MSG_NOSIGNAL);
      out += progress(n, "send");
    }
  }
}

/* Passes one byte from the tail to the head: everybody after us is done. */
static void report_back(int up, int down) {
  char done = 1;
  if (down != NOBODY && !read_full(down, &done, 1)) die("the host after closed");
  if (up != NOBODY) write_full(up, &done, 1);
}

int main(int argc, char** argv) {
  if (argc < 7) usage(USAGE);
  int is_head = strcmp(argv[1], "head") == 0;
  int is_tail = strcmp(argv[1], "tail") == 0;
  if (!is_head && !is_tail && strcmp(argv[1], "middle") != 0) usage(USAGE);
  if (argc != (is_tail ? 7 : 8)) usage(USAGE);
  size_t size = parse_count(argv[2]), reps = parse_count(argv[3]);
  size_t rest_ms = parse_count(argv[4]), block = parse_count(argv[5]);
  size_t port = parse_count(argv[6]);

  char* object = touched(size);
  double* seconds = touched(reps * sizeof *seconds);
  int up = is_head ? NOBODY : accept_one(tcp_address("0.0.0.0", port));
  int down = is_tail ? NOBODY : connect_patiently(tcp_address(argv[7], port));
  report_back(up, down); /* the chain is complete */
  for (size_t i = 0; i < reps; i++) {
    if (is_head) rest(rest_ms);
    double start = now_s();
    pass_on(up, down, object, size, block);
    report_back(up, down);
    seconds[i] = now_s() - start;
  }
  if (is_head) {
    printf("{\"size\": %zu, ", size);
    print_times("seconds", seconds, reps);
    printf("}\n");
  }
  return 0;
}
