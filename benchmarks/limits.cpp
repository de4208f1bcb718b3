// What the machine can do at most: streams of whole cache lines through memory, and a chain of multiply-adds in registers.
#include <immintrin.h>
#include <cstddef>

#if defined(__AVX512F__)
using Vector = __m512;
static inline Vector load(const float* p) { return _mm512_load_ps(p); }
static inline void store(float* p, Vector v) { _mm512_store_ps(p, v); }
static inline void stream(float* p, Vector v) { _mm512_stream_ps(p, v); }
static inline Vector add(Vector a, Vector b) { return _mm512_add_ps(a, b); }
static inline Vector multiply_add(Vector a, Vector b, Vector c) { return _mm512_fmadd_ps(a, b, c); }
static inline Vector spread(float x) { return _mm512_set1_ps(x); }
#elif defined(__AVX2__) && defined(__FMA__)
using Vector = __m256;
static inline Vector load(const float* p) { return _mm256_load_ps(p); }
static inline void store(float* p, Vector v) { _mm256_store_ps(p, v); }
static inline void stream(float* p, Vector v) { _mm256_stream_ps(p, v); }
static inline Vector add(Vector a, Vector b) { return _mm256_add_ps(a, b); }
static inline Vector multiply_add(Vector a, Vector b, Vector c) { return _mm256_fmadd_ps(a, b, c); }
static inline Vector spread(float x) { return _mm256_set1_ps(x); }
#else
using Vector = __m128;
static inline Vector load(const float* p) { return _mm_load_ps(p); }
static inline void store(float* p, Vector v) { _mm_store_ps(p, v); }
static inline void stream(float* p, Vector v) { _mm_stream_ps(p, v); }
static inline Vector add(Vector a, Vector b) { return _mm_add_ps(a, b); }
static inline Vector multiply_add(Vector a, Vector b, Vector c) { return _mm_add_ps(_mm_mul_ps(a, b), c); }
static inline Vector spread(float x) { return _mm_set1_ps(x); }
#endif
constexpr size_t LANES = sizeof(Vector) / sizeof(float);
constexpr int CHAINS = 20;  // more than the latency times the throughput of any core's multiply-add

template <int Operands, bool NonTemporal>
static void copy(const float* a, const float* b, const float* c, float* out, size_t count) {
    for (size_t i = 0; i < count; i += LANES) {
        Vector v = load(a + i);
        if (Operands > 1) v = add(v, load(b + i));
        if (Operands > 2) v = add(v, load(c + i));
        if (NonTemporal) stream(out + i, v); else store(out + i, v);
    }
    if (NonTemporal) _mm_sfence();
}

// ``count`` floats, a multiple of 16 each, on cache lines: out = a (+ b (+ c)), with non-temporal stores or without.
extern "C" void stream_write(int operands, int non_temporal, const float* a, const float* b, const float* c, float* out, size_t count) {
    switch (operands * 2 + (non_temporal != 0)) {
        case 2: copy<1, false>(a, b, c, out, count); break;
        case 3: copy<1, true>(a, b, c, out, count); break;
        case 4: copy<2, false>(a, b, c, out, count); break;
        case 5: copy<2, true>(a, b, c, out, count); break;
        case 6: copy<3, false>(a, b, c, out, count); break;
        case 7: copy<3, true>(a, b, c, out, count); break;
    }
}

// Reads ``count`` floats, a multiple of 64, and stores one vector at ``out``, so that nothing is left out.
extern "C" void stream_read(const float* a, float* out, size_t count) {
    Vector sum[4] = {spread(0), spread(0), spread(0), spread(0)};
    for (size_t i = 0; i + 4 * LANES <= count; i += 4 * LANES)
        for (size_t j = 0; j < 4; ++j) sum[j] = add(sum[j], load(a + i + j * LANES));
    store(out, add(add(sum[0], sum[1]), add(sum[2], sum[3])));
}

// ``flops`` floating-point operations as independent chains of multiply-adds.
extern "C" void multiply_adds(double flops, float* out) {
    Vector value[CHAINS];
    for (int i = 0; i < CHAINS; ++i) value[i] = spread(1.0f + i);
    const Vector factor = spread(0.999f), term = spread(0.001f);
    const size_t turns = static_cast<size_t>(flops / (2.0 * LANES * CHAINS));
    for (size_t k = 0; k < turns; ++k) {
#pragma GCC unroll 20
        for (int i = 0; i < CHAINS; ++i) value[i] = multiply_add(value[i], factor, term);
    }
    for (int i = 1; i < CHAINS; ++i) value[0] = add(value[0], value[i]);
    store(out, value[0]);
}
