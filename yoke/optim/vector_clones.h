#pragma once

/// Marks a function whose loops are compiled once for each vector width; the processor's own is
/// chosen when the program starts. All clones give the same bits: every element is computed by
/// itself, by operations that IEEE 754 rounds exactly, and -ffp-contract=off keeps them apart. Not
/// under sanitizers, whose start-up runs after the choice.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(YOKE_SANITIZED)
#define YOKE_VECTOR_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define YOKE_VECTOR_CLONES
#endif

/// A loop's body that takes on the vector width of the clone that calls it.
#define YOKE_LOOP inline __attribute__((always_inline))
