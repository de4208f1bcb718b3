// Reductions over lanes and repeats, Brcb (eight elements to eight blocks) and Gather.
#pragma once
#include "vector.h"

namespace AscendC {
template <class T>
int64_t ReduceScratch(int64_t count, bool with_index) {  // elements: one result per repeat, whole blocks
    const int64_t per_block = 32 / sizeof(T), partial = (count + emu::lanes_per_repeat<T>() - 1) /
                                                        emu::lanes_per_repeat<T>() * (with_index ? 2 : 1);
    return (partial + per_block - 1) / per_block * per_block;
}
}  // namespace AscendC
namespace emu {
template <class T> Lane<T> tree(Lanes<T> a, int64_t first, int64_t n, int kind) {  // kind 0 sum, 1 max, 2 min
    if (n == 1) return lane(a.value[first]);
    const auto x = tree(a, first, n / 2, kind), y = tree(a, first + n / 2, n - n / 2, kind);
    return kind == 0 ? x + y : kind == 1 ? larger(x, y) : smaller(x, y);
}
template <class T>
void reduce(const Op& op, const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<T>& tmp, int64_t n,
            int kind, bool index) {
    op.in_space(dst, "dst", UB), op.in_space(src, "src", UB);
    if (n < 1) trap(op.at, "count %ld", static_cast<long>(n));
    const int64_t scratch = AscendC::ReduceScratch<T>(n, index);
    op.overlap(tmp, scratch, src, n, "src", false);
    const auto a = op.reads(src, "src", n);
    for (int64_t i = 0; i < n; ++i) op.must_be_defined(a.defined(i), "src", i, core->buffers[src.buffer]);
    op.writes(tmp, "sharedTmpBuffer", scratch);
    const auto r = tree(a, 0, n, kind);
    const auto d = op.writes(dst, "dst", index ? 2 : 1);
    if (index) {
        int64_t k = 0;
        while (k < n - 1 && !(lane(a.value[k]) == r || lane(a.value[k]) != lane(a.value[k]))) ++k;
        T bits;
        memset(&bits, 0, sizeof bits);
        memcpy(&bits, &k, sizeof bits < 4 ? sizeof bits : 4);
        d.set(1, bits, true);
    }
    d.set(0, element<T>(r), true);
}
template <class T>
void whole_reduce(const Op& op, const LocalTensor<T>& dst, const LocalTensor<T>& src, int64_t mask, int64_t repeats,
                  int dst_rep, int src_blk, int src_rep, int kind) {
    constexpr int64_t PER_BLOCK = 32 / sizeof(T);
    op.in_space(dst, "dst", UB), op.in_space(src, "src", UB);
    check_repeat(op, mask, lanes_per_repeat<T>(), repeats);
    check_stride(op, src_blk, "srcBlkStride"), check_stride(op, src_rep, "srcRepStride");
    const int64_t last = (mask - 1) / PER_BLOCK;
    const Buffer& b =
        op.operand(src, "src", ((repeats - 1) * src_rep + last * src_blk) * PER_BLOCK + (mask - last * PER_BLOCK));
    for (int64_t r = 0; r < repeats; ++r)
        for (int64_t k = 0; k <= last; ++k)
            op.blocks(UB, b, "src", src.offset + (r * src_rep + k * src_blk) * 32,
                      k == last ? (mask - last * PER_BLOCK) * sizeof(T) : 32, false);
    const auto a = op.lanes(src);
    Lane<T> line[128], result[255];
    for (int64_t r = 0; r < repeats; ++r) {
        for (int64_t i = 0; i < mask; ++i) {
            const int64_t k = (r * src_rep + i / PER_BLOCK * src_blk) * PER_BLOCK + i % PER_BLOCK;
            op.must_be_defined(a.defined(k), "src", k, b);
            line[i] = lane(a.value[k]);
        }
        for (int64_t n = mask; n > 1; n = (n + 1) / 2)
            for (int64_t i = 0; i < n / 2; ++i) {
                const auto x = line[2 * i], y = line[2 * i + 1];
                line[i] = kind == 0 ? x + y : kind == 1 ? larger(x, y) : smaller(x, y);
                if (i == n / 2 - 1 && n % 2) line[i + 1] = line[n - 1];
            }
        result[r] = line[0];
    }
    const auto d = op.writes(dst, "dst", (repeats - 1) * dst_rep + 1, sizeof(T));
    for (int64_t r = 0; r < repeats; ++r) d.set(r * dst_rep, element<T>(result[r]), true);
}
}  // namespace emu
namespace AscendC {
template <class T>
void ReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<T>& tmp, const int32_t count,
               EMU_WHERE) {
    EMU_DTYPE(ReduceSum, T, H | F, H | F | I32 | U32 | I64 | U64);
    emu::reduce(emu::Op("ReduceSum", w, emu::V), dst, src, tmp, count, 0, false);
}
template <class T>
void ReduceMax(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<T>& tmp, const int32_t count,
               bool calIndex = false, EMU_WHERE) {
    EMU_DTYPE(ReduceMax, T, H | F, H | F | I16 | U16 | I32 | U32 | I64 | U64);
    emu::reduce(emu::Op("ReduceMax", w, emu::V), dst, src, tmp, count, 1, calIndex);
}
template <class T>
void ReduceMin(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<T>& tmp, const int32_t count,
               bool calIndex = false, EMU_WHERE) {
    EMU_DTYPE(ReduceMin, T, H | F, H | F | I16 | U16 | I32 | U32 | I64 | U64);
    emu::reduce(emu::Op("ReduceMin", w, emu::V), dst, src, tmp, count, 2, calIndex);
}
template <class T>
void WholeReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src, const int32_t mask, const int64_t repeatTimes,
                    const int32_t dstRepStride, const int32_t srcBlkStride, const int32_t srcRepStride, EMU_WHERE) {
    EMU_DTYPE(WholeReduceSum, T, H | F, H | F | I32 | U32);
    emu::whole_reduce(emu::Op("WholeReduceSum", w, emu::V), dst, src, mask, repeatTimes, dstRepStride, srcBlkStride,
                      srcRepStride, 0);
}
template <class T>
void WholeReduceMax(const LocalTensor<T>& dst, const LocalTensor<T>& src, const int32_t mask, const int64_t repeatTimes,
                    const int32_t dstRepStride, const int32_t srcBlkStride, const int32_t srcRepStride,
                    ReduceOrder order, EMU_WHERE) {
    EMU_DTYPE(WholeReduceMax, T, H | F, H | F | I16 | U16 | I32 | U32);
    const emu::Op op("WholeReduceMax", w, emu::V);
    if (order != ReduceOrder::ORDER_ONLY_VALUE) emu::trap(op.at, "only ORDER_ONLY_VALUE is modelled");
    emu::whole_reduce(op, dst, src, mask, repeatTimes, dstRepStride, srcBlkStride, srcRepStride, 1);
}
template <class T>
void WholeReduceMin(const LocalTensor<T>& dst, const LocalTensor<T>& src, const int32_t mask, const int64_t repeatTimes,
                    const int32_t dstRepStride, const int32_t srcBlkStride, const int32_t srcRepStride,
                    ReduceOrder order, EMU_WHERE) {
    EMU_DTYPE(WholeReduceMin, T, H | F, H | F | I16 | U16 | I32 | U32);
    const emu::Op op("WholeReduceMin", w, emu::V);
    if (order != ReduceOrder::ORDER_ONLY_VALUE) emu::trap(op.at, "only ORDER_ONLY_VALUE is modelled");
    emu::whole_reduce(op, dst, src, mask, repeatTimes, dstRepStride, srcBlkStride, srcRepStride, 2);
}

// ---- Brcb: eight elements become eight blocks of 32 bytes -----------------------------------------------------------
template <class T>
void Brcb(const LocalTensor<T>& dst, const LocalTensor<T>& src, const int64_t repeatTimes, const BrcbRepeatParams& p,
          EMU_WHERE) {
    static_assert(sizeof(T) == 2 || sizeof(T) == 4, "Brcb: 16 or 32 bit elements");
    constexpr int64_t PER_BLOCK = 32 / sizeof(T);
    const emu::Op op("Brcb", w, emu::V);
    op.in_space(dst, "dst", emu::UB), op.in_space(src, "src", emu::UB);
    emu::check_repeat(op, 1, 1, repeatTimes);
    op.overlap(dst, repeatTimes * 8 * PER_BLOCK, src, repeatTimes * 8, "src", false);
    const auto a = op.reads(src, "src", repeatTimes * 8);
    const emu::Buffer& b =
        op.operand(dst, "dst", ((repeatTimes - 1) * p.dstRepStride + 7 * p.dstBlkStride + 1) * PER_BLOCK);
    const auto d = op.lanes(dst);
    for (int64_t i = 0; i < repeatTimes * 8; ++i) {
        const int64_t to = i / 8 * p.dstRepStride + i % 8 * p.dstBlkStride;
        op.blocks(emu::UB, b, "dst", dst.offset + to * 32, 32, true);
        for (int64_t k = 0; k < PER_BLOCK; ++k) d.set(to * PER_BLOCK + k, a.value[i], a.defined(i));
    }
}
template <class T>
void Gather(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint32_t>& byteOffsets,
            const uint32_t base, const uint32_t count, EMU_WHERE) {
    static_assert(sizeof(T) == 2 || sizeof(T) == 4, "Gather: 16 or 32 bit elements");
    const emu::Op op("Gather", w, emu::V);
    const auto o = op.reads(byteOffsets, "srcOffset", count);
    const auto a = op.reads(src, "src", src.length);
    op.overlap(dst, count, src, src.length, "src", false);
    const auto d = op.writes(dst, "dst", count);
    for (uint32_t i = 0; i < count; ++i) {
        op.must_be_defined(o.defined(i), "srcOffset", i, emu::core->buffers[byteOffsets.buffer]);
        const uint64_t at = static_cast<uint64_t>(base) + o.value[i];
        if (at % sizeof(T) || at / sizeof(T) >= src.length)
            emu::trap(op.at, "byte offset %llu at element %u is outside or not aligned", (unsigned long long)at, i);
        d.set(i, a.value[at / sizeof(T)], a.defined(at / sizeof(T)));
    }
}
}  // namespace AscendC
