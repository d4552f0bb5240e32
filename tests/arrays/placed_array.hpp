// SPDX-License-Identifier: MIT
#pragma once

#include "address_sanitizer.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#if defined(MP_ADDRESS_SANITIZER)
inline constexpr bool is_sanitized = true;
#else
inline constexpr bool is_sanitized = false;
#endif

/// From one place of an array to the next. Sanitizers refuse addresses that are not aligned for a type.
template <class Value>
inline constexpr std::size_t byte_step = is_sanitized ? sizeof(Value) : 1;

/// An array at this byte of a cache line, between bytes that must stay.
template <class Value>
class placed_array {
public:
    placed_array(std::size_t offset, std::size_t count)
        : bytes_(count * sizeof(Value) + offset + 2 * line, guard), count_(count) {
        first_ = line - reinterpret_cast<std::uintptr_t>(bytes_.data()) % line + offset;
    }
    placed_array(const placed_array&) = delete;
    placed_array& operator=(const placed_array&) = delete;

    void fill(const std::vector<Value>& values) {
        std::memcpy(bytes_.data() + first_, values.data(), count_ * sizeof(Value));
    }
    [[nodiscard]] std::span<Value> span() {
        return {reinterpret_cast<Value*>(bytes_.data() + first_), count_};
    }
    [[nodiscard]] std::vector<Value> values() const {
        std::vector<Value> result(count_);
        std::memcpy(result.data(), bytes_.data() + first_, count_ * sizeof(Value));
        return result;
    }
    /// Whether nothing was written beside the array.
    [[nodiscard]] bool is_alone() const {
        bool result = true;
        for (std::size_t i = 0; i < bytes_.size(); ++i) {
            const bool inside = i >= first_ && i < first_ + count_ * sizeof(Value);
            result = result && (inside || bytes_[i] == guard);
        }
        return result;
    }

private:
    static constexpr std::size_t line = 64;
    static constexpr unsigned char guard = 0xA5;

    std::vector<unsigned char> bytes_;
    std::size_t count_;
    std::size_t first_;
};
