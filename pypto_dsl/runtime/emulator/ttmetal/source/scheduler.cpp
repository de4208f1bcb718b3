// Runs reader, compute and writer of each core as fibers, deterministically; a run ends well, in a trap, or in a deadlock report.
#include <sys/mman.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>

#include "ttemu/core.h"

namespace ttemu {

Core* core = nullptr;

namespace {
constexpr size_t kL1Bytes = 4u << 20, kStackBytes = 256u << 10;
uint8_t* l1 = nullptr;

// Kernels cast 32-bit addresses to pointers, as on the device: L1 must lie below 4 GiB.
uint8_t* map_l1() {
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
#ifdef MAP_32BIT
    void* p = mmap(nullptr, kL1Bytes, PROT_READ | PROT_WRITE, flags | MAP_32BIT, -1, 0);
    return p == MAP_FAILED ? nullptr : (uint8_t*)p;
#else
    for (uintptr_t want = 0x10000000; want < 0xf0000000; want += 0x08000000) {
        void* p = mmap((void*)want, kL1Bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
        if (p != MAP_FAILED && (uintptr_t)p + kL1Bytes <= 0xffffffffu) return (uint8_t*)p;
        if (p != MAP_FAILED) munmap(p, kL1Bytes);
    }
    return nullptr;
#endif
}

std::string text(const char* format, ...) __attribute__((format(printf, 1, 2)));
std::string text(const char* format, ...) {
    char buffer[700];
    va_list v;
    va_start(v, format);
    vsnprintf(buffer, sizeof buffer, format, v);
    va_end(v);
    return buffer;
}

void check_end(int role) {
    const Fiber& f = core->fiber[role];
    if (role == COMPUTE && core->state != IDLE) trap("dst-no-release", core->dst_where, "the compute kernel ends while DST is %s", kDst[core->state]);
    if (!f.reads.empty()) trap("read-barrier", f.reads[0].where, "the kernel ends with this read still in flight");
    if (!f.writes.empty()) trap("write-barrier", f.writes[0].where, "the kernel ends with this write still in flight");
}

void enter(int role) {
    core->program->kernel[role]();
    check_end(role);
    core->fiber[role].done = true;
    setcontext(&core->scheduler);
}

std::string deadlock() {
    std::string s = text("trap[deadlock] core %u: every kernel waits", core->id);
    for (int r = 0; r < kRoles; ++r) {
        const Fiber& f = core->fiber[r];
        if (f.done) {
            s += text("\n    %s: finished", kRole[r]);
            continue;
        }
        const Cb& b = core->cb.at(f.cb);
        s += text("\n    %s: %s(%u, %u) at %s:%u; the CB has %u of %u pages %s", kRole[r], f.for_space ? "cb_reserve_back" : "cb_wait_front", f.cb, f.pages,
                  base_name(f.where.file_name()), f.where.line(), f.for_space ? b.capacity - b.count : b.count, b.capacity, f.for_space ? "free" : "filled");
    }
    return s;
}

// Lays the circular buffers out in L1, each followed by guard bytes; returns the trap's text, empty when they fit.
std::string place_buffers(const Program& p) {
    uint32_t next = (uint32_t)(uintptr_t)l1;
    uint64_t total = 0;
    for (uint32_t i = 0; i < kCbs; ++i) {
        const CbConfig& c = p.cb[i];
        if (!c.pages) continue;
        if (c.page_bytes != format_bytes(c.format))
            return text("trap[cb-page-size] CB %u: page of %u bytes, a %s tile has %u", i, c.page_bytes, format_name(c.format), format_bytes(c.format));
        const uint64_t bytes = (uint64_t)c.page_bytes * c.pages;
        total += bytes;
        if (total > p.l1_budget || total + kCbs * 2 * kGuardBytes > kL1Bytes)
            return text("trap[l1-budget] CBs 0..%u take %llu bytes of L1, the budget is %u", i, (unsigned long long)total, p.l1_budget);
        Cb b;
        b.address = next;
        b.page = c.page_bytes;
        b.capacity = c.pages;
        b.format = c.format;
        next = (next + (uint32_t)bytes + kGuardBytes + 63) / 64 * 64;
        core->cb[i] = b;
    }
    poison(l1, next - (uint32_t)(uintptr_t)l1);
    return "";
}

std::string check_buffers() {
    for (const auto& [i, b] : core->cb) {
        if (!is_poison(l1_at(b.address + b.capacity * b.page), kGuardBytes))
            return text("trap[l1-overrun] core %u: the bytes after CB %u were overwritten", core->id, i);
        if (b.count || b.reserved)
            return text("trap[cb-imbalance] core %u: CB %u ends with %u pages pushed and never popped, %u reserved and never pushed (last push at %s:%u)", core->id, i,
                        b.count, b.reserved, base_name(b.last_push.file_name()), b.last_push.line());
    }
    return "";
}

std::string run_core(const Program& p, uint32_t id) {
    Core here;
    core = &here;
    here.program = &p;
    here.id = id;
    here.random = p.seed + id * 7919;
    here.trap = place_buffers(p);
    if (!here.trap.empty()) return here.trap;
    void (*const entry)(int) = enter;
    for (int r = 0; r < kRoles; ++r) {
        Fiber& f = here.fiber[r];
        f.stack.resize(kStackBytes);
        getcontext(&f.context);
        f.context.uc_stack.ss_sp = f.stack.data();
        f.context.uc_stack.ss_size = f.stack.size();
        f.context.uc_link = nullptr;
        makecontext(&f.context, (void (*)())entry, 1, r);
    }
    for (;;) {
        bool ran = false, all_done = true;
        for (int r = 0; r < kRoles; ++r) {
            Fiber& f = here.fiber[r];
            if (f.done) continue;
            all_done = false;
            if (!ready(f)) continue;
            ran = true;
            here.role = r;
            swapcontext(&here.scheduler, &f.context);
            if (!here.trap.empty()) return here.trap;
        }
        if (all_done) return check_buffers();
        if (!ran) return deadlock();
    }
}
}  // namespace

const char* base_name(const char* path) {
    const char* slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

void trap(const char* code, Where w, const char* format, ...) {
    char message[600];
    va_list v;
    va_start(v, format);
    vsnprintf(message, sizeof message, format, v);
    va_end(v);
    core->trap = text("trap[%s] %s:%u (%s, core %u): %s", code, base_name(w.file_name()), w.line(), kRole[core->role], core->id, message);
    setcontext(&core->scheduler);
    __builtin_unreachable();
}

extern "C" __attribute__((visibility("default"))) int ttemu_run(const Program* p, char* message, uint32_t size) {
    if (!l1) l1 = map_l1();
    std::string said;
    if (!l1) said = "trap[emulator] no memory below 4 GiB for L1";
    if (p->dst_tiles > kMaxDst) said = "trap[emulator] more DST tiles than are modelled";
    if (p->unpack_to_dest && !p->fp32_dest) said = "trap[unpack-to-dest] UnpackToDestFp32 needs fp32_dest_acc_en";
    forget_written_pages();
    for (uint32_t id = 0; id < p->cores && said.empty(); ++id) said = run_core(*p, id);
    core = nullptr;
    snprintf(message, size, "%s", said.c_str());
    return said.empty() ? 0 : 1;
}
}  // namespace ttemu
