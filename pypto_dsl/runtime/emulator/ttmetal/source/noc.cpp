// The NoC between DRAM tensors and circular buffers: transfers land at the barrier, addresses and pages are checked.
#include <map>

#include "ttemu/core.h"

namespace ttemu {
namespace {

std::map<std::pair<const Tensor*, uint32_t>, uint32_t> written_pages;  // output page -> core that wrote it

const Tensor& tensor_at(uint32_t base, Where w) {
    const Program& p = *core->program;
    for (uint32_t i = 0; i < p.tensors; ++i) if (p.tensor[i].base == base) return p.tensor[i];
    trap("noc-address", w, "no tensor starts at DRAM address %u", base);
}

uint8_t* dram_page(uint32_t page, uint32_t base, uint32_t page_bytes, bool write, Where w) {
    const Tensor& t = tensor_at(base, w);
    if (page_bytes != t.page_bytes) trap("noc-page-size", w, "accessor says %u bytes per page, the tensor has %u", page_bytes, t.page_bytes);
    if (page >= t.pages) trap("noc-out-of-bounds", w, "page %u of a tensor with %u pages", page, t.pages);
    if (write) {
        if (!t.writable) trap("noc-read-only", w, "write to page %u of an input tensor", page);
        auto [it, fresh] = written_pages.try_emplace({&t, page}, core->id);
        if (!fresh) trap("noc-written-twice", w, "page %u was already written by core %u", page, it->second);
    }
    return t.data + (size_t)page * t.page_bytes;
}

// The ring that holds an L1 address, and the page within it.
Cb& cb_at(uint32_t l1, uint32_t bytes, uint32_t& page, Where w) {
    for (auto& [id, b] : core->cb) {
        if (l1 < b.address || l1 >= b.address + b.capacity * b.page) continue;
        page = (l1 - b.address) / b.page;
        if ((l1 - b.address) % b.page + bytes > b.page) trap("noc-cb-page", w, "%u bytes do not fit into a %u-byte page of CB %u", bytes, b.page, id);
        return b;
    }
    trap("noc-l1-address", w, "L1 address %u lies in no CB", l1);
}
}  // namespace

void forget_written_pages() { written_pages.clear(); }

void noc_read(uint32_t page, uint32_t base, uint32_t bytes, uint32_t l1, Where w) {
    uint8_t* from = dram_page(page, base, bytes, false, w);
    uint32_t p;
    const Cb& b = cb_at(l1, bytes, p, w);
    if (p < b.write || p >= b.write + b.reserved || b.producer != core->role)
        trap("cb-not-reserved", w, "NoC read into page %u of a CB; pages %u..%u are reserved", p, b.write, b.write + b.reserved);
    poison(l1_at(l1), bytes);
    core->fiber[core->role].reads.push_back({l1, bytes, from, w});
}
void noc_write(uint32_t page, uint32_t base, uint32_t bytes, uint32_t l1, Where w) {
    uint8_t* to = dram_page(page, base, bytes, true, w);
    uint32_t p;
    const Cb& b = cb_at(l1, bytes, p, w);
    if (p < b.read || p >= b.read + b.waited || b.consumer != core->role)
        trap("cb-not-waited", w, "NoC write from page %u of a CB; pages %u..%u are waited for", p, b.read, b.read + b.waited);
    if (is_poison(l1_at(l1), bytes)) trap("cb-unwritten", w, "NoC write from page %u of a CB, which nobody wrote", p);
    core->fiber[core->role].writes.push_back({l1, bytes, to, w});
}
void noc_read_barrier(Where) {
    for (const Transfer& t : core->fiber[core->role].reads) memcpy(l1_at(t.l1), t.dram, t.bytes);
    core->fiber[core->role].reads.clear();
}
void noc_write_barrier(Where) {
    for (const Transfer& t : core->fiber[core->role].writes) memcpy(t.dram, l1_at(t.l1), t.bytes);
    core->fiber[core->role].writes.clear();
}
}  // namespace ttemu
