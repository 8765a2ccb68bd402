#pragma once

/// Marks a function whose loops are compiled once for each kind of processor; the one that fits is
/// chosen when the program starts. All clones give the same bits: every element is computed by
/// itself, by operations that IEEE 754 rounds exactly, and -ffp-contract=off keeps them apart. Not
/// under sanitizers, whose start-up runs after the choice.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(YOKE_SANITIZED)
#define YOKE_CLONES_FOR(...) __attribute__((target_clones(__VA_ARGS__)))
#else
#define YOKE_CLONES_FOR(...)
#endif

/// By vector width; AVX-512 at its full one.
#define YOKE_VECTOR_CLONES YOKE_CLONES_FOR("avx512f", "avx2", "default")
/// By level of the instruction set, which has conversions of half precision too.
#define YOKE_LEVEL_CLONES YOKE_CLONES_FOR("arch=x86-64-v4", "arch=x86-64-v3", "default")

/// A loop's body that takes on the vector width of the clone that calls it.
#define YOKE_LOOP inline __attribute__((always_inline))
