// SPDX-License-Identifier: MIT
// Matrices as kernels may find them, and the ways in which a kernel is run on the host.
#pragma once

#include <mp/bfloat16.hpp>
#include <mp/half.hpp>
#include <mp/matrix_view.hpp>
#include <mp/simt.hpp>
#include <mp/workspace.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <vector>

#include "device/gpu/values.hpp"
#include "device/gpu/watched.hpp"

namespace gpu_test {

using simulated = mp::simulated_gpu<mp::arch::sm_80>;

/// How a matrix lies in memory: its order, elements between its lines, and elements between a multiple of 128
/// bytes and its first one.
struct layout {
    mp::storage_order order = mp::storage_order::row_major;
    std::ptrdiff_t padding = 0;
    std::ptrdiff_t shift = 0;
};
inline constexpr layout layouts[] = {{},
                                     {mp::storage_order::row_major, 0, 1},
                                     {mp::storage_order::row_major, 3, 0},
                                     {mp::storage_order::column_major, 0, 0},
                                     {mp::storage_order::column_major, 2, 1}};

/// A matrix with its elements, in a layout. What lies around the elements keeps a value that it is checked for, and kernels
/// that are watched must not touch it.
template <class Value>
class matrix {
public:
    matrix(std::ptrdiff_t rows, std::ptrdiff_t columns, layout how = {})
        : memory_(room(rows, columns, how), Value(guard)), view{nullptr, rows, columns, 0, how.order} {
        const bool by_rows = how.order == mp::storage_order::row_major;
        view.leading_dimension = (by_rows ? columns : rows) + how.padding;
        std::size_t skipped = 0;
        while (reinterpret_cast<std::uintptr_t>(memory_.data() + skipped) % 128 != 0) ++skipped;
        view.data = memory_.data() + skipped + how.shift;
        surroundings_.add(memory_, view);
    }
    matrix(const matrix&) = delete;
    matrix& operator=(const matrix&) = delete;

    template <class Function>
    matrix& fill(Function f) {
        for (std::ptrdiff_t r = 0; r < view.rows; ++r) {
            for (std::ptrdiff_t c = 0; c < view.columns; ++c) view(r, c) = static_cast<Value>(f(r, c));
        }
        return *this;
    }
    /// Numbers from -span to span, the same for the same seed in every layout.
    matrix& randomize(unsigned seed, float span = 1.0F) {
        std::mt19937 generator(seed);
        return fill(
            [&](auto, auto) { return (static_cast<float>(generator() >> 8) * 0x1p-23F - 1.0F) * span; });
    }

    /// Whether nothing but the elements was written.
    [[nodiscard]] bool is_contained() const {
        std::size_t guards = 0;
        for (const Value& value : memory_) guards += static_cast<float>(value) == guard ? 1 : 0;
        std::size_t inside = 0;
        for (std::ptrdiff_t r = 0; r < view.rows; ++r) {
            for (std::ptrdiff_t c = 0; c < view.columns; ++c) {
                inside += static_cast<float>(view(r, c)) == guard ? 1 : 0;
            }
        }
        return guards - inside == memory_.size() - static_cast<std::size_t>(view.rows * view.columns);
    }

private:
    static constexpr float guard = -88.0F;
    static std::size_t room(std::ptrdiff_t rows, std::ptrdiff_t columns, layout how) {
        return static_cast<std::size_t>((rows + how.padding) * (columns + how.padding) + how.shift) + 128;
    }
    std::vector<Value> memory_;
    forbidden_surroundings surroundings_;

public:
    mp::matrix_view<Value> view;
};

template <class Value>
bool same_bits(Value a, Value b) {
    return std::memcmp(&a, &b, sizeof a) == 0;
}

/// Whether two matrices have the same bits, in whatever layouts.
template <class Value>
bool same_bits(const matrix<Value>& a, const matrix<Value>& b) {
    if (a.view.rows != b.view.rows || a.view.columns != b.view.columns) return false;
    for (std::ptrdiff_t r = 0; r < a.view.rows; ++r) {
        for (std::ptrdiff_t c = 0; c < a.view.columns; ++c) {
            if (!same_bits(a.view(r, c), b.view(r, c))) return false;
        }
    }
    return true;
}

/// A workspace of `bytes` bytes that does not grow.
class workspace {
public:
    explicit workspace(std::size_t bytes) : memory_(bytes), of_(memory_) {}

    /// The executor with it.
    [[nodiscard]] simulated on(simulated exec = {}) {
        exec.workspace = &of_;
        return watched(exec);
    }

private:
    std::vector<std::byte> memory_;
    mp::workspace of_;
};

}  // namespace gpu_test
