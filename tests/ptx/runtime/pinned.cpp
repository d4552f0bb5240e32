// SPDX-License-Identifier: MIT
// Pinned memory of the host, which copies read and write while the host goes on: what they write comes when the host has
// waited for it, and what they read must not change before.
#include "pinned.hpp"

#include "state.hpp"

#include <cuda_runtime.h>

#include <cstring>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace ptx::runtime {

namespace {

/// What a copy writes, until it is there.
struct hidden_write {
    std::byte* to;
    std::vector<std::byte> values;
    bool is_shown = false;

    void show() {
        if (!is_shown) std::memcpy(to, values.data(), values.size());
        is_shown = true;
    }
};
struct pinned_range {
    std::size_t size = 0;
    std::vector<std::weak_ptr<hidden_write>> hidden{};
    std::shared_ptr<const bool> exists = std::make_shared<const bool>(true);
};

std::map<const std::byte*, pinned_range>& ranges() {
    static auto* const all = new std::map<const std::byte*, pinned_range>;  // as long as the device
    return *all;
}

pinned_range* find(const void* at) {
    const auto* const address = static_cast<const std::byte*>(at);
    const auto behind = ranges().upper_bound(address);
    if (behind == ranges().begin()) return nullptr;
    auto& [begin, it] = *std::prev(behind);
    return address < begin + it.size ? &it : nullptr;
}

/// Calls f() when the host has waited for a copy of pinned memory, unless that has been freed.
void at_the_end(CUstream_st& in, const void* at, std::function<void()> f) {
    state().order->when_done(in, [exists = std::weak_ptr(find(at)->exists), f = std::move(f)] {
        if (!exists.expired()) f();
    });
}

}  // namespace

bool is_pinned(const void* at) {
    return find(at) != nullptr;
}

void read_pinned(CUstream_st& in, std::string_view name, const void* from, std::size_t bytes) {
    const auto* const begin = static_cast<const std::byte*>(from);
    at_the_end(in, from, [=, values = std::vector(begin, begin + bytes), stream = stream_text(in.number)] {
        if (std::memcmp(values.data(), begin, bytes) == 0) return;
        break_device("the host wrote memory that " + std::string(name) + " on " + stream +
                     " reads, and had not waited for it");
    });
}

void write_pinned(CUstream_st& in, void* to, std::size_t bytes) {
    auto* const begin = static_cast<std::byte*>(to);
    const auto made = std::make_shared<hidden_write>(begin, std::vector(begin, begin + bytes));
    find(to)->hidden.push_back(made);
    at_the_end(in, to, [made] { made->show(); });
    std::memset(to, 0xA5, bytes);
}

void show_pinned(const void* from, std::size_t bytes) {
    pinned_range* const range = find(from);
    if (range == nullptr) return;
    const auto* const begin = static_cast<const std::byte*>(from);
    std::erase_if(range->hidden, [&](const std::weak_ptr<hidden_write>& weak) {
        const auto it = weak.lock();
        if (it && it->to < begin + bytes && begin < it->to + it->values.size()) it->show();
        return !it;
    });
}

}  // namespace ptx::runtime

using namespace ptx::runtime;

extern "C" {

cudaError_t cudaMallocHost(void** to, size_t bytes) {
    *to = ::operator new(bytes, std::nothrow);
    if (*to == nullptr) return report(cudaErrorMemoryAllocation);
    ranges()[static_cast<const std::byte*>(*to)].size = bytes;
    return cudaSuccess;
}
cudaError_t cudaFreeHost(void* at) {
    ranges().erase(static_cast<const std::byte*>(at));
    ::operator delete(at);
    return cudaSuccess;
}

}  // extern "C"
