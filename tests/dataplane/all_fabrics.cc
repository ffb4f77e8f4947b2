#include "tests/dataplane/fabric.h"

namespace hoplite {

std::vector<FabricKind> all_fabrics() {
#ifdef HOPLITE_WITHOUT_SIMULATOR
  return {tcp_fabric(), memory_fabric()};
#else
  return {tcp_fabric(), memory_fabric(), simulated_fabric()};
#endif
}

}  // namespace hoplite
