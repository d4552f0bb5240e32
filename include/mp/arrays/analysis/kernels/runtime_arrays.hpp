// SPDX-License-Identifier: MIT
/// \file
/// Arrays in a format of the run: the kernel that an instruction set has. See runtime_arrays.inl.
#pragma once

#include <mp/arrays/analysis/runtime_operations.hpp>
#include <mp/numbers/format/philox.hpp>
#include <mp/numbers/rules/random_words.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>
#include <mp/numbers/simd/select_target.hpp>
#include <mp/numbers/simd/vec.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Not inlined into kernels, whose encoding of instructions is not that of the program.
template <class Operation>
MP_NEVER_INLINE void runtime_arrays_portable(const runtime_rounding& rounding, const double* a,
                                             const double* b, double* out, std::size_t count,
                                             std::uint64_t seed, std::uint64_t first) noexcept {
    const default_floating_point_modes modes;
    const runtime_rounding r = rounding;
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint32_t random = r.project.random_bits != 0 ? random_bits(seed, first + i) : 0;
        out[i] = Operation::apply(a[i], b[i], r, random);
    }
}

}}  // namespace mp::detail

#define MP_KERNEL_FILE <mp/arrays/analysis/kernels/runtime_arrays.inl>
#include <mp/numbers/simd/for_each_target.inl>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Vectors round off at least two bits, and more than there are random ones; see the kernel.
inline bool has_runtime_vectors(const runtime_rounding& r) noexcept {
    const rounding mode = r.project.round;
    return r.precision >= 2 && r.precision <= 52 && r.project.random_bits < 54 - r.precision &&
           mode != rounding::stochastic_b && mode != rounding::stochastic_c;
}

template <class Operation>
auto runtime_kernel_for([[maybe_unused]] instruction_set isa, const runtime_rounding& r) noexcept {
    using kernel = void (*)(const runtime_rounding&, const double*, const double*, double*, std::size_t,
                            std::uint64_t, std::uint64_t) noexcept;
    kernel chosen = &runtime_arrays_portable<Operation>;
#if MP_SIMD_TARGETS
    if (has_runtime_vectors(r)) chosen = MP_SELECT_TARGET(isa, chosen, runtime_arrays<Operation>);
#endif
    static_cast<void>(r);
    return chosen;
}

}}  // namespace mp::detail
