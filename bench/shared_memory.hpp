// SPDX-License-Identifier: MIT
/// \file
/// Memory that all cells of a program share, so that pages are there before the first of them runs.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>

namespace bench {

/// At least `count` values at an address that is a multiple of 4096. The same memory for all that ask for the
/// same type and number of it; grows by giving up what it held. Every byte has been written.
template <class Value, int Which>
Value* shared_memory(std::size_t count) {
    static_assert(std::is_trivially_copyable_v<Value>);
    struct release {
        void operator()(void* memory) const { std::free(memory); }
    };
    static std::unique_ptr<void, release> memory;
    static std::size_t size = 0;
    if (size < count) {
        constexpr std::size_t page = 4096;
        const std::size_t bytes = (count * sizeof(Value) + page - 1) / page * page;
        memory.reset(std::aligned_alloc(page, bytes));
        if (!memory) throw std::bad_alloc();
        auto* const values = static_cast<unsigned char*>(memory.get());
        for (std::size_t i = 0; i < bytes; ++i) values[i] = static_cast<unsigned char>(i / page);
        size = count;
    }
    return static_cast<Value*>(memory.get());
}

}  // namespace bench
