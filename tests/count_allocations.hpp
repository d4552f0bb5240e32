// SPDX-License-Identifier: MIT
/// \file
/// Counts the allocations of a whole program and their bytes, freed or not, and those that are not freed, and has one
/// of them fail, by replacing all forms of operator new and delete (a sanitizer finds a mismatch if one is left to the
/// standard library). Include it in one source of a program.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

std::atomic<long> allocations{0};
std::atomic<std::size_t> allocated_bytes{0};
/// Allocations that are not freed.
std::atomic<long> live_allocations{0};
/// As many allocations succeed, on all threads together, and the next one fails; none does if it is negative.
[[maybe_unused]] std::atomic<long> allocations_before_failure{-1};

void count() {
    ++allocations;
    if (allocations_before_failure >= 0 && allocations_before_failure-- == 0) throw std::bad_alloc();
}
void* live(void* memory) {
    if (memory == nullptr) throw std::bad_alloc();
    ++live_allocations;
    return memory;
}
void* counted(std::size_t size) {
    count();
    allocated_bytes += size;
    return live(std::malloc(size == 0 ? 1 : size));
}
void* counted(std::size_t size, std::align_val_t alignment) {
    count();
    allocated_bytes += size;
    const auto line = static_cast<std::size_t>(alignment);
    return live(std::aligned_alloc(line, (size / line + 1) * line));
}
void release(void* memory) noexcept {
    if (memory == nullptr) return;
    --live_allocations;
    std::free(memory);
}

}  // namespace

void* operator new(std::size_t size) {
    return counted(size);
}
void* operator new[](std::size_t size) {
    return counted(size);
}
void* operator new(std::size_t size, std::align_val_t alignment) {
    return counted(size, alignment);
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
    return counted(size, alignment);
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
    try {
        return counted(size);
    } catch (...) {
        return nullptr;
    }
}
void* operator new[](std::size_t size, const std::nothrow_t& none) noexcept {
    return operator new(size, none);
}
void* operator new(std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
    try {
        return counted(size, alignment);
    } catch (...) {
        return nullptr;
    }
}
void* operator new[](std::size_t size, std::align_val_t alignment, const std::nothrow_t& none) noexcept {
    return operator new(size, alignment, none);
}
void operator delete(void* memory, const std::nothrow_t&) noexcept {
    release(memory);
}
void operator delete[](void* memory, const std::nothrow_t&) noexcept {
    release(memory);
}
void operator delete(void* memory, std::align_val_t, const std::nothrow_t&) noexcept {
    release(memory);
}
void operator delete[](void* memory, std::align_val_t, const std::nothrow_t&) noexcept {
    release(memory);
}
void operator delete(void* memory) noexcept {
    release(memory);
}
void operator delete[](void* memory) noexcept {
    release(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
    release(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
    release(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
    release(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
    release(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
    release(memory);
}
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
    release(memory);
}
