// Huge pages for shared memory, where the system allows them.
//
// They cost a third per byte to bring in, and a client's first touch of them a fortieth (docs/adr/0002-arena.md).
#pragma once

#include "base/bytes.h"

namespace hoplite {

// Backs the whole huge pages (2 MiB, aligned) inside `memory`, a shared mapping, with huge pages; its bytes stay. Works
// whatever /sys/kernel/mm/transparent_hugepage/shmem_enabled says, unless that is "deny": a process may ask for its own
// memory. False if the kernel (before 6.1) or a lack of unbroken memory prevented it: all works without, slower.
bool make_huge(ByteSpan memory);

}  // namespace hoplite
