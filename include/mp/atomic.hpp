// SPDX-License-Identifier: MIT
/// \file
/// Atomic addition to numbers of the library. std::atomic<mp::half> has load, store, exchange and
/// compare_exchange, as for every trivially copyable type, but fetch_add for built-in types only.
///
///     mp::half sum{0};
///     mp::atomic_fetch_add(sum, mp::half{1});           // by many threads
///     std::atomic<mp::half> counter{mp::half{0}};
///     mp::atomic_fetch_add(counter, mp::half{1});
#pragma once

#include <mp/numbers/format/operations.hpp>

#include <atomic>

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Adds y to x atomically, rounded to nearest even, and returns what x was before. The sum of several
/// additions depends on their order. Safe for any number of threads, as long as all of them access x by
/// atomic operations; x has the alignment of its type, which is enough.
template <reduced T>
T atomic_fetch_add(T& x, T y, std::memory_order order = std::memory_order_seq_cst) noexcept {
    // Not by std::atomic_ref, which libc++ has from version 19 only.
    T before;
    __atomic_load(&x, &before, __ATOMIC_RELAXED);
    T after = before + y;
    while (!__atomic_compare_exchange(&x, &before, &after, true, static_cast<int>(order), __ATOMIC_RELAXED)) {
        after = before + y;
    }
    return before;
}
template <reduced T>
T atomic_fetch_add(std::atomic<T>& x, T y, std::memory_order order = std::memory_order_seq_cst) noexcept {
    T before = x.load(std::memory_order_relaxed);
    while (!x.compare_exchange_weak(before, before + y, order, std::memory_order_relaxed)) {
    }
    return before;
}

}}  // namespace mp
