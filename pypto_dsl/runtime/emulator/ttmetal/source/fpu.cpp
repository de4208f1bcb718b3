// Unpacker and FPU: tiles of circular buffers into DST, through SrcA and SrcB or straight, each under its own init and formats.
#include <algorithm>
#include <cmath>

#include "ttemu/core.h"

namespace ttemu {
namespace {

bool direct(uint32_t cb) { return core->program->unpack_to_dest >> cb & 1; }
bool integer(int format) { return format == I32 || format == U32; }

void need_init(Fpu init, const char* call, int bcast, int format_a, int format_b, Where w) {
    if (core->fpu != init || core->fpu_bcast != bcast) trap("no-init", w, "%s needs its own init; the last one was %s", call, core->fpu_name);
    if (core->fpu_format_a != format_a || core->fpu_format_b != format_b)
        trap("init-format", w, "%s on %s, %s after %s for %s, %s", call, format_name(format_a), format_name(format_b), core->fpu_name,
             format_name(core->fpu_format_a), format_name(core->fpu_format_b));
}
void need_format(char side, uint32_t cb, const char* call, Where w) {
    const int have = side == 'A' ? core->format_a : core->format_b, need = get_cb(cb, w).format;
    if (have != need)
        trap("format", w, "%s: Src%c is set for %s, CB %u holds %s (reconfig_data_format missing)", call, side, format_name(have), cb, format_name(need));
}

// What a float becomes in SrcA or SrcB: f32 loses its low bits, to tf32 beside a 32-bit DST and to bf16 beside a 16-bit one.
float to_source(int format, float v) { return format != F32 ? v : core->program->fp32_dest ? tf32_truncate(v) : bf16_truncate(v); }

void load_source(const char* call, uint32_t cb, uint32_t tile, float* lane, Where w) {
    const int format = get_cb(cb, w).format;
    if (direct(cb)) trap("unpack-to-dest", w, "%s reads CB %u through SrcA/B, but the CB is configured UnpackToDestFp32", call, cb);
    if (integer(format)) trap("format", w, "%s reads CB %u of %s: the FPU path is modelled for floats only", call, cb, format_name(format));
    decode(format, page_to_read(call, cb, tile, w), lane);
    for (int i = 0; i < kTile; ++i) lane[i] = to_source(format, lane[i]);
}

// A tile into DST by the copy path: exact for integers and for f32 with UnpackToDestFp32, through SrcA otherwise.
void load_dst(const char* call, uint32_t cb, uint32_t tile, float* lane, Where w) {
    const int format = get_cb(cb, w).format;
    if (integer(format) && !core->program->fp32_dest) trap("format", w, "%s: %s tiles need a 32-bit DST", call, format_name(format));
    decode(format, page_to_read(call, cb, tile, w), lane);
    if (format == F32 && !direct(cb)) for (int i = 0; i < kTile; ++i) lane[i] = to_source(format, lane[i]);
}
Kind kind_of(uint32_t cb, Where w) { return integer(get_cb(cb, w).format) ? INTEGER : FLOATING; }

void broadcast(int kind, float* lane) {
    for (int i = 0; i < kTile; ++i) {
        const int from = kind == ROW ? i & 31 : kind == COL ? i & ~31 : kind == SCALAR ? 0 : i;  // never later than i: in place
        lane[i] = lane[from];
    }
}

float larger(float x, float y) { return std::isnan(x) || x > y || (x == y && !std::signbit(x)) ? x : y; }  // -0 is less than +0
}  // namespace

void fpu_init(Fpu init, const char* name, int bcast, uint32_t a, uint32_t b, Where w) {
    need_startup(name, w);
    core->fpu = init;
    core->fpu_name = name;
    core->fpu_bcast = bcast;
    core->fpu_format_a = get_cb(a, w).format;
    core->fpu_format_b = get_cb(b, w).format;
}

void fpu_copy(uint32_t cb, uint32_t tile, uint32_t d, Where w) {
    const char* call = "copy_tile";
    need_math(call, w);
    const int format = get_cb(cb, w).format;
    need_init(COPY, call, FULL, format, format, w);
    need_format('A', cb, call, w);
    float lane[kTile];
    load_dst(call, cb, tile, lane, w);
    put(dst_slot(call, d, w), lane, NEAREST, kind_of(cb, w));
}

void fpu_unary_bcast(int kind, uint32_t cb, uint32_t tile, uint32_t d, Where w) {
    const char* call = "unary_bcast";
    need_math(call, w);
    const int format = get_cb(cb, w).format;
    need_init(UNARY_BCAST, call, kind, format, format, w);
    need_format(direct(cb) ? 'A' : 'B', cb, call, w);  // SrcB, unless the tile is unpacked straight to DST
    if (kind == ROW && d != 0) trap("row-bcast-dst", w, "unary_bcast<ROW> into DST %u: wrong on the device for any index but 0 (tt-metal#37994)", d);
    float lane[kTile];
    load_dst(call, cb, tile, lane, w);
    broadcast(kind, lane);
    put(dst_slot(call, d, w), lane, NEAREST, kind_of(cb, w));
}

void fpu_binary(Fpu op, const char* call, int kind, uint32_t a, uint32_t b, uint32_t tile_a, uint32_t tile_b, uint32_t d, Where w) {
    need_math(call, w);
    need_init(op, call, kind, get_cb(a, w).format, get_cb(b, w).format, w);
    need_format('A', a, call, w);
    need_format('B', b, call, w);
    float x[kTile], y[kTile];
    load_source(call, a, tile_a, x, w);
    load_source(call, b, tile_b, y, w);
    broadcast(kind, y);
    Slot& s = dst_slot(call, d, w);
    if (op == MUL && s.written) trap("mul-accumulates", w, "%s into DST %u, which holds a value: the FPU product is added to it", call, d);
    for (int i = 0; i < kTile; ++i) x[i] = op == ADD ? x[i] + y[i] : op == SUB ? x[i] - y[i] : x[i] * y[i];
    put(s, x, NEAREST, FLOATING);
}

void fpu_matmul(uint32_t a, uint32_t b, uint32_t tile_a, uint32_t tile_b, uint32_t d, Where w) {
    const char* call = "matmul_tiles";
    need_math(call, w);
    const bool transposed = core->fpu == MATMUL_TRANSPOSED;
    need_init(transposed ? MATMUL_TRANSPOSED : MATMUL, call, FULL, get_cb(b, w).format, get_cb(a, w).format, w);
    need_format('A', b, call, w);  // in0 -> SrcB, in1 -> SrcA
    need_format('B', a, call, w);
    float x[kTile], y[kTile];
    load_source(call, a, tile_a, x, w);
    load_source(call, b, tile_b, y, w);
    if (transposed)
        for (int i = 0; i < 32; ++i) for (int j = 0; j < i; ++j) std::swap(y[32 * i + j], y[32 * j + i]);
    Slot& s = dst_slot(call, d, w);
    if (!s.written) std::fill_n(s.lane, kTile, 0.f);
    for (int i = 0; i < 32; ++i) {
        float row[32] = {0};
        for (int k = 0; k < 32; ++k)
            for (int j = 0; j < 32; ++j) row[j] += x[32 * i + k] * y[32 * k + j];
        for (int j = 0; j < 32; ++j) s.lane[32 * i + j] = stored(s.lane[32 * i + j] + row[j], NEAREST);
    }
    s.written = true;
    s.reduced = false;
    s.kind = FLOATING;
}

void reduce_init(int pool, int dim, uint32_t cb, uint32_t scaler, uint32_t out, Where w) {
    get_cb(out, w);
    fpu_init(REDUCE, "reduce_init", FULL, cb, scaler, w);
    core->reduce_pool = pool;
    core->reduce_dim = core->mask = dim;
    core->mask_where = w;
}
void reduce_uninit(Where w) {
    need_startup("reduce_uninit", w);
    core->mask = -1;
    core->fpu = NO_FPU;
    core->fpu_name = "reduce_uninit";
}

void fpu_reduce(int pool, int dim, uint32_t cb, uint32_t scaler, uint32_t tile, uint32_t scaler_tile, uint32_t d, Where w) {
    const char* call = "reduce_tile";
    need_math(call, w);
    need_init(REDUCE, call, FULL, get_cb(cb, w).format, get_cb(scaler, w).format, w);
    if (pool != core->reduce_pool || dim != core->reduce_dim) trap("no-init", w, "reduce_tile with another pool or dimension than reduce_init");
    const bool swapped = pool == POOL_SUM && dim == DIM_ROW;  // a matrix product: the scaler sits in SrcA
    need_format('A', swapped ? scaler : cb, call, w);
    need_format('B', swapped ? cb : scaler, call, w);
    float x[kTile], k[kTile];
    load_source(call, cb, tile, x, w);
    load_source(call, scaler, scaler_tile, k, w);
    for (int face = 0; face < 4; ++face)
        for (int i = 0; i < 16; ++i) {
            const int corner = (face >> 1) * 512 + (face & 1) * 16;
            if (k[corner + i] != k[0] || k[corner + 32 * i] != k[0])
                trap("reduce-scaler", w, "row 0 and column 0 of every face of the scaler tile must hold one value (CB %u)", scaler);
        }
    Slot& s = dst_slot(call, d, w);
    const bool fresh = !s.written, maximum = pool == POOL_MAX;
    if (fresh) std::fill_n(s.lane, kTile, 0.f);
    const int lines = dim == DIM_SCALAR ? 1 : 32, length = dim == DIM_SCALAR ? kTile : 32, step = dim == DIM_COL ? 32 : 1;
    for (int l = 0; l < lines; ++l) {
        const int base = dim == DIM_ROW ? 32 * l : l;
        float r = maximum ? -INFINITY : 0.f;
        for (int i = 0; i < length; ++i) r = maximum ? larger(r, x[base + step * i]) : r + x[base + step * i];
        r *= k[0];
        if (!fresh) r = maximum ? larger(s.lane[base], r) : s.lane[base] + r;
        s.lane[base] = stored(r, NEAREST);
    }
    s.written = s.reduced = true;
    s.kind = FLOATING;
}
}  // namespace ttemu
