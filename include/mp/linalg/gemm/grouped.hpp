// SPDX-License-Identifier: MIT
/// \file
/// Grouped GEMM, as mixture-of-experts layers need it: contiguous groups of rows, masked groups, and groups along k.
#pragma once

#include <mp/base/view_extent.hpp>
#include <mp/config.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/linalg/gemm/batched.hpp>
#include <mp/linalg/gemm/epilogue.hpp>
#include <mp/linalg/gemm/gemm.hpp>
#include <mp/linalg/gemm/validation.hpp>
#include <mp/matrix_view.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// An epilogue of C for the product of its rows from `first` on.
template <class Epilogue>
struct epilogue_from_row {
    const Epilogue* whole;
    std::ptrdiff_t first;

    float operator()(float value, std::ptrdiff_t row, std::ptrdiff_t column) const {
        return (*whole)(value, first + row, column);
    }
    [[nodiscard]] bool apply_runs(const epilogue_runs& all) const {
        epilogue_runs runs = all;
        runs.row += first;
        apply_to_runs(*whole, runs);
        return true;
    }
};

/// The number of groups. Throws where there is not even a first offset.
inline std::ptrdiff_t check_group_offsets(std::string_view function, std::span<const std::int32_t> offsets) {
    if (offsets.empty()) {
        throw_argument(function, "offsets.size()", offsets.size(),
                       "must be at least 1: it is one more than there are groups");
    }
    return static_cast<std::ptrdiff_t>(offsets.size()) - 1;
}

/// Throws unless groups begin where the one before ends or behind it, within `length`. Not for arrays of devices.
inline void check_group_bounds(std::string_view function, std::span<const std::int32_t> offsets,
                               std::string_view length_name, std::ptrdiff_t length) {
    std::int32_t before = 0;
    for (std::size_t i = 0; i < offsets.size(); ++i) {
        if (offsets[i] < before || offsets[i] > length) {
            throw_argument(function, "offsets[" + std::to_string(i) + "]", offsets[i],
                           "must not be less than the one before, which is " + error_text(before) +
                               ", nor more than " + std::string(length_name) + ", which is " +
                               error_text(length));
        }
        before = offsets[i];
    }
}

/// Throws unless masked groups have from 0 to all `rows`. Not for arrays of devices.
inline void check_group_counts(std::string_view function, std::span<const std::int32_t> counts,
                               std::ptrdiff_t rows) {
    for (std::size_t i = 0; i < counts.size(); ++i) {
        if (counts[i] < 0 || counts[i] > rows) {
            throw_argument(function, "counts[" + std::to_string(i) + "]", counts[i],
                           "must be from 0 to a.first.rows, which is " + error_text(rows));
        }
    }
}

/// Throws when offsets or counts, which are read while c is written, overlap it.
inline void check_groups_apart(std::string_view function, std::string_view name,
                               std::span<const std::int32_t> list, const view_extent& c) {
    const auto size = static_cast<std::ptrdiff_t>(list.size());
    check_separate(function, {"c", c}, {name, extent_of(row_major(list.data(), 1, size))});
}

/// Checks a, the matrices of b, c and at least one offset, for groups of rows.
template <class A, class B, class C>
void check_row_groups(std::string_view function, std::span<const std::int32_t> offsets, matrix_view<A> a,
                      const matrix_batch<B>& b, matrix_view<C> c) {
    const auto groups = static_cast<std::ptrdiff_t>(offsets.size()) - 1;
    check_view(function, "a", extent_of(a));
    check_view(function, "c", extent_of(c));
    check_equal_sizes(function, "b.first.rows", b.first.rows, "a.columns", a.columns);
    check_equal_sizes(function, "c.rows", c.rows, "a.rows", a.rows);
    check_equal_sizes(function, "c.columns", c.columns, "b.first.columns", b.first.columns);
    check_no_overlap(function, extent_of(c), "a", extent_of(a));
    for (std::ptrdiff_t g = 0; g < groups; ++g) {
        check_view(function, "b", extent_of(b[g]));
        check_no_overlap(function, extent_of(c), "b", extent_of(b[g]));
    }
    check_groups_apart(function, "offsets", offsets, extent_of(c));
}

/// Checks a, b, the matrices of c and at least one offset, for groups along k.
template <class A, class B, class C>
void check_k_groups(std::string_view function, std::span<const std::int32_t> offsets, matrix_view<A> a,
                    matrix_view<B> b, const matrix_batch<C>& c) {
    const auto groups = static_cast<std::ptrdiff_t>(offsets.size()) - 1;
    if (groups == 0) {
        check_product(function, extent_of(a), extent_of(b), extent_of(c.first));
    } else {
        check_batch(function, groups, matrix_batch<A>{a, 0}, matrix_batch<B>{b, 0}, c);
    }
    for (std::ptrdiff_t g = 0; g < groups; ++g) {
        check_groups_apart(function, "offsets", offsets, extent_of(c[g]));
    }
}

/// Checks the matrices of masked groups, of which there is at least one.
template <class A, class B, class C>
void check_masked_groups(std::string_view function, std::span<const std::int32_t> counts,
                         const matrix_batch<A>& a, const matrix_batch<B>& b, const matrix_batch<C>& c) {
    const auto groups = static_cast<std::ptrdiff_t>(counts.size());
    check_batch(function, groups, a, b, c);
    for (std::ptrdiff_t g = 0; g < groups; ++g) {
        check_groups_apart(function, "counts", counts, extent_of(c[g]));
    }
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Grouped GEMM along m: for each group g, rows [offsets[g], offsets[g + 1]) of c =
/// epilogue(alpha * (these rows of a) b[g] + beta * c). What a layer of a mixture of experts does with tokens that are
/// sorted by their expert. There are offsets.size() - 1 groups; empty ones are nothing; rows outside of all groups are left
/// as they are. The epilogue's rows are those of c.
///
///     // 8 experts, whose weights are (in x out) matrices behind each other.
///     mp::gemm_grouped_m(exec, 1, x, mp::matrix_batch{weights, in * out}, offsets, 0, y);
///
/// For mp::cpu, mp::emulated, and, in <mp/device/gpu/gemm_grouped.hpp>, GPUs, where offsets are in device memory. Each group has
/// the bits of mp::gemm. Throws argument_error, before anything is written, as mp::gemm does, and for offsets that decrease or
/// lie outside of a or overlap c.
template <class Executor, gemm_input A, gemm_input B, gemm_output C,
          gemm_epilogue Epilogue = identity_epilogue>
    requires(!gpu_executor<Executor>)
void gemm_grouped_m(const Executor& exec, float alpha, matrix_view<A> a, matrix_batch<B> b,
                    std::span<const std::int32_t> offsets, float beta, matrix_view<C> c,
                    Epilogue epilogue = {}) {
    constexpr std::string_view function = "mp::gemm_grouped_m";
    const std::ptrdiff_t groups = detail::check_group_offsets(function, offsets);
    detail::check_row_groups(function, offsets, a, b, c);
    detail::check_group_bounds(function, offsets, "a.rows", a.rows);
    detail::validate_epilogue(epilogue, c, detail::product_input{"a", a},
                              detail::product_input{"b", b, groups});
    for (std::ptrdiff_t g = 0; g < groups; ++g) {
        const std::ptrdiff_t first = offsets[static_cast<std::size_t>(g)];
        const std::ptrdiff_t rows = offsets[static_cast<std::size_t>(g) + 1] - first;
        if (rows == 0) continue;
        gemm(exec, alpha, a.block(first, 0, rows, a.columns), b[g], beta, c.block(first, 0, rows, c.columns),
             detail::epilogue_from_row<Epilogue>{&epilogue, first});
    }
}

/// Masked grouped GEMM, a batch of products of which only the first rows are computed: rows [0, counts[g]) of c[g] =
/// epilogue(alpha * a[g] b[g] + beta * c[g]); the others of a[g] are of no meaning, those of c[g] left as they are. What decoding
/// with a mixture of experts does, where each expert has room for as many tokens. There are counts.size() products.
///
/// Throws as gemm_batched does, and for counts below zero or above a's rows; on GPUs, where counts are in device memory, these
/// count as zero and as all rows.
template <class Executor, gemm_input A, gemm_input B, gemm_output C,
          gemm_epilogue Epilogue = identity_epilogue>
    requires(!gpu_executor<Executor>)
void gemm_masked(const Executor& exec, float alpha, matrix_batch<A> a, matrix_batch<B> b,
                 std::span<const std::int32_t> counts, float beta, matrix_batch<C> c,
                 Epilogue epilogue = {}) {
    constexpr std::string_view function = "mp::gemm_masked";
    const auto groups = static_cast<std::ptrdiff_t>(counts.size());
    if (groups == 0) return;
    detail::check_masked_groups(function, counts, a, b, c);
    detail::check_group_counts(function, counts, a.first.rows);
    detail::validate_batch_epilogue(epilogue, groups, c, detail::product_input{"a", a, groups},
                                    detail::product_input{"b", b, groups});
    for (std::ptrdiff_t g = 0; g < groups; ++g) {
        const std::ptrdiff_t rows = counts[static_cast<std::size_t>(g)];
        if (rows == 0) continue;
        gemm(exec, alpha, a[g].block(0, 0, rows, a.first.columns), b[g], beta,
             c[g].block(0, 0, rows, c.first.columns), detail::epilogue_from_row<Epilogue>{&epilogue, 0});
    }
}

/// Grouped GEMM along k: c[g] = epilogue(alpha * (columns [offsets[g], offsets[g + 1]) of a) (these rows of b) +
/// beta * c[g]). What gives the gradients of the weights of a mixture of experts: a is the transposed input, b the gradient of the
/// output, both sorted by expert. An empty group has a sum of zero.
///
///     mp::gemm_grouped_k(exec, 1, mp::transposed(x), dy, offsets, 1, mp::matrix_batch{gradients, in * out});
///
/// The rest is as for gemm_grouped_m.
template <class Executor, gemm_input A, gemm_input B, gemm_output C,
          gemm_epilogue Epilogue = identity_epilogue>
    requires(!gpu_executor<Executor>)
void gemm_grouped_k(const Executor& exec, float alpha, matrix_view<A> a, matrix_view<B> b,
                    std::span<const std::int32_t> offsets, float beta, matrix_batch<C> c,
                    Epilogue epilogue = {}) {
    constexpr std::string_view function = "mp::gemm_grouped_k";
    const std::ptrdiff_t groups = detail::check_group_offsets(function, offsets);
    detail::check_k_groups(function, offsets, a, b, c);
    detail::check_group_bounds(function, offsets, "a.columns", a.columns);
    detail::validate_batch_epilogue(epilogue, groups, c, detail::product_input{"a", a},
                                    detail::product_input{"b", b});
    for (std::ptrdiff_t g = 0; g < groups; ++g) {
        const std::ptrdiff_t first = offsets[static_cast<std::size_t>(g)];
        const std::ptrdiff_t k = offsets[static_cast<std::size_t>(g) + 1] - first;
        gemm(exec, alpha, a.block(0, first, a.rows, k), b.block(first, 0, k, b.columns), beta, c[g],
             epilogue);
    }
}

}}  // namespace mp
