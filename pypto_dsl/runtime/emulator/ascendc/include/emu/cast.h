// Cast: which pairs of element types convert in which rounding modes, and the conversions themselves.
#pragma once
#include "vector.h"

namespace emu {
using AscendC::RoundMode;
enum : uint32_t { NONE = 1, RINT = 2, FLOOR = 4, CEIL = 8, ROUND = 16, TRUNC = 32, ODD = 64 };
constexpr uint32_t FIVE = RINT | FLOOR | CEIL | ROUND | TRUNC;
// The rounding modes that a pair of types accepts; 0: no such conversion.
template <class D, class A> constexpr uint32_t cast_modes() {
    constexpr uint32_t d = bit_of<D>(), a = bit_of<A>();
    if (a == F) {
        if (d & (F | I32 | I64 | I16 | B)) return FIVE;
        if (d == H) return FIVE | ODD | NONE;
    }
    if (a == H) {
        if (d == F) return NONE;
        if (d & (I32 | I16)) return FIVE;
        if (d & (I8 | U8)) return FIVE | NONE;
    }
    if (a == B) {
        if (d == F) return NONE;
        if (d == I32) return FIVE;
    }
    if ((a & (I8 | U8)) && d == H) return NONE;
    if (a == I16 && d == H) return FIVE | NONE;
    if (a == I16 && d == F) return NONE;
    if (a == I32) {
        if (d == F) return FIVE | NONE;
        if (d & (I16 | I64)) return NONE;
    }
    if (a == I64 && d == I32) return NONE;
    if (a == I64 && d == F) return FIVE;
    if (ARCH == 3510) {
        if (a == H && d == B) return FIVE;
        if (a == B && d == H) return FIVE;
        if (a == I8 && (d & (I16 | I32))) return NONE;
        if (a == U8 && (d & (U16 | U32))) return NONE;
        if (a == I16 && d == I32) return NONE;
        if (a == U16 && d == U32) return NONE;
        if (a == I32 && (d & (U8 | U16))) return NONE;
    }
    return 0;
}
inline double rounded(double x, RoundMode mode) {
    switch (mode) {
        case RoundMode::CAST_FLOOR:
            return std::floor(x);
        case RoundMode::CAST_CEIL:
            return std::ceil(x);
        case RoundMode::CAST_ROUND:
            return std::round(x);
        case RoundMode::CAST_TRUNC:
            return std::trunc(x);
        default:
            return std::nearbyint(x);
    }
}
template <class D, class A> D converted(A a, RoundMode mode) {
    const auto x = lane(a);
    if constexpr ((bit_of<D>() & (H | B)) != 0) {
        D d(static_cast<float>(x));  // nearest even
        const float back = static_cast<float>(d), exact = static_cast<float>(x);
        if (mode != RoundMode::CAST_RINT && mode != RoundMode::CAST_NONE && back == back &&
            back != exact) {  // step towards the asked side
            const bool away = std::fabs(back) > std::fabs(exact), negative = exact < 0;
            const bool want_away = mode == RoundMode::CAST_FLOOR  ? negative
                                   : mode == RoundMode::CAST_CEIL ? !negative
                                                                  : false;
            if (mode == RoundMode::CAST_ROUND) {
                D e = d;
                e.bits = static_cast<uint16_t>(away ? d.bits : d.bits + 1);
                if (!away && std::fabs(static_cast<double>(static_cast<float>(e)) - exact) ==
                                 std::fabs(static_cast<double>(back) - exact))
                    d = e;
            } else if (mode == RoundMode::CAST_ODD) {
                if (away) d.bits--;
                d.bits |= 1;
            } else if (away != want_away) {
                d.bits = static_cast<uint16_t>(away ? d.bits - 1 : d.bits + 1);
            }
        }
        return d;
    } else if constexpr (bit_of<D>() == F) {
        return std::is_same_v<A, float> ? static_cast<float>(rounded(static_cast<double>(x), mode))
                                        : static_cast<float>(x);
    } else if constexpr ((bit_of<A>() & (H | F | B)) != 0) {
        if (x != x) return 0;
        const double r = rounded(static_cast<double>(x), mode),
                     low = std::is_signed_v<D> ? -std::ldexp(1.0, sizeof(D) * 8 - 1) : 0.0,
                     high = std::ldexp(1.0, sizeof(D) * 8 - std::is_signed_v<D>);
        return r >= high  ? static_cast<D>(~(std::is_signed_v<D> ? uint64_t(1) << (sizeof(D) * 8 - 1) : 0))
               : r <= low ? static_cast<D>(low)
                          : static_cast<D>(r);
    } else {
        return static_cast<D>(x);
    }
}
}  // namespace emu

namespace AscendC {
template <class D, class A>
void Cast(const LocalTensor<D>& dst, const LocalTensor<A>& src, const RoundMode& mode, const uint32_t& count,
          EMU_WHERE) {
    constexpr uint32_t modes = emu::cast_modes<D, A>();
    static_assert(modes != 0, "Cast: no conversion between these element types on this architecture; chain two");
    const emu::Op op("Cast", w, emu::V);
    if (!(modes >> static_cast<int>(mode) & 1))
        emu::trap(op.at, "this pair of element types does not accept RoundMode %d", static_cast<int>(mode));
    emu::unary(op, dst, src, count, [mode](A x) { return emu::converted<D>(x, mode); });
}
}  // namespace AscendC
