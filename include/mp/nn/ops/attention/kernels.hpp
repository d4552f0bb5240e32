// SPDX-License-Identifier: MIT
/// \file
/// Attention on the CPU, a block of queries at a time.
#pragma once

#include <mp/arrays/array/for_each_element.hpp>
#include <mp/arrays/array/parallel.hpp>
#include <mp/executor.hpp>
#include <mp/linalg/gemm/epilogue.hpp>
#include <mp/linalg/gemm/gemm.hpp>
#include <mp/linalg/gemm/workspace.hpp>
#include <mp/nn/ops/arguments.hpp>
#include <mp/nn/ops/attention/blocks.hpp>
#include <mp/nn/ops/attention/heads.hpp>
#include <mp/nn/ops/attention/options.hpp>
#include <mp/nn/ops/dropout/mask.hpp>
#include <mp/nn/ops/product.hpp>
#include <mp/nn/ops/softmax/rows.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// y = softmax(scale q k^T + mask) v for each head, computed in Real; statistics may be empty.
template <class Real>
void attend(const cpu& exec, const any_operand& q, const any_operand& k, const any_operand& v,
            const any_operand& mask, const any_operand& y, const ops::attention_options& options,
            std::span<ops::basic_softmax_statistics<Real>> statistics) {
    constexpr bool of_doubles = std::same_as<Real, double>;
    const attention_sizes sizes(q, k, v, options, of_doubles);
    const std::ptrdiff_t blocks = (sizes.queries + attention_block_rows - 1) / attention_block_rows;
    const std::ptrdiff_t rows = (std::min)(sizes.queries, attention_block_rows);
    const dropout_mask dropout(options.dropout);
    const softmax_kernels_of<Real> kernels;
    const auto score_count = static_cast<std::size_t>(rows * sizes.keys);
    const auto key_count = static_cast<std::size_t>(sizes.keys);
    thread_buffers<Real> buffers(exec, score_count + static_cast<std::size_t>(rows) + key_count);
    // The exponentials that v is multiplied by have its type: floats (and doubles) are the scores themselves.
    const bool rounds = !of_doubles && !holds_reals<Real>(v);
    thread_buffers<std::byte> low_buffers(exec, rounds ? score_count * v.type->size : 0);
    const auto run = [&](const cpu& inner, std::ptrdiff_t begin, std::ptrdiff_t end) {
        gemm_workspace kept;  // from product to product, on several threads
        gemm_workspace* const workspace = inner.workspace == nullptr ? &kept : nullptr;
        Real* const scores = buffers.take();
        Real* const inverse_sums = scores + score_count;
        Real* const of_mask = inverse_sums + rows;
        std::byte* const rounded = low_buffers.take();
        for (std::ptrdiff_t task = begin; task < end; ++task) {
            const query_block block = sizes.block(task / blocks, task % blocks * attention_block_rows);
            const std::ptrdiff_t first_row = block.head * sizes.queries + block.first;
            multiply_scores(inner, q, k, sizes, block, scores, workspace);
            for (std::ptrdiff_t row = 0; row < block.count; ++row) {
                const seen_keys<Real> seen(mask, sizes, block, row, of_mask);
                const auto found = exponentiate(kernels, seen, scores + row * block.keys, block.keys);
                // A row that sees no key is a sum of nothing, so that 1 makes it 0.
                inverse_sums[row] = found.empty ? Real{1} : as<Real>(double_divide(dropout.scale, found.sum));
                if (dropout.drops_any()) {
                    drop(dropout, sizes.stream_index(options.dropout, block, row), scores + row * block.keys,
                         block.keys);
                }
                if (!statistics.empty()) {
                    statistics[static_cast<std::size_t>(first_row + row)] = found.statistics();
                }
            }
            auto p = matrix_of_reals(scores, block.count, block.keys);
            if (rounds) {
                store_elements(*v.type, scores, static_cast<std::size_t>(block.count * block.keys), rounded);
                p.address = reinterpret_cast<std::uintptr_t>(rounded);
                p.element_size = v.element_size;
                p.type = v.type;
            }
            const any_matrix values = sizes.of_keys<any_matrix>(v, block.head / sizes.group(), block.keys);
            const any_matrix result = sizes.of_queries<any_matrix>(y, block.head, block.first, block.count);
            if constexpr (of_doubles) {
                product_in_double(
                    inner, 1.0, p, values, 0.0, result,
                    [inverse_sums](double value, std::ptrdiff_t row, std::ptrdiff_t /*column*/) {
                        return double_multiply(value, inverse_sums[row]);
                    });
            } else {
                const auto scaled =
                    scale_per_row(std::span(inverse_sums, static_cast<std::size_t>(block.count)));
                multiply_in_float(inner, 1.0, p, values, 0.0, result, workspace, &scaled,
                                  apply_of<std::remove_cv_t<decltype(scaled)>>());
            }
        }
    };
    for_each_task(exec, sizes.count * blocks, sizes.work(rows), run);
}

/// The gradients of attend(), of which any may be absent; statistics may be empty.
template <class Real>
void attend_backward(const cpu& exec, const any_operand& q, const any_operand& k, const any_operand& v,
                     const any_operand& mask, const any_operand& dy, const any_operand& dq,
                     const any_operand& dk, const any_operand& dv, const ops::attention_options& options,
                     std::span<const ops::basic_softmax_statistics<Real>> statistics) {
    const attention_sizes sizes(q, k, v, options, std::same_as<Real, double>);
    const std::ptrdiff_t rows = (std::min)(sizes.queries, attention_block_rows);
    const dropout_mask dropout(options.dropout);
    const softmax_kernels_of<Real> kernels;
    const auto score_count = static_cast<std::size_t>(rows * sizes.keys);
    const auto key_count = static_cast<std::size_t>(dk ? sizes.keys * sizes.head_dim : 0);
    const auto value_count = static_cast<std::size_t>(dv ? sizes.keys * sizes.value_head_dim : 0);
    thread_buffers<Real> buffers(
        exec, 2 * score_count + key_count + value_count + static_cast<std::size_t>(sizes.keys));
    const auto run = [&](const cpu& inner, std::ptrdiff_t begin, std::ptrdiff_t end) {
        gemm_workspace kept;  // from product to product, on several threads
        gemm_workspace* const workspace = inner.workspace == nullptr ? &kept : nullptr;
        Real* const probabilities = buffers.take();
        Real* const slopes = probabilities + score_count;  // of the loss in the scores
        const std::span<Real> key_sums(slopes + score_count, key_count);
        const std::span<Real> value_sums(slopes + score_count + key_count, value_count);
        Real* const of_mask = value_sums.data() + value_count;
        const auto of_block = [&](const query_block& block, std::ptrdiff_t key_head) {
            const any_matrix gradient =
                sizes.of_queries<any_matrix>(dy, block.head, block.first, block.count);
            const auto dense = [&](const Real* from) {
                return matrix_of_reals(from, block.count, block.keys);
            };
            const auto drop_of_block = [&](Real* from) {
                for (std::ptrdiff_t row = 0; dropout.drops_any() && row < block.count; ++row) {
                    drop(dropout, sizes.stream_index(options.dropout, block, row), from + row * block.keys,
                         block.keys);
                }
            };
            multiply_scores(inner, q, k, sizes, block, probabilities, workspace);
            for (std::ptrdiff_t row = 0; row < block.count; ++row) {
                const std::ptrdiff_t query = block.head * sizes.queries + block.first + row;
                to_probabilities(kernels, seen_keys<Real>(mask, sizes, block, row, of_mask),
                                 probabilities + row * block.keys, block.keys,
                                 statistics.empty() ? nullptr : statistics.data() + query);
            }
            if (dq || dk) {
                multiply_matrices<Real>(inner, dropout.scale, gradient,
                                        sizes.of_keys<any_matrix>(v, key_head, block.keys).transposed(), 0.0,
                                        dense(slopes), workspace);
                drop_of_block(slopes);
                for (std::ptrdiff_t row = 0; row < block.count; ++row) {
                    const std::ptrdiff_t reach =
                        seen_keys<Real>(mask, sizes, block, row, of_mask).reach(block.keys);
                    Real* const of_row = slopes + row * block.keys;
                    kernels.score_slopes(probabilities + row * block.keys, static_cast<std::size_t>(reach),
                                         of_row);
                    std::fill(of_row + reach, of_row + block.keys, Real{0});
                }
            }
            if (dq) {
                multiply_matrices<Real>(
                    inner, sizes.scale, dense(slopes), sizes.of_keys<any_matrix>(k, key_head, block.keys),
                    0.0, sizes.of_queries<any_matrix>(dq, block.head, block.first, block.count), workspace);
            }
            if (dk) {
                add_product(inner, sizes.scale, dense(slopes).transposed(),
                            sizes.of_queries<any_matrix>(q, block.head, block.first, block.count),
                            key_sums.data(), workspace);
            }
            if (dv) {
                drop_of_block(probabilities);
                add_product(inner, dropout.scale, dense(probabilities).transposed(), gradient,
                            value_sums.data(), workspace);
            }
        };
        for (std::ptrdiff_t key_head = begin; key_head < end; ++key_head) {
            std::fill(key_sums.begin(), key_sums.end(), Real{0});
            std::fill(value_sums.begin(), value_sums.end(), Real{0});
            for (std::ptrdiff_t i = 0; i < sizes.group(); ++i) {
                for_each_block(sizes, key_head * sizes.group() + i,
                               [&](const query_block& block) { of_block(block, key_head); });
            }
            if (dk) {
                write_rounded(key_sums, sizes.of_keys<any_matrix>(dk, key_head, sizes.keys));
            }
            if (dv) {
                write_rounded(value_sums, sizes.of_keys<any_matrix>(dv, key_head, sizes.keys));
            }
        }
    };
    for_each_task(exec, sizes.key_count, sizes.group() * sizes.work(sizes.queries), run);
}

}}  // namespace mp::detail
