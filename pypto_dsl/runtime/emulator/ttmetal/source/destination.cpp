// DST and the packer: the acquire, commit, wait, release protocol, slot contents, and the way from a slot to a page.
#include <algorithm>
#include <cmath>

#include "ttemu/core.h"

namespace ttemu {
namespace {

void change(const char* code, const char* call, DstState from, DstState to, const char* missing, Where w) {
    if (core->state != from) trap(code, w, "%s while DST is %s%s", call, kDst[core->state], missing);
    core->state = to;
}
bool masked(int mask, int i) {  // does the packer keep lane i under the mask of reduce_init?
    return mask < 0 || (mask == DIM_ROW ? i % 32 == 0 : mask == DIM_COL ? i < 32 : i == 0);
}
}  // namespace

void need_startup(const char* call, Where w) {
    if (!core->started) trap("no-startup", w, "%s before compute_kernel_hw_startup", call);
}
void need_math(const char* call, Where w) {
    need_startup(call, w);
    if (core->state != ACQUIRED) trap("dst-not-acquired", w, "%s while DST is %s (tile_regs_acquire missing)", call, kDst[core->state]);
}
Slot& dst_slot(const char* call, uint32_t index, Where w) {
    const Program& p = *core->program;
    if (index >= p.dst_tiles)
        trap("dst-index", w, "%s uses DST index %u; %s DST has %u tiles", call, index, p.fp32_dest ? "32-bit" : "16-bit", p.dst_tiles);
    return core->dst[index];
}
Slot& dst_filled(const char* call, uint32_t index, Kind kind, Where w) {
    Slot& s = dst_slot(call, index, w);
    if (!s.written) trap("dst-unwritten", w, "%s reads DST %u, which nothing wrote since tile_regs_acquire", call, index);
    if (s.kind != kind)
        trap("dst-kind", w, "%s works on %s and DST %u holds %s (typecast_tile missing)", call, kind == FLOATING ? "floats" : "integers", index,
             s.kind == FLOATING ? "floats" : "integers");
    return s;
}
float stored(float v, Round r) { return core->program->fp32_dest ? v : r == NEAREST ? bf16_nearest(v) : bf16_truncate(v); }
void put(Slot& s, const float* lanes, Round r, Kind kind) {
    for (int i = 0; i < kTile; ++i) s.lane[i] = kind == FLOATING ? stored(lanes[i], r) : lanes[i];
    s.written = true;
    s.reduced = false;
    s.kind = kind;
}

void startup(uint32_t a, uint32_t b, uint32_t out, Where w) {
    if (core->started) trap("startup-twice", w, "compute_kernel_hw_startup a second time");
    core->started = true;
    core->format_a = get_cb(a, w).format;
    core->format_b = get_cb(b, w).format;
    core->format_pack = get_cb(out, w).format;
}
void reconfig_a(uint32_t cb, Where w) { need_startup("reconfig_data_format", w); core->format_a = get_cb(cb, w).format; }
void reconfig_b(uint32_t cb, Where w) { need_startup("reconfig_data_format", w); core->format_b = get_cb(cb, w).format; }
void reconfig_pack(uint32_t cb, Where w) { need_startup("pack_reconfig_data_format", w); core->format_pack = get_cb(cb, w).format; }
bool same_format(uint32_t a, uint32_t b, Where w) { return get_cb(a, w).format == get_cb(b, w).format; }

void dst_acquire(Where w) {
    need_startup("tile_regs_acquire", w);
    change("dst-no-release", "tile_regs_acquire", IDLE, ACQUIRED, " (tile_regs_release missing)", w);
    core->dst_where = w;
    for (Slot& s : core->dst) {
        std::fill_n(s.lane, kTile, NAN);
        s.written = s.reduced = false;
    }
}
void dst_commit(Where w) { change("dst-not-acquired", "tile_regs_commit", ACQUIRED, COMMITTED, "", w); }
void dst_wait(Where w) { change("dst-no-commit", "tile_regs_wait", COMMITTED, WAITED, " (tile_regs_commit missing)", w); }
void dst_release(Where w) { change("dst-no-wait", "tile_regs_release", WAITED, IDLE, " (tile_regs_wait missing)", w); }

void pack(uint32_t index, uint32_t cb, bool at_index, uint32_t page_index, Where w) {
    need_startup("pack_tile", w);
    if (core->state != WAITED)
        trap("pack-before-wait", w, "pack_tile while DST is %s (tile_regs_commit and tile_regs_wait come first)", kDst[core->state]);
    Slot& s = dst_slot("pack_tile", index, w);
    Cb& b = get_cb(cb, w);
    const bool integer = b.format == I32 || b.format == U32;
    dst_filled("pack_tile", index, integer ? INTEGER : FLOATING, w);
    if (core->format_pack != b.format)
        trap("format", w, "pack_tile: the packer is set for %s, CB %u holds %s (pack_reconfig_data_format missing)", format_name(core->format_pack), cb,
             format_name(b.format));
    const uint32_t page = at_index ? page_index : b.packed;
    if (page >= b.reserved || b.producer != core->role) trap("cb-not-reserved", w, "pack_tile to page %u of CB %u with %u pages reserved", page, cb, b.reserved);
    if (core->mask >= 0 && !s.reduced)
        trap("reduce-mask", w, "pack_tile of DST %u under the mask of reduce_init (line %u): reduce_uninit missing", index, core->mask_where.line());
    if (core->mask < 0 && s.reduced) trap("reduce-mask", w, "pack_tile of a reduced tile after reduce_uninit: the other lanes are undefined");
    float v[kTile];
    for (int i = 0; i < kTile; ++i) v[i] = masked(core->mask, i) ? s.lane[i] : 0;
    encode(b.format, v, l1_at(b.address + (b.write + page) * b.page));
    b.packed = std::max(b.packed, page + 1);
}
}  // namespace ttemu
