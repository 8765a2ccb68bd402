// libFuzzer on the decoders of net: cmake -DYOKE_FUZZ=ON with clang, then build/yoke_wire_fuzz.

#include "tests/net/wire_mutations.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  yoke::net::check_decoders(std::as_bytes(std::span(data, size)));
  return 0;
}
