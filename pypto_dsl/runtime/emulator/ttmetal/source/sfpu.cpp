// SFPU calls: lane functions over slots of DST, each under its own init; a 16-bit DST keeps what the routine's store keeps.
#include <cmath>

#include "ttemu/core.h"

namespace ttemu {
namespace {

void need_init(const char* call, const char* init, Where w) {
    need_math(call, w);
    if (strcmp(core->sfpu_name, init) != 0) trap("no-init", w, "%s needs its own init; the last SFPU init was %s", call, core->sfpu_name);
}
void need_width(const Sfpu& op, Where w) {
    if ((op.in == INTEGER || op.out == INTEGER) && !core->program->fp32_dest) trap("format", w, "%s on integers needs a 32-bit DST", op.call);
}
float keep(const Sfpu& op, uint32_t bits) { return op.out == INTEGER ? from_bits(bits) : stored(from_bits(bits), op.round); }
void finish(Slot& s, Kind kind) {
    s.written = true;
    s.reduced = false;
    s.kind = kind;
}
}  // namespace

void sfpu_init(const char* init, Where w) {
    need_startup(init, w);
    core->sfpu_name = init;
}

void sfpu_fill(const Sfpu& op, uint32_t d, uint32_t bits, Where w) {
    need_init(op.call, op.init, w);
    Slot& s = dst_slot(op.call, d, w);
    for (float& lane : s.lane) lane = keep(op, bits);
    finish(s, op.out);
}

void sfpu_unary(const Sfpu& op, UnaryLane f, uint32_t d, uint32_t parameter, Where w) {
    need_init(op.call, op.init, w);
    need_width(op, w);
    Slot& s = dst_filled(op.call, d, op.in, w);
    for (float& lane : s.lane) lane = keep(op, f(to_bits(lane), parameter));
    finish(s, op.out);
}

void sfpu_binary(const Sfpu& op, BinaryLane f, uint32_t left, uint32_t right, uint32_t out, Where w) {
    need_init(op.call, op.init, w);
    need_width(op, w);
    const Slot &a = dst_filled(op.call, left, op.in, w), &b = dst_filled(op.call, right, op.in, w);
    Slot& o = dst_slot(op.call, out, w);
    for (int i = 0; i < kTile; ++i) o.lane[i] = keep(op, f(to_bits(a.lane[i]), to_bits(b.lane[i])));
    finish(o, op.out);
}

void sfpu_copy(const char* call, const char* init, uint32_t from, uint32_t to, Where w) {
    need_init(call, init, w);
    const Slot& source = dst_slot(call, from, w);
    Slot& s = dst_slot(call, to, w);
    dst_filled(call, from, source.kind, w);
    memcpy(s.lane, source.lane, sizeof s.lane);
    finish(s, source.kind);
}

void unmodelled(const char* what, Where w) { trap("unmodelled", w, "%s", what); }

void sfpu_where(const Sfpu& op, uint32_t condition, uint32_t yes, uint32_t no, uint32_t out, Where w) {
    need_init(op.call, op.init, w);
    need_width(op, w);
    const Slot &c = dst_filled(op.call, condition, op.in, w), &y = dst_filled(op.call, yes, op.in, w), &n = dst_filled(op.call, no, op.in, w);
    Slot& o = dst_slot(op.call, out, w);
    for (int i = 0; i < kTile; ++i) {
        const bool taken = op.in == INTEGER ? to_bits(c.lane[i]) != 0 : c.lane[i] != 0;
        o.lane[i] = keep(op, to_bits(taken ? y.lane[i] : n.lane[i]));
    }
    finish(o, op.out);
}

// One f32 tile along rows (result in column 0) or columns (result in row 0), by halving; the other lanes are undefined.
void sfpu_reduce(int pool, int dim, const char* init, uint32_t d, Where w) {
    const char* call = "sfpu_reduce";
    need_init(call, init, w);
    if (!core->program->fp32_dest) trap("format", w, "sfpu_reduce on Float32 needs a 32-bit DST");
    Slot& s = dst_filled(call, d, FLOATING, w);
    const int along = dim == DIM_ROW ? 1 : 32, across = dim == DIM_ROW ? 32 : 1;
    for (int line = 0; line < 32; ++line) {
        float* lane = s.lane + across * line;
        for (int half = 16; half; half /= 2)
            for (int j = 0; j < half; ++j) {
                const float x = lane[along * j], y = lane[along * (j + half)];
                const bool first = std::isnan(x) || x > y || (x == y && !std::signbit(x));  // -0 is less than +0
                lane[along * j] = pool == POOL_SUM ? x + y : first ? x : y;
            }
        for (int j = 1; j < 32; ++j) lane[along * j] = NAN;
    }
}
}  // namespace ttemu
