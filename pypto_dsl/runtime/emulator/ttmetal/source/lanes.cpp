// The lane functions of the SFPU: libm's values for what the vendor's routines approximate.
#include "ttemu/lanes.h"

#include <cmath>

#include "ttemu/core.h"

namespace ttemu::lanes {
namespace {
template <typename F> u on(u x, F f) { return to_bits(f(from_bits(x))); }
template <typename F> u on(u x, u y, F f) { return to_bits(f(from_bits(x), from_bits(y))); }
float flush(float v) { return std::fabs(v) < 0x1p-126f ? 0 * v : v; }  // the routine's exponent arithmetic has no subnormals
// NaN wins, and -0 is less than +0
float larger(float x, float y) { return std::isnan(x) || x > y || (x == y && !std::signbit(x)) ? x : y; }
float smaller(float x, float y) { return std::isnan(x) || x < y || (x == y && std::signbit(x)) ? x : y; }
double logistic(double x) { return 1 / (1 + std::exp(-x)); }  // in double, so that what is made of it is rounded once
float truth(bool b) { return b ? 1.f : 0.f; }
int32_t as_int(u x) { return (int32_t)x; }
}  // namespace

#define UNARY(name, body) u name(u bits, u) { return on(bits, [](float x) -> float { return body; }); }
UNARY(abs, std::fabs(x))
UNARY(exp, std::exp(x))
UNARY(exp2, flush(std::exp2(x)))
UNARY(expm1, std::expm1(x))
UNARY(log, std::log(x))
UNARY(sqrt, std::sqrt(x))
UNARY(rsqrt, 1 / std::sqrt(x))
UNARY(recip, 1 / x)
UNARY(silu, (float)(x * logistic(x)))
UNARY(sigmoid, (float)logistic(x))
UNARY(tanh, std::tanh(x))
UNARY(gelu, x == -INFINITY ? -0.f : (float)(0.5 * x * std::erfc(x * -M_SQRT1_2)))
// in double, so that they are rounded once
#define DOUBLE(name) UNARY(name, (float)std::name((double)x))
DOUBLE(sin)
DOUBLE(cos)
DOUBLE(tan)
DOUBLE(asin)
DOUBLE(acos)
DOUBLE(atan)
DOUBLE(sinh)
DOUBLE(cosh)
DOUBLE(asinh)
DOUBLE(acosh)
DOUBLE(atanh)
DOUBLE(erf)
DOUBLE(erfc)
DOUBLE(log1p)
DOUBLE(log2)
DOUBLE(cbrt)
#undef DOUBLE
UNARY(rint, std::nearbyint(x))
UNARY(square, x * x)
UNARY(negative, -x)
UNARY(relu, larger(x, 0))
UNARY(floor, std::floor(x))
UNARY(ceil, std::ceil(x))
UNARY(trunc, std::trunc(x))
UNARY(sign, x > 0 ? 1.f : x < 0 ? -1.f : 0.f)
UNARY(eqz, truth(x == 0))
UNARY(nez, truth(x != 0))
UNARY(gtz, truth(x > 0))
UNARY(gez, truth(x >= 0))
UNARY(ltz, truth(x < 0))
UNARY(lez, truth(x <= 0))
#undef UNARY

#define BINARY(name, body) u name(u left, u right) { return on(left, right, [](float x, float y) -> float { return body; }); }
BINARY(add, x + y)
BINARY(sub, x - y)
BINARY(mul, x * y)
BINARY(div, x / y)
BINARY(rsub, y - x)
BINARY(pow, std::pow(x, y))
BINARY(atan2, (float)std::atan2((double)x, (double)y))
BINARY(log_scaled, (float)(std::log((double)x) * y))
BINARY(max, larger(x, y))
BINARY(min, smaller(x, y))
BINARY(eq, truth(x == y))
BINARY(ne, truth(x != y))
BINARY(lt, truth(x < y))
BINARY(le, truth(x <= y))
BINARY(gt, truth(x > y))
BINARY(ge, truth(x >= y))
// with a scalar parameter
BINARY(add_scalar, x + y)
BINARY(sub_scalar, x - y)
BINARY(mul_scalar, x * y)
BINARY(div_scalar, x / y)
BINARY(rsub_scalar, y - x)
BINARY(power, std::pow(x, y))
BINARY(max_scalar, larger(x, y))
BINARY(min_scalar, smaller(x, y))
#undef BINARY

u power_iterative(u x, u count) {
    float base = from_bits(x), result = 1;
    for (; count; count >>= 1, base *= base) if (count & 1) result *= base;
    return to_bits(result);
}

u add_int(u x, u y) { return x + y; }
u sub_int(u x, u y) { return x - y; }
u mul_int(u x, u y) { return x * y; }
u max_int(u x, u y) { return as_int(x) > as_int(y) ? x : y; }
u min_int(u x, u y) { return as_int(x) < as_int(y) ? x : y; }
u eq_int(u x, u y) { return x == y; }
u ne_int(u x, u y) { return x != y; }
u lt_int(u x, u y) { return as_int(x) < as_int(y); }
u le_int(u x, u y) { return as_int(x) <= as_int(y); }
u gt_int(u x, u y) { return as_int(x) > as_int(y); }
u ge_int(u x, u y) { return as_int(x) >= as_int(y); }
u and_int(u x, u y) { return x & y; }
u or_int(u x, u y) { return x | y; }
u xor_int(u x, u y) { return x ^ y; }
u left_shift_int(u x, u y) { return y < 32 ? x << y : 0; }
u right_shift_int(u x, u y) { return y < 32 ? (u)(as_int(x) >> y) : 0; }
u gcd_int(u x, u y) {
    for (x = as_int(x) < 0 ? -x : x, y = as_int(y) < 0 ? -y : y; y;) {
        const u rest = x % y;
        x = y, y = rest;
    }
    return x;
}
u int_to_float(u x, u) { return to_bits((float)as_int(x)); }
u int_to_bf16(u x, u) { return to_bits(bf16_nearest((float)as_int(x))); }
u round_bf16(u x, u) { return to_bits(bf16_nearest(from_bits(x))); }
u float_to_int(u x, u) {  // truncates, saturates, NaN gives 0
    const float v = from_bits(x);
    return v >= 0x1p31f ? 0x7fffffffu : v <= -0x1p31f ? 0x80000000u : std::isnan(v) ? 0u : (u)(int32_t)v;
}
}  // namespace ttemu::lanes
