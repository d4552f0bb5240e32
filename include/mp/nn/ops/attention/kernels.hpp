// SPDX-License-Identifier: MIT
/// \file
/// Attention on the CPU, a block of queries at a time.
#pragma once

#include <mp/arrays/array/for_each_element.hpp>
#include <mp/arrays/array/parallel.hpp>
#include <mp/base/bits.hpp>
#include <mp/executor.hpp>
#include <mp/linalg/gemm/epilogue.hpp>
#include <mp/linalg/gemm/gemm.hpp>
#include <mp/linalg/gemm/workspace.hpp>
#include <mp/nn/ops/arguments.hpp>
#include <mp/nn/ops/attention/heads.hpp>
#include <mp/nn/ops/dropout/mask.hpp>
#include <mp/nn/ops/product.hpp>
#include <mp/nn/ops/softmax/rows.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/format/operations.hpp>
#include <mp/numbers/rules/random_words.hpp>
#include <mp/numbers/rules/rounded_doubles.hpp>
#include <mp/numbers/rules/row_statistics.hpp>
#include <mp/numbers/simd/processor.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Which keys of its block a query sees, and what the mask adds to their scores, which are of type Real.
template <class Real>
class seen_keys {
public:
    /// `scratch` is memory for block.keys Reals of the mask, which may be absent.
    seen_keys(const any_matrix& mask, const attention_sizes& sizes, const query_block& block,
              std::ptrdiff_t row, Real* scratch)
        : end_((std::min)(block.keys, sizes.keys_before(block.first + row + 1))) {
        if (!mask || block.keys == 0) return;
        const std::ptrdiff_t of_head = mask.rows != sizes.queries ? block.head * sizes.queries : 0;
        added_ = reals_of_row(mask.block(of_head + block.first + row, 0, 1, block.keys), 0, scratch);
    }

    [[nodiscard]] Real added(std::ptrdiff_t key) const { return added_ == nullptr ? Real{0} : added_[key]; }
    [[nodiscard]] bool operator()(std::ptrdiff_t key) const {
        return key < end_ && bits_of(added(key)) != bits_of(minus_infinity);
    }

    /// Keys of the block up to the last one that the query may see, and a few of those behind, so that kernels
    /// work on whole vectors.
    [[nodiscard]] std::ptrdiff_t reach(std::ptrdiff_t keys) const {
        constexpr std::ptrdiff_t unit = 16;
        return (std::min)(keys, ((std::max<std::ptrdiff_t>)(end_, 0) + unit - 1) / unit * unit);
    }
    /// Of the scores within reach: adds the mask to those that the query sees and makes -infinity of the
    /// others. Says whether it sees any.
    bool mask_scores(Real* scores, std::ptrdiff_t keys) const {
        bool any = end_ > 0;
        if (added_ != nullptr) {
            any = false;
            for (std::ptrdiff_t key = 0; key < end_; ++key) {
                const Real addend = added(key);
                const bool is_seen = bits_of(addend) != bits_of(minus_infinity);
                scores[key] = is_seen ? scores[key] + addend : addend;
                any = any || is_seen;
            }
        }
        std::fill(scores + (std::max<std::ptrdiff_t>)(end_, 0), scores + reach(keys), minus_infinity);
        return any;
    }

private:
    static constexpr Real minus_infinity = -std::numeric_limits<Real>::infinity();

    const Real* added_ = nullptr;
    std::ptrdiff_t end_;
};

/// Reals as the matrix of a product.
template <class Real>
[[nodiscard]] any_matrix matrix_of_reals(const Real* data, std::ptrdiff_t rows, std::ptrdiff_t columns) {
    return matrix_of_product(row_major(data, rows, columns));
}

/// scores = scale * q k^T for a block, dense and row-major.
template <class Real>
void multiply_scores(const cpu& exec, const any_matrix& q, const any_matrix& k, const attention_sizes& sizes,
                     const query_block& block, Real* scores, gemm_workspace* workspace) {
    multiply_matrices<Real>(exec, sizes.scale, sizes.of_queries(q, block.head, block.first, block.count),
                            sizes.of_keys(k, block.head / sizes.group(), block.keys).transposed(), 0.0,
                            matrix_of_reals(scores, block.count, block.keys), workspace);
}

/// Largest score of a query and the sum of the exponentials of the distances from it, both 0 if it sees no
/// key. (A comparison of the sum with 0 would not tell: under -ffast-math NaN may equal it.)
template <class Real>
struct score_sums {
    Real largest = 0;
    double sum = 0.0;
    bool empty = true;

    [[nodiscard]] ops::basic_softmax_statistics<Real> statistics() const {
        if (empty) return {-std::numeric_limits<Real>::infinity(), 0};
        const Real others = as<Real>(double_subtract(sum, 1.0));
        return {isnan(sum) ? others : largest, others};
    }
};

/// NaN for the scores that a query sees and 0 for the others: what becomes of a row without a meaning.
template <class Real>
void spoil_scores(const seen_keys<Real>& seen, Real* scores, std::ptrdiff_t keys) {
    for (std::ptrdiff_t key = 0; key < keys; ++key) {
        scores[key] = seen(key) ? std::numeric_limits<Real>::quiet_NaN() : Real{0};
    }
}

/// Replaces the scores of a query by the exponentials of their distances from the largest one, the mask added
/// first; by 0 for keys that it does not see. NaN and +infinity among the scores that it sees, and -infinity
/// alone, make them and the sum NaN.
template <class Real>
score_sums<Real> exponentiate(const softmax_kernels_of<Real>& kernels, const seen_keys<Real>& seen,
                              Real* scores, std::ptrdiff_t keys) {
    score_sums<Real> result;
    result.empty = !seen.mask_scores(scores, keys);
    if (result.empty) {
        std::fill(scores, scores + keys, Real{0});
        return result;
    }
    const std::ptrdiff_t reach = seen.reach(keys);
    const auto count = static_cast<std::size_t>(reach);
    const auto largest = kernels.maximum(scores, count);
    if (largest.is_bad || isinf(largest.value)) {
        spoil_scores(seen, scores, keys);
        result.sum = std::numeric_limits<double>::quiet_NaN();
        return result;
    }
    result.largest = largest.value;
    result.sum = kernels.exponentials(scores, count, largest.value, scores);
    std::fill(scores + reach, scores + keys, Real{0});
    return result;
}

/// Replaces the scores of a query by their probabilities, with or without saved statistics.
template <class Real>
void to_probabilities(const softmax_kernels_of<Real>& kernels, const seen_keys<Real>& seen, Real* scores,
                      std::ptrdiff_t keys, const ops::basic_softmax_statistics<Real>* saved) {
    const std::ptrdiff_t reach = seen.reach(keys);
    const auto count = static_cast<std::size_t>(reach);
    if (saved != nullptr) {
        const bool any = seen.mask_scores(scores, keys);
        if (!any) {
            std::fill(scores, scores + keys, Real{0});
            return;
        }
        if (!isfinite(saved->max) || !isfinite(saved->others)) return spoil_scores(seen, scores, keys);
        const double sum = double_add(1.0, as<double>(saved->others));
        scaled_probabilities(kernels, scores, count, saved->max, double_divide(1.0, sum), 0.0, scores);
        std::fill(scores + reach, scores + keys, Real{0});
        return;
    }
    const score_sums<Real> found = exponentiate(kernels, seen, scores, keys);
    if (found.empty || isnan(found.sum)) return;
    kernels.scale(count, scores, scores, as<Real>(double_divide(1.0, found.sum)));
}

/// Puts 0 for what dropout drops from the scores, probabilities or slopes of a query.
template <class Real>
void drop(const dropout_mask& mask, std::uint64_t first, Real* values, std::ptrdiff_t count) {
    constexpr std::ptrdiff_t run = 256;
    std::uint32_t room[random_room(run)];
    for (std::ptrdiff_t at = 0; at < count; at += run) {
        const std::ptrdiff_t length = (std::min)(run, count - at);
        const std::uint32_t* const words =
            random_words(best_instruction_set(), mask.seed, first + static_cast<std::uint64_t>(at),
                         static_cast<std::size_t>(length), room);
        for (std::ptrdiff_t i = 0; i < length; ++i) {
            if (words[i] < mask.threshold) values[at + i] = 0;
        }
    }
}

/// Adds scale * a b to sums.
template <class Real>
void add_product(const cpu& exec, double scale, const any_matrix& a, const any_matrix& b, Real* sums,
                 gemm_workspace* workspace) {
    multiply_matrices<Real>(exec, scale, a, b, 1.0, matrix_of_reals(sums, a.rows, b.columns), workspace);
}

/// Writes dense sums to rows of a gradient, each rounded once.
template <class Real>
void write_rounded(std::span<Real> sums, const any_matrix& to) {
    for (std::ptrdiff_t row = 0; row < to.rows && to.columns > 0; ++row) {
        put_row(sums.data() + row * to.columns, to, row);
    }
}

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
