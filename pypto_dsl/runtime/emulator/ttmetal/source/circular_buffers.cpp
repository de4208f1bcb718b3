// Circular buffers: rings of pages with one producer and one consumer, whose every misuse is a trap.
#include <algorithm>

#include "ttemu/core.h"

namespace ttemu {
namespace {

void yield_to_scheduler() { swapcontext(&core->fiber[core->role].context, &core->scheduler); }

// With a seed every call may switch kernels: the interleavings stand in for races.
void maybe_yield() {
    if (!core->program->seed) return;
    core->random = core->random * 1664525u + 1013904223u;
    if ((core->random >> 16) % 3 == 0) yield_to_scheduler();
}

void block(uint32_t cb, uint32_t n, bool for_space, Where w) {
    Fiber& f = core->fiber[core->role];
    f.blocked = true; f.cb = cb; f.pages = n; f.for_space = for_space; f.where = w;
    if (!ready(f)) yield_to_scheduler();
    f.blocked = false;
}

bool overlaps(const Transfer& t, uint32_t address, uint32_t bytes) { return t.l1 < address + bytes && address < t.l1 + t.bytes; }

}  // namespace

Cb& get_cb(uint32_t cb, Where w) {
    auto it = core->cb.find(cb);
    if (it == core->cb.end()) trap("cb-undefined", w, "CB %u has no descriptor", cb);
    return it->second;
}

bool ready(const Fiber& f) {
    if (!f.blocked) return true;
    const Cb& b = core->cb.at(f.cb);
    return f.for_space ? b.capacity - b.count >= f.pages : b.count >= f.pages;
}

bool is_poison(const uint8_t* p, uint32_t bytes) {
    for (uint32_t i = 0; i < bytes; ++i) if (p[i] != kPoison[i & 1]) return false;
    return true;
}
void poison(uint8_t* p, uint32_t bytes) {
    for (uint32_t i = 0; i < bytes; ++i) p[i] = kPoison[i & 1];
}

const uint8_t* page_to_read(const char* call, uint32_t cb, uint32_t tile, Where w) {
    const Cb& b = get_cb(cb, w);
    if (b.consumer != core->role || tile >= b.waited)
        trap("cb-not-waited", w, "%s reads page %u of CB %u, but cb_wait_front covers %u", call, tile, cb, b.waited);
    if (b.read + tile >= b.capacity) trap("cb-straddle", w, "%s reads page %u of CB %u past the end of its ring", call, tile, cb);
    const uint8_t* page = l1_at(b.address + (b.read + tile) * b.page);
    if (is_poison(page, b.page)) trap("cb-unwritten", w, "%s reads page %u of CB %u, which nobody wrote", call, tile, cb);
    return page;
}

void cb_reserve(uint32_t cb, uint32_t n, Where w) {
    Cb& b = get_cb(cb, w);
    if (b.producer < 0) b.producer = core->role;
    if (b.producer != core->role) trap("cb-two-producers", w, "CB %u is filled by %s and by %s", cb, kRole[b.producer], kRole[core->role]);
    if (n > b.capacity) trap("cb-capacity", w, "cb_reserve_back(%u, %u): the CB has %u pages", cb, n, b.capacity);
    maybe_yield();
    block(cb, n, true, w);
    if (b.write + n > b.capacity)
        trap("cb-straddle", w, "cb_reserve_back(%u, %u) at page %u crosses the end of the ring of %u pages", cb, n, b.write, b.capacity);
    b.reserved = std::max(b.reserved, n);
}

void cb_push(uint32_t cb, uint32_t n, Where w) {
    Cb& b = get_cb(cb, w);
    if (n > b.reserved || b.producer != core->role) trap("cb-push", w, "cb_push_back(%u, %u) with %u pages reserved", cb, n, b.reserved);
    for (const Transfer& t : core->fiber[core->role].reads)
        if (overlaps(t, b.address + b.write * b.page, n * b.page))
            trap("read-barrier", w, "cb_push_back(%u, %u) before noc_async_read_barrier; the read was issued at line %u", cb, n, t.where.line());
    if (core->role == COMPUTE && b.packed < n) trap("cb-push-unpacked", w, "cb_push_back(%u, %u) after %u packed tiles", cb, n, b.packed);
    b.write = (b.write + n) % b.capacity;
    b.count += n;
    b.reserved -= n;
    b.packed = b.packed > n ? b.packed - n : 0;
    b.last_push = w;
    maybe_yield();
}

void cb_wait(uint32_t cb, uint32_t n, Where w) {
    Cb& b = get_cb(cb, w);
    if (b.consumer < 0) b.consumer = core->role;
    if (b.consumer != core->role) trap("cb-two-consumers", w, "CB %u is read by %s and by %s", cb, kRole[b.consumer], kRole[core->role]);
    if (n > b.capacity) trap("cb-capacity", w, "cb_wait_front(%u, %u): the CB has %u pages", cb, n, b.capacity);
    maybe_yield();
    block(cb, n, false, w);
    b.waited = std::max(b.waited, n);
}

void cb_pop(uint32_t cb, uint32_t n, Where w) {
    Cb& b = get_cb(cb, w);
    if (n > b.waited || b.consumer != core->role) trap("cb-pop", w, "cb_pop_front(%u, %u) with %u pages waited for", cb, n, b.waited);
    if (b.read + n > b.capacity)
        trap("cb-straddle", w, "cb_pop_front(%u, %u) at page %u crosses the end of the ring of %u pages", cb, n, b.read, b.capacity);
    for (const Transfer& t : core->fiber[core->role].writes)
        if (overlaps(t, b.address + b.read * b.page, n * b.page))
            trap("write-barrier", w, "cb_pop_front(%u, %u) before noc_async_write_barrier; the write was issued at line %u", cb, n, t.where.line());
    poison(l1_at(b.address + b.read * b.page), n * b.page);  // a stale read shows as NaN
    b.read = (b.read + n) % b.capacity;
    b.count -= n;
    b.waited -= n;
    maybe_yield();
}

uint32_t write_ptr(uint32_t cb, Where w) {
    const Cb& b = get_cb(cb, w);
    if (!b.reserved || b.producer != core->role) trap("cb-not-reserved", w, "get_write_ptr(%u) without cb_reserve_back", cb);
    return b.address + b.write * b.page;
}
uint32_t read_ptr(uint32_t cb, Where w) {
    const Cb& b = get_cb(cb, w);
    if (!b.waited || b.consumer != core->role) trap("cb-not-waited", w, "get_read_ptr(%u) without cb_wait_front", cb);
    return b.address + b.read * b.page;
}
uint32_t tile_size(uint32_t cb, Where w) { return get_cb(cb, w).page; }

uint32_t runtime_arg(int index, Where w) {
    const Program& p = *core->program;
    const uint32_t n = p.args[core->role];
    if (index < 0 || (uint32_t)index >= n) trap("argument", w, "get_arg_val(%d): the host passes %u arguments", index, n);
    return p.arg_words[core->role][core->id * n + index];
}
}  // namespace ttemu
