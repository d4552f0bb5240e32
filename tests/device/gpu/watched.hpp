// SPDX-License-Identifier: MIT
// Global memory of kernels under test, watched in some of the schedules.
#pragma once

#include <mp/matrix_view.hpp>
#include <mp/simt.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace gpu_test {

/// What the executors below have in common.
inline mp::simt::memory_checker& common_checker() {
    static mp::simt::memory_checker checker;
    return checker;
}

/// The executor with races through global memory looked for, and what lies beside memory that the library
/// allocates: in one of four schedules, since it takes twice the time.
template <mp::arch Arch>
[[nodiscard]] mp::simulated_gpu<Arch> watched(mp::simulated_gpu<Arch> exec) {
    if (exec.seed % 4 == 1 && exec.threads == 1) exec.checker = &common_checker();
    return exec;
}

/// Keeps those executors' kernels from what lies around the elements of a matrix, between its lines as well.
class forbidden_surroundings {
public:
    forbidden_surroundings() = default;
    forbidden_surroundings(const forbidden_surroundings&) = delete;
    forbidden_surroundings& operator=(const forbidden_surroundings&) = delete;
    ~forbidden_surroundings() {
        for (const void* it : begins_) common_checker().remove(it);
    }

    /// The elements of `view` are somewhere in `memory`, which lives longer than this.
    template <class Value>
    void add(const std::vector<Value>& memory, const mp::matrix_view<Value>& view) {
        const bool by_rows = view.order == mp::storage_order::row_major;
        const std::ptrdiff_t lines = by_rows ? view.rows : view.columns;
        const std::ptrdiff_t length = by_rows ? view.columns : view.rows;
        const Value* begin = memory.data();
        for (std::ptrdiff_t line = 0; line < lines; ++line) {
            const Value* const elements = view.data + line * view.leading_dimension;
            forbid(begin, elements);
            begin = elements + length;
        }
        forbid(begin, memory.data() + memory.size());
    }

private:
    template <class Value>
    void forbid(const Value* begin, const Value* end) {
        if (begin == end) return;
        common_checker().add_forbidden(std::span(begin, end), "what is around a matrix of the test");
        begins_.push_back(begin);
    }
    std::vector<const void*> begins_;
};

}  // namespace gpu_test
