// Tile formats of the device: bytes of a page in face order to and from row-major lanes, and the roundings on the way.
#include <algorithm>
#include <cmath>

#include "ttemu/core.h"

namespace ttemu {
namespace {

struct FormatRow { int format; const char* name; uint32_t bytes; };
constexpr FormatRow kFormats[] = {{F32, "f32", 4096}, {BF16, "bf16", 2048}, {BFP8, "bfp8_b", 1088}, {BFP4, "bfp4_b", 576}, {I32, "i32", 4096}, {U32, "u32", 4096}};
constexpr int kBlock = 16, kBlocks = kTile / kBlock;  // elements that share an exponent

const FormatRow* row(int format) {
    for (const FormatRow& r : kFormats) if (r.format == format) return &r;
    return nullptr;
}

// i-th lane in memory order (face by face, each face row-major) -> row-major index
int lane_in_faces(int i) {
    const int face = i >> 8, r = (i >> 4) & 15, c = i & 15;
    return ((face >> 1) * 16 + r) * 32 + (face & 1) * 16 + c;
}

// Block floats: 64 shared exponents, then sign and magnitude of each element; bfp4 packs two to a byte, low nibble first.
void decode_block(int magnitude_bits, const uint8_t* page, float* lane) {
    for (int i = 0; i < kTile; ++i) {
        const uint8_t exponent = page[i / kBlock], byte = page[kBlocks + (magnitude_bits == 7 ? i : i / 2)];
        const uint8_t m = magnitude_bits == 7 ? byte : (byte >> (4 * (i & 1))) & 15;
        const uint8_t sign = 1u << magnitude_bits;
        const float v = exponent == 255 ? NAN : std::ldexp((float)(m & (sign - 1)), exponent - 126 - magnitude_bits);
        lane[lane_in_faces(i)] = m & sign ? -v : v;
    }
}

// As the device packs: ties away from zero (the host converter rounds ties to even, tt-metal#17237).
void encode_block(int magnitude_bits, const float* lane, uint8_t* page) {
    const uint32_t drop = 24 - magnitude_bits, most = (1u << magnitude_bits) - 1, sign = 1u << magnitude_bits;
    if (magnitude_bits == 3) std::fill_n(page + kBlocks, kTile / 2, 0);
    for (int g = 0; g < kBlocks; ++g) {
        uint32_t top = 0;
        for (int k = 0; k < kBlock; ++k) top = std::max(top, (to_bits(lane[lane_in_faces(kBlock * g + k)]) >> 23) & 255);
        page[g] = (uint8_t)top;
        for (int k = 0; k < kBlock; ++k) {
            const int i = kBlock * g + k;
            const uint32_t bits = to_bits(lane[lane_in_faces(i)]), exponent = (bits >> 23) & 255;
            const uint32_t significand = (bits & 0x7fffffff) == 0 ? 0 : ((bits & 0x7fffff) | 0x800000) >> std::min(top - exponent, 31u);
            const uint32_t q = std::min((significand + (1u << (drop - 1))) >> drop, most);
            const uint32_t code = q | (q && bits >> 31 ? sign : 0);
            if (magnitude_bits == 7) page[kBlocks + i] = (uint8_t)code;
            else page[kBlocks + i / 2] = (uint8_t)(page[kBlocks + i / 2] | code << (4 * (i & 1)));
        }
    }
}
}  // namespace

const char* format_name(int format) { const FormatRow* r = row(format); return r ? r->name : "nothing"; }
uint32_t format_bytes(int format) { const FormatRow* r = row(format); return r ? r->bytes : 0; }

float bf16_nearest(float x) {
    if (std::isnan(x)) return x;
    const uint32_t u = to_bits(x);
    return from_bits((u + 0x7fff + ((u >> 16) & 1)) & 0xffff0000u);
}
float bf16_truncate(float x) { return std::isnan(x) ? x : from_bits(to_bits(x) & 0xffff0000u); }
float tf32_truncate(float x) { return std::isnan(x) ? x : from_bits(to_bits(x) & 0xffffe000u); }

void decode(int format, const uint8_t* page, float* lane) {
    if (format == BFP8) return decode_block(7, page, lane);
    if (format == BFP4) return decode_block(3, page, lane);
    for (int i = 0; i < kTile; ++i) {
        float v;
        if (format == BF16) {
            uint16_t half;
            memcpy(&half, page + 2 * i, 2);
            v = from_bits((uint32_t)half << 16);
        } else {
            memcpy(&v, page + 4 * i, 4);  // f32, and integers as raw bits
        }
        lane[lane_in_faces(i)] = v;
    }
}

void encode(int format, const float* lane, uint8_t* page) {
    if (format == BFP8) return encode_block(7, lane, page);
    if (format == BFP4) return encode_block(3, lane, page);
    for (int i = 0; i < kTile; ++i) {
        const float v = lane[lane_in_faces(i)];
        if (format == BF16) {
            const uint16_t half = std::isnan(v) ? 0x7fc0 : (uint16_t)(to_bits(bf16_nearest(v)) >> 16);
            memcpy(page + 2 * i, &half, 2);
        } else {
            memcpy(page + 4 * i, &v, 4);
        }
    }
}
}  // namespace ttemu
