// The deny list: calls that the vendor's headers declare for every architecture, but that are empty or do not link on 2201.
#pragma once

namespace AscendC {
#define EMU_DENIED(NAME)                                                                     \
    template <class... A> void NAME(const A&...) {                                           \
        static_assert(sizeof...(A) == 999, #NAME ": on the deny list of this architecture"); \
    }
// clang-format off
EMU_DENIED(IsNan) EMU_DENIED(IsInf) EMU_DENIED(Where) EMU_DENIED(Rint) EMU_DENIED(Fma) EMU_DENIED(Clamp)
EMU_DENIED(BitwiseXor) EMU_DENIED(Ands) EMU_DENIED(Ors)
// clang-format on
#undef EMU_DENIED
}  // namespace AscendC
