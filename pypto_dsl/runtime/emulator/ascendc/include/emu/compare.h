// Compare and Select: masks of one bit per lane, and the choice between two operands by such a mask.
#pragma once
#include "vector.h"

namespace AscendC {
#define EMU_COMPARED(mode, a, b)    \
    (mode == CMPMODE::LT   ? a < b  \
     : mode == CMPMODE::GT ? a > b  \
     : mode == CMPMODE::EQ ? a == b \
     : mode == CMPMODE::LE ? a <= b \
     : mode == CMPMODE::GE ? a >= b \
                           : a != b)
template <class T>
void Compare(const LocalTensor<uint8_t>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1, CMPMODE mode,
             uint32_t count, EMU_WHERE) {
    EMU_DTYPE(Compare, T, H | F | I32, H | F | B | INTS);
    const emu::Op op("Compare", w, emu::V);
    if (emu::ARCH == 2201 && std::is_same_v<T, int32_t> && mode != CMPMODE::EQ)
        emu::trap(op.at, "int32 compares with EQ only on 2201");
    if (count == 0 || count * sizeof(T) % 256)
        emu::trap(op.at, "%zu B is no multiple of 256 B: the rest would be skipped", count * sizeof(T));
    const auto a = op.reads(src0, "src0", count), b = op.reads(src1, "src1", count);
    const auto d = op.writes(dst, "dst", count / 8);
    for (uint32_t i = 0; i < count; ++i) {
        const uint8_t bit = static_cast<uint8_t>(1u << (i % 8)), keep = static_cast<uint8_t>(~bit);
        const auto x = emu::lane(a.value[i]), y = emu::lane(b.value[i]);
        d.value[i / 8] = static_cast<uint8_t>((d.value[i / 8] & keep) | (EMU_COMPARED(mode, x, y) ? bit : 0));
        d.shadow[i / 8] = static_cast<uint8_t>((d.shadow[i / 8] & keep) | (a.defined(i) && b.defined(i) ? bit : 0));
    }
}
template <class T>
void CompareScalar(const LocalTensor<uint8_t>& dst, const LocalTensor<T>& src0, const std::common_type_t<T>& scalar,
                   CMPMODE mode, uint32_t count, EMU_WHERE) {
    EMU_DTYPE(CompareScalar, T, H | F | I32, H | F | B | INTS);
    const emu::Op op("CompareScalar", w, emu::V);
    if (emu::ARCH == 2201 && std::is_same_v<T, int32_t> && mode != CMPMODE::EQ)
        emu::trap(op.at, "int32 compares with EQ only on 2201");
    if (count == 0 || count * sizeof(T) % 256)
        emu::trap(op.at, "%zu B is no multiple of 256 B: the rest would be skipped", count * sizeof(T));
    const auto a = op.reads(src0, "src0", count);
    const auto d = op.writes(dst, "dst", count / 8);
    const auto y = emu::lane(scalar);
    for (uint32_t i = 0; i < count; ++i) {
        const uint8_t bit = static_cast<uint8_t>(1u << (i % 8)), keep = static_cast<uint8_t>(~bit);
        const auto x = emu::lane(a.value[i]);
        d.value[i / 8] = static_cast<uint8_t>((d.value[i / 8] & keep) | (EMU_COMPARED(mode, x, y) ? bit : 0));
        d.shadow[i / 8] = static_cast<uint8_t>((d.shadow[i / 8] & keep) | (a.defined(i) ? bit : 0));
    }
}
}  // namespace AscendC
namespace emu {
inline void select_needs_room(const Op& op, AscendC::SELMODE mode) {
    if (ARCH == 2201 && mode != AscendC::SELMODE::VSEL_CMPMASK_SPR && capacity_of(UB) - memory(UB).used < 8192)
        trap(op.at, "this mode needs 8192 B of UB left free, %u B are", capacity_of(UB) - memory(UB).used);
}
template <class T, class Other>
void select(const Op& op, const LocalTensor<T>& dst, const LocalTensor<uint8_t>& mask, const LocalTensor<T>& s0,
            Other other, int64_t n) {
    op.overlap(dst, n, s0, n, "src0", true);
    const auto m = op.reads(mask, "selMask", (n + 7) / 8);
    const auto a = op.reads(s0, "src0", n);
    const auto d = op.writes(dst, "dst", n);
    for (int64_t i = 0; i < n; ++i) {
        const bool take = m.value[i / 8] >> (i % 8) & 1, known = m.shadow[i / 8] >> (i % 8) & 1;
        bool ok = a.defined(i);
        T v = a.value[i];
        if (!take) v = other(i, ok);
        d.set(i, v, ok && known);
    }
}
}  // namespace emu
namespace AscendC {
template <class T>
void Select(const LocalTensor<T>& dst, const LocalTensor<uint8_t>& selMask, const LocalTensor<T>& src0,
            const LocalTensor<T>& src1, SELMODE mode, uint32_t count, EMU_WHERE) {
    EMU_DTYPE(Select, T, H | F, H | F | B | INTS);
    const emu::Op op("Select", w, emu::V);
    if (mode == SELMODE::VSEL_TENSOR_SCALAR_MODE) emu::trap(op.at, "VSEL_TENSOR_SCALAR_MODE takes a scalar src1");
    emu::select_needs_room(op, mode);
    op.overlap(dst, count, src1, count, "src1", true);
    const auto b = op.reads(src1, "src1", count);
    emu::select(
        op, dst, selMask, src0,
        [&](int64_t i, bool& ok) {
            ok = b.defined(i);
            return b.value[i];
        },
        count);
}
template <class T>
void Select(const LocalTensor<T>& dst, const LocalTensor<uint8_t>& selMask, const LocalTensor<T>& src0,
            std::common_type_t<T> src1, SELMODE mode, uint32_t count, EMU_WHERE) {
    EMU_DTYPE(Select, T, H | F, H | F | B | INTS);
    const emu::Op op("Select", w, emu::V);
    if (mode != SELMODE::VSEL_TENSOR_SCALAR_MODE) emu::trap(op.at, "a scalar src1 needs VSEL_TENSOR_SCALAR_MODE");
    emu::select_needs_room(op, mode);
    emu::select(
        op, dst, selMask, src0,
        [&](int64_t, bool& ok) {
            ok = true;
            return src1;
        },
        count);
}
}  // namespace AscendC
