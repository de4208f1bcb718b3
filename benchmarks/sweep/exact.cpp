// Exact results in double precision and the comparison of f32 results with them; compiled by the host's C++ compiler.
//
// The functions are the C library's for doubles, whose errors are below 2^-50 of the result: 2^-26 ulp of an f32. Where a formula
// would cancel, it is written in another form. The tests hold every function here against mpmath and against the op table's reference.

#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace {

struct Report {
    double worst;         // the largest error in ulp
    uint64_t worst_at;    // its input: the number of the element
    uint64_t wrong;       // NaN, infinities, signs of zeros and integers that differ
    uint64_t wrong_at;    // the first of them
    uint64_t misrounded;  // results that are not the nearest f32
};

enum Result { FLOAT, BOOL, INT };

inline double bits_to_double(uint64_t bits) {
    double value;
    std::memcpy(&value, &bits, 8);
    return value;
}

inline uint64_t double_to_bits(double value) {
    uint64_t bits;
    std::memcpy(&bits, &value, 8);
    return bits;
}

inline float bits_to_float(uint32_t bits) {
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
}

// The error in ulp of the exact value; below 2^smallest the ulp is that of 2^smallest, and infinity counts as 2^128.
inline void compare(float got, double exact, uint64_t at, Report& report, int64_t smallest = -126) {
    if (std::isnan(got) || std::isnan(exact)) {
        if (std::isnan(got) != std::isnan(exact) && report.wrong++ == 0) report.wrong_at = at;
        return;
    }
    const float nearest = static_cast<float>(exact);
    if (got == nearest && std::signbit(got) == std::signbit(nearest) && (std::isinf(exact) || exact == 0)) return;
    if (std::isinf(exact) || ((got == 0 || std::isinf(got) || nearest == 0) && std::signbit(got) != std::signbit(exact))) {
        if (report.wrong++ == 0) report.wrong_at = at;
        return;
    }
    constexpr double beyond = 0x1p128;
    const double value = std::isinf(got) ? std::copysign(beyond, got) : got;
    const double target = std::fabs(exact) > beyond ? std::copysign(beyond, exact) : exact;
    int64_t exponent = static_cast<int64_t>((double_to_bits(target) >> 52) & 0x7ff) - 1023;
    exponent = exponent < smallest ? smallest : exponent > 127 ? 127 : exponent;
    const double error = std::fabs(value - target) * bits_to_double(static_cast<uint64_t>(23 - exponent + 1023) << 52);
    report.misrounded += got != nearest;
    if (error > report.worst) {
        report.worst = error;
        report.worst_at = at;
    }
}

inline int64_t exponent_of(double x) { return static_cast<int64_t>((double_to_bits(x) >> 52) & 0x7ff) - 1023; }

inline void compare_any(Result kind, const void* got, int64_t i, double exact, uint64_t at, Report& report, int64_t smallest = -126) {
    if (kind == FLOAT) return compare(static_cast<const float*>(got)[i], exact, at, report, smallest);
    const double value = kind == BOOL ? static_cast<const uint8_t*>(got)[i] : static_cast<const int32_t*>(got)[i];
    if (value != exact && report.wrong++ == 0) report.wrong_at = at;
}

// ---- functions of one number ---------------------------------------------------------------------------------------------

constexpr double PI = 3.14159265358979323846, SQRT_HALF = 0.70710678118654752440;
constexpr double SELU_ALPHA = 1.6732632423543772, SELU_SCALE = 1.0507009873554805;

double clamp(double x, double low, double high) { return x < low ? low : x > high ? high : x; }

// x = n pi/2 + r with |r| <= pi/4 for |x| >= 2^24, as Payne and Hanek do it: x is an integer m times 2^e, so 2^e 2/pi modulo 4 to 126
// bits behind the point leaves m times 2^-126 of error, and r is off by its last bit. (The C library takes ten times as long.)
struct Turned {
    int quadrant;
    double r;
};

Turned turned(double x) {
    // 2/pi times 2^256
    static constexpr uint64_t WORDS[] = {0xA2F9836E4E441529u, 0xFC2757D1F534DDC0u, 0xDB6295993C439041u, 0xFE5163ABDEBBC561u};
    int e;
    const double fraction = std::frexp(std::fabs(x), &e);
    const uint64_t m = static_cast<uint64_t>(std::ldexp(fraction, 53));
    const int first = e - 53 - 2;  // of the bits of 2/pi, the first that is wanted has the weight 2^(1 - (e - 53))
    unsigned __int128 window = 0;
    for (int k = 0; k < 128; k += 64) {
        const int bit = first + k, word = bit >> 6, by = bit & 63;
        const uint64_t upper = word >= 0 && word < 4 ? WORDS[word] : 0, lower = word >= -1 && word < 3 ? WORDS[word + 1] : 0;
        window = window << 64 | (by ? upper << by | lower >> (64 - by) : upper);
    }
    const unsigned __int128 product = window * m;  // modulo 4, in units of 2^-126
    const unsigned quadrant = static_cast<unsigned>(((product >> 125) + 1) >> 1) & 3;
    const __int128 rest = static_cast<__int128>(product << 2);  // signed: from the quadrant's middle, in units of 2^-128
    return {static_cast<int>(quadrant), std::ldexp(static_cast<double>(rest), -128) * (PI / 2)};
}

double sin_of(double x) {
    if (!(std::fabs(x) >= 0x1p24) || std::isinf(x)) return std::sin(x);
    const Turned t = turned(x);
    const double value = t.quadrant & 1 ? std::cos(t.r) : std::sin(t.r);
    return (t.quadrant >= 2) != std::signbit(x) ? -value : value;
}

double cos_of(double x) {
    if (!(std::fabs(x) >= 0x1p24) || std::isinf(x)) return std::cos(x);
    const Turned t = turned(x);
    const double value = t.quadrant & 1 ? std::sin(t.r) : std::cos(t.r);
    return ((t.quadrant + 1) & 2) != 0 ? -value : value;
}

double tan_of(double x) {
    if (!(std::fabs(x) >= 0x1p24) || std::isinf(x)) return std::tan(x);
    const Turned t = turned(x);
    const double value = t.quadrant & 1 ? -1 / std::tan(t.r) : std::tan(t.r);
    return std::signbit(x) ? -value : value;
}

// log(1 + e^x)
double softplus_of(double x) { return (x > 0 ? x : 0) + std::log1p(std::exp(-std::fabs(x))); }

// x - tanh x: the Taylor series where the difference cancels, long double where it cancels a little
double tanhshrink(double x) {
    const double z = x * x, size = std::fabs(x);
    if (size < 0.02) return x * z * (1 / 3.0 - z * (2 / 15.0 - z * (17 / 315.0 - z * (62 / 2835.0 - z * (1382 / 155925.0)))));
    return size < 2 ? static_cast<double>(x - std::tanh(static_cast<long double>(x))) : x - std::tanh(x);
}

// Newton's method on erfc(x) = 1 - y, of which 1 - y is exact
double erfinv(double y) {
    const double size = std::fabs(y);
    if (!(size < 1)) return size == 1 ? std::copysign(INFINITY, y) : NAN;
    if (size < 1e-8) return y * (std::sqrt(PI) / 2);
    const double ln = std::log((1 - y) * (1 + y)), half = 2 / (PI * 0.147) + ln / 2;
    double x = std::sqrt(std::sqrt(half * half - ln / 0.147) - half);  // Winitzki's approximation, within 2e-3
    for (int turn = 0; turn < 4; ++turn) {
        const double error = size < 0.5 ? size - std::erf(x) : std::erfc(x) - (1 - size);
        const double step = error * (std::sqrt(PI) / 2) * std::exp(x * x);
        x += step / (1 - x * step);  // Halley's correction
    }
    return std::copysign(x, y);
}

// The power series of I_order (DLMF 10.25.2), whose terms are all positive
double bessel(double x, int order) {
    const double size = std::fabs(x);
    if (size > 100) return order == 1 ? std::copysign(INFINITY, x) : INFINITY;
    const double z = size * size / 4;
    double term = order == 1 ? size / 2 : 1, total = term;
    for (int k = 1; term > total * 0x1p-56; ++k) {
        term *= z / (k * static_cast<double>(k + order));
        total += term;
    }
    return order == 1 ? std::copysign(total, x) : total;
}

double lgamma_of(double x) {
    if (x == -INFINITY || (x <= 0 && x == std::floor(x))) return INFINITY;
    return std::lgamma(x);
}

// Recurrence to 16, asymptotic series (DLMF 5.11.2), reflection (DLMF 5.5.4); in long double, because the zeros cancel
double digamma(double given) {
    if (std::isnan(given) || given == -INFINITY) return NAN;
    if (given == 0) return std::copysign(INFINITY, -given);
    if (given == INFINITY) return given;
    if (given < 0 && given == std::floor(given)) return NAN;
    constexpr long double pi = 3.14159265358979323846264338327950288L;
    long double x = given < 0 ? 1 - static_cast<long double>(given) : given, shift = 0;
    while (x < 16) {
        shift -= 1 / x;
        x += 1;
    }
    const long double z = 1 / (x * x);
    const long double series = z * (1 / 12.0L - z * (1 / 120.0L - z * (1 / 252.0L - z * (1 / 240.0L - z * (1 / 132.0L - z * (691 / 32760.0L
        - z * (1 / 12.0L - z * 3617 / 8160.0L)))))));
    long double value = shift + std::log(x) - 0.5L / x - series;
    if (given < 0) value -= pi / std::tan(pi * std::fmod(static_cast<long double>(given), 1.0L));
    return static_cast<double>(value);
}

double round_even(double x) { return std::nearbyint(x); }

#define FUNCTIONS(F) \
    F(neg, FLOAT, -x) F(abs, FLOAT, std::fabs(x)) F(positive, FLOAT, x) F(square, FLOAT, x * x) F(sqrt, FLOAT, std::sqrt(x)) \
    F(rsqrt, FLOAT, 1 / std::sqrt(x)) F(reciprocal, FLOAT, 1 / x) F(reciprocal_no_nan, FLOAT, x == 0 ? 0 : 1 / x) \
    F(cbrt, FLOAT, std::cbrt(x)) F(exp, FLOAT, std::exp(x)) F(exp2, FLOAT, std::exp2(x)) F(expm1, FLOAT, std::expm1(x)) \
    F(log, FLOAT, std::log(x)) F(log2, FLOAT, std::log2(x)) F(log10, FLOAT, std::log10(x)) F(log1p, FLOAT, std::log1p(x)) \
    F(sin, FLOAT, sin_of(x)) F(cos, FLOAT, cos_of(x)) F(tan, FLOAT, tan_of(x)) \
    F(asin, FLOAT, std::asin(x)) F(acos, FLOAT, std::acos(x)) F(atan, FLOAT, std::atan(x)) \
    F(sinh, FLOAT, std::sinh(x)) F(cosh, FLOAT, std::cosh(x)) F(tanh, FLOAT, std::tanh(x)) \
    F(asinh, FLOAT, std::asinh(x)) F(acosh, FLOAT, std::acosh(x)) F(atanh, FLOAT, std::atanh(x)) \
    F(erf, FLOAT, std::erf(x)) F(erfc, FLOAT, std::erfc(x)) F(erfinv, FLOAT, erfinv(x)) \
    F(i0, FLOAT, bessel(x, 0)) F(i1, FLOAT, bessel(x, 1)) F(lgamma, FLOAT, lgamma_of(x)) F(digamma, FLOAT, digamma(x)) \
    F(sigmoid, FLOAT, x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x))) \
    F(silu, FLOAT, x / (1 + std::exp(-x))) \
    F(gelu, FLOAT, x == -INFINITY ? -0.0 : 0.5 * x * std::erfc(-x * SQRT_HALF)) \
    F(gelu_tanh, FLOAT, x == -INFINITY ? -0.0 : x / (1 + std::exp(-1.5957691216057307559 * (x + 0.044715 * x * x * x)))) \
    F(softplus, FLOAT, x > 20 ? x : softplus_of(x)) F(log_sigmoid, FLOAT, -softplus_of(-x)) \
    F(elu, FLOAT, x > 0 ? x : std::expm1(x)) F(celu, FLOAT, x > 0 ? x : std::expm1(x)) \
    F(selu, FLOAT, SELU_SCALE * (x > 0 ? x : SELU_ALPHA * std::expm1(x))) \
    F(mish, FLOAT, x > 100 ? x : x * (std::exp(x) * (std::exp(x) + 2) / (std::exp(x) * (std::exp(x) + 2) + 2))) \
    F(hardsigmoid, FLOAT, clamp(x / 6 + 0.5, 0, 1)) F(hardswish, FLOAT, x <= -3 ? -0.0 : x * clamp(x / 6 + 0.5, 0, 1)) \
    F(hardtanh, FLOAT, clamp(x, -1, 1)) F(relu, FLOAT, x > 0 ? x : x < 0 ? 0 : x + 0.0) F(relu6, FLOAT, x < 0 ? 0 : x > 6 ? 6 : x + 0.0) \
    F(fmax_zero, FLOAT, x > 0 ? x : 0) F(hardshrink, FLOAT, std::fabs(x) <= 0.5 ? 0 : x) \
    F(softshrink, FLOAT, x > 0.5 ? x - 0.5 : x < -0.5 ? x + 0.5 : std::isnan(x) ? x : 0) \
    F(softsign, FLOAT, std::isinf(x) ? std::copysign(1, x) : x / (1 + std::fabs(x))) F(tanhshrink, FLOAT, tanhshrink(x)) \
    F(threshold, FLOAT, x <= 0 ? 0 : x) F(leaky_relu, FLOAT, x > 0 ? x : x * 0.01) F(lrelu, FLOAT, x > 0 ? x : x * 0.01) \
    F(logit, FLOAT, std::fabs(x - 0.5) < 0.25 ? 2 * std::atanh(2 * x - 1) : std::log(x) - std::log1p(-x)) \
    F(deg2rad, FLOAT, x * (PI / 180)) F(rad2deg, FLOAT, x * (180 / PI)) \
    F(rint, FLOAT, round_even(x)) F(round, FLOAT, round_even(x)) F(floor, FLOAT, std::floor(x)) F(ceil, FLOAT, std::ceil(x)) \
    F(trunc, FLOAT, std::trunc(x)) F(frac, FLOAT, std::isinf(x) ? std::copysign(0, x) : x - std::trunc(x)) \
    F(sign, FLOAT, x > 0 ? 1 : x < 0 ? -1 : x) F(clip, FLOAT, x) F(fclip, FLOAT, x) F(zeros_like, FLOAT, 0 * 1.0) \
    F(ones_like, FLOAT, 1.0) F(full_like, FLOAT, 0.0) \
    F(frexp_significand, FLOAT, (std::isfinite(x) ? std::frexp(x, &scratch) : x)) \
    F(frexp_exponent, INT, (std::isfinite(x) ? (std::frexp(x, &scratch), scratch) : 0)) \
    F(signbit, BOOL, std::signbit(x) && !std::isnan(x)) F(isnan, BOOL, std::isnan(x)) F(isinf, BOOL, std::isinf(x)) \
    F(isfinite, BOOL, std::isfinite(x)) F(isposinf, BOOL, x == INFINITY) F(isneginf, BOOL, x == -INFINITY) \
    F(eqz, BOOL, x == 0) F(nez, BOOL, x != 0) F(gtz, BOOL, x > 0) F(gez, BOOL, x >= 0) F(ltz, BOOL, x < 0) F(lez, BOOL, x <= 0) \
    F(logical_not, BOOL, !(x != 0))

// ---- functions of two numbers --------------------------------------------------------------------------------------------

// Sums of two doubles, of which the second is below half an ulp of the first; products of them are within 2^-104.
struct Pair {
    double high, low;
};

Pair sum(double a, double b) {
    const double total = a + b, back = total - a;
    return {total, (a - (total - back)) + (b - back)};
}

Pair operator+(Pair a, Pair b) {
    const Pair high = sum(a.high, b.high), low = sum(a.low, b.low);
    const Pair first = sum(high.high, high.low + low.high);
    return sum(first.high, first.low + low.low);
}

Pair operator*(Pair a, Pair b) {
    const double product = a.high * b.high;
    return sum(product, std::fma(a.high, b.high, -product) + (a.high * b.low + a.low * b.high));
}

// e^x for -700 < x <= 0: the Taylor series of x / 1024, squared ten times
Pair exp_pair(double x) {
    const Pair r{x / 1024, 0};
    Pair total{1, 0}, term{1, 0};
    for (int k = 1; k < 22; ++k) {
        term = term * r;
        const double quotient = term.high / k;
        const double product = quotient * k;
        const double rest = (term.high - product) - std::fma(quotient, static_cast<double>(k), -product) + term.low;
        term = sum(quotient, rest / k);
        total = total + term;
    }
    for (int k = 0; k < 10; ++k) total = total * total;
    return total;
}

double logaddexp(double a, double b) {
    if (std::isnan(a) || std::isnan(b)) return NAN;
    if (a == b) return a + 0.69314718055994530942;
    const double larger = a > b ? a : b, smaller = a > b ? b : a;
    if (std::isinf(larger) || std::isinf(smaller)) return larger + 0.0;
    const double value = larger + std::log1p(std::exp(smaller - larger));
    if (std::fabs(value) > 0.01 || larger >= 0 || smaller < -100) return value;
    // log(1 + (e^a + e^b - 1)), where the sum cancels
    const Pair rest = exp_pair(larger) + exp_pair(smaller) + Pair{-1, 0};
    return std::log1p(rest.high) + rest.low;
}

double power_of_two_times(double x, double y) {
    if (std::isinf(y)) return x * (y > 0 ? INFINITY : 0.0);
    if (std::isnan(y)) return y;
    const double limited = clamp(y, -5000, 5000), whole = std::nearbyint(limited);
    return std::ldexp(x * std::exp2(limited - whole), static_cast<int>(whole));
}

// Python's %: the remainder of the floored quotient, which has the sign of y; exact before it is rounded to f32
double floored(double x, double y) {
    const double rest = std::fmod(x, y);
    if (rest == 0) return std::copysign(0.0, y);
    return std::isfinite(rest) && (rest < 0) != (y < 0) ? rest + y : rest;
}

// With the exponent below which an ulp does not shrink: logaddexp's terms cancel near 0.
#define PAIRS(F) \
    F(pow, -126, std::pow(x, y)) F(ldexp, -126, power_of_two_times(x, y)) F(atan2, -126, std::atan2(x, y)) \
    F(hypot, -126, std::hypot(x, y)) F(fmod, -126, std::fmod(x, y)) F(remainder, -126, floored(x, y)) \
    F(logaddexp, -24, logaddexp(x, y))

#define FUNCTION(name, kind, value) \
    double of_##name([[maybe_unused]] double x) { \
        [[maybe_unused]] int scratch; \
        return value; \
    }
#define PAIR(name, smallest, value) \
    double of_##name(double x, double y) { return value; }
FUNCTIONS(FUNCTION)
PAIRS(PAIR)

// The smallest exponent whose ulp errors count in: of the op table's `scale`, for functions whose terms cancel.
template <double (*F)(double)>
int64_t smallest_exponent(double) {
    return -126;
}
template <>
int64_t smallest_exponent<of_hardsigmoid>(double) {
    return -1;
}
template <>
int64_t smallest_exponent<of_hardswish>(double x) {
    return std::fabs(x) < 3 && std::fabs(x) > 0x1p-126 ? exponent_of(x) : -126;
}
template <double (*F)(double)>
constexpr bool CANCELS = F == of_hardsigmoid || F == of_hardswish;

// ---- loops -----------------------------------------------------------------------------------------------------------------

constexpr int BLOCK = 1024;

// A block of f32 results whose exact values are ordinary: without branches, so that the compiler vectorises it. False if one is not.
inline bool compare_ordinary(const float* got, const double* exact, double& largest, int64_t& misrounded) {
    uint64_t special = 0, worst = 0;  // errors are not negative, so their bits are in their order
    int64_t other = 0;
    for (int i = 0; i < BLOCK; ++i) {
        const uint64_t exponent = (double_to_bits(exact[i]) >> 52) & 0x7ff;
        const double value = got[i];
        special |= (exponent - (1023 - 126) >= 252) | !(std::fabs(value) <= static_cast<double>(FLT_MAX)) | (value == 0);
        const uint64_t error = double_to_bits(std::fabs(value - exact[i]) * bits_to_double((2046 + 23 - exponent) << 52));
        worst = error > worst ? error : worst;
        other += static_cast<float>(exact[i]) != got[i];
    }
    largest = bits_to_double(worst);
    misrounded = other;
    return special == 0;
}

template <double (*F)(double), Result KIND>
void every(uint32_t start, uint32_t step, int64_t count, const void* got, Report& report) {
    double exact[BLOCK];
    for (int64_t block = 0; block < count; block += BLOCK) {
        const int64_t size = count - block < BLOCK ? count - block : BLOCK;
        const uint32_t first = start + static_cast<uint32_t>(block) * step;
        for (int64_t i = 0; i < size; ++i) exact[i] = F(bits_to_float(first + static_cast<uint32_t>(i) * step));
        if (KIND == FLOAT && !CANCELS<F> && size == BLOCK) {
            double largest;
            int64_t misrounded;
            if (compare_ordinary(static_cast<const float*>(got) + block, exact, largest, misrounded) && largest <= report.worst) {
                report.misrounded += static_cast<uint64_t>(misrounded);
                continue;
            }
        }
        for (int64_t i = 0; i < size; ++i) {
            const uint32_t at = first + static_cast<uint32_t>(i) * step;
            compare_any(KIND, got, block + i, exact[i], at, report, smallest_exponent<F>(bits_to_float(at)));
        }
    }
}

template <double (*F)(double, double), int SMALLEST>
void listed(const float* x, const float* y, int64_t count, const float* got, uint64_t first, Report& report) {
    for (int64_t i = 0; i < count; ++i) compare(got[i], F(x[i], y[i]), first + static_cast<uint64_t>(i), report, SMALLEST);
}

struct Unary {
    const char* name;
    Result kind;
    double (*value)(double);
    int64_t (*smallest)(double);
    void (*sweep)(uint32_t, uint32_t, int64_t, const void*, Report&);
};
struct Binary {
    const char* name;
    double (*value)(double, double);
    void (*sweep)(const float*, const float*, int64_t, const float*, uint64_t, Report&);
};

#define ROW(name, kind, value) {#name, kind, of_##name, smallest_exponent<of_##name>, every<of_##name, kind>},
#define PAIR_ROW(name, smallest, value) {#name, of_##name, listed<of_##name, smallest>},
const Unary UNARY[] = {FUNCTIONS(ROW)};
const Binary BINARY[] = {PAIRS(PAIR_ROW)};

template <class Row, int COUNT>
int find(const Row (&rows)[COUNT], const char* name) {
    for (int i = 0; i < COUNT; ++i)
        if (std::strcmp(rows[i].name, name) == 0) return i;
    return -1;
}

}  // namespace

extern "C" {

// The number of a function, -1 if there is none of the name.
int find_unary(const char* name) { return find(UNARY, name); }
int find_binary(const char* name) { return find(BINARY, name); }
int result_kind(int function) { return UNARY[function].kind; }

// Compare results for the inputs with the bits start, start + step, ...; adds to the report.
void sweep_unary(int function, uint32_t start, uint32_t step, int64_t count, const void* got, Report* report) {
    UNARY[function].sweep(start, step, count, got, *report);
}

// Compare results for listed inputs; adds to the report.
void sweep_listed(int function, const float* x, int64_t count, const void* got, Report* report) {
    const Unary& row = UNARY[function];
    for (int64_t i = 0; i < count; ++i) compare_any(row.kind, got, i, row.value(x[i]), static_cast<uint64_t>(i), *report, row.smallest(x[i]));
}

// Compare results for listed pairs, of which the first has the number `first`; adds to the report.
void sweep_binary(int function, const float* x, const float* y, int64_t count, const float* got, uint64_t first, Report* report) {
    BINARY[function].sweep(x, y, count, got, first, *report);
}

void evaluate_unary(int function, const double* x, int64_t count, double* out) {
    for (int64_t i = 0; i < count; ++i) out[i] = UNARY[function].value(x[i]);
}

void evaluate_binary(int function, const double* x, const double* y, int64_t count, double* out) {
    for (int64_t i = 0; i < count; ++i) out[i] = BINARY[function].value(x[i], y[i]);
}
}
