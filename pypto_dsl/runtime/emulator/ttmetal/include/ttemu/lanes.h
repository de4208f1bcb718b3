// What each SFPU routine computes for one 32-bit lane of DST. Functional, not bit exact: libm's values, rounded once.
#pragma once
#include <cstdint>

namespace ttemu::lanes {
using u = uint32_t;
// f32 -> f32; `p` is the call's scalar argument as f32 bits (an integer count for power_iterative), unused by most.
u abs(u x, u p), exp(u x, u p), exp2(u x, u p), expm1(u x, u p), log(u x, u p), sqrt(u x, u p), rsqrt(u x, u p), recip(u x, u p);
u silu(u x, u p), sigmoid(u x, u p), tanh(u x, u p), gelu(u x, u p), square(u x, u p), negative(u x, u p);
u sin(u x, u p), cos(u x, u p), tan(u x, u p), asin(u x, u p), acos(u x, u p), atan(u x, u p);
u sinh(u x, u p), cosh(u x, u p), asinh(u x, u p), acosh(u x, u p), atanh(u x, u p);
u erf(u x, u p), erfc(u x, u p), log1p(u x, u p), log2(u x, u p), log_scaled(u x, u p), cbrt(u x, u p), rint(u x, u p);
u relu(u x, u p), floor(u x, u p), ceil(u x, u p), trunc(u x, u p), sign(u x, u p);
u add_scalar(u x, u p), sub_scalar(u x, u p), mul_scalar(u x, u p), div_scalar(u x, u p), rsub_scalar(u x, u p);
u power(u x, u p), power_iterative(u x, u p), max_scalar(u x, u p), min_scalar(u x, u p);
u eqz(u x, u p), nez(u x, u p), gtz(u x, u p), gez(u x, u p), ltz(u x, u p), lez(u x, u p);
// f32, f32 -> f32
u atan2(u x, u y);
u add(u x, u y), sub(u x, u y), mul(u x, u y), div(u x, u y), rsub(u x, u y), pow(u x, u y), max(u x, u y), min(u x, u y);
u eq(u x, u y), ne(u x, u y), lt(u x, u y), le(u x, u y), gt(u x, u y), ge(u x, u y);
// i32, i32 -> i32; wraps
u eq_int(u x, u y), ne_int(u x, u y), lt_int(u x, u y), le_int(u x, u y), gt_int(u x, u y), ge_int(u x, u y);  // 1 or 0
u and_int(u x, u y), or_int(u x, u y), xor_int(u x, u y), left_shift_int(u x, u y), right_shift_int(u x, u y), gcd_int(u x, u y);
u add_int(u x, u y), sub_int(u x, u y), mul_int(u x, u y), max_int(u x, u y), min_int(u x, u y);
// between the two
u int_to_float(u x, u p), int_to_bf16(u x, u p), float_to_int(u x, u p), round_bf16(u x, u p);
}  // namespace ttemu::lanes
