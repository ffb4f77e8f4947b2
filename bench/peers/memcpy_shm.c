/* Copies SIZE bytes of warm memory into shared memory: pages that are already
 * present ("warm"), and pages of a new memfd that the copy itself brings in
 * ("fresh"). The reference for a local put. Prints the seconds of each copy. */
#define _GNU_SOURCE
#include <sys/mman.h>

#include "peer.h"

static void* map_shared(size_t size) {
  int fd = memfd_create("memcpy_shm", MFD_CLOEXEC);
  if (fd < 0) die("memfd_create");
  if (ftruncate(fd, (off_t)size) != 0) die("ftruncate");
  void* memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) die("mmap");
  close(fd);
  return memory;
}

static double time_copy(void* to, const void* from, size_t size) {
  double start = now_s();
  memcpy(to, from, size);
  /* The bytes are used, for all the compiler knows: it must make the copy. */
  __asm__ volatile("" : : "r"(to) : "memory");
  return now_s() - start;
}

int main(int argc, char** argv) {
  if (argc != 3) usage("memcpy_shm SIZE REPS");
  size_t size = parse_count(argv[1]), reps = parse_count(argv[2]);
  if (size == 0) usage("memcpy_shm SIZE REPS, with SIZE of at least 1");
  double* warm = touched(reps * sizeof *warm);
  double* fresh = touched(reps * sizeof *fresh);
  char* source = touched(size);
  char* kept = map_shared(size);
  time_copy(kept, source, size); /* warm up */
  for (size_t i = 0; i < reps; i++) {
    warm[i] = time_copy(kept, source, size);
    void* unseen = map_shared(size);
    fresh[i] = time_copy(unseen, source, size);
    munmap(unseen, size);
  }
  printf("{\"size\": %zu, ", size);
  print_times("warm_seconds", warm, reps);
  printf(", ");
  print_times("fresh_seconds", fresh, reps);
  printf("}\n");
  return 0;
}
