// SPDX-License-Identifier: MIT
/// \file
/// Arithmetic in a format that is chosen when the program runs, of single doubles and of arrays.
#pragma once

#include <mp/arrays/analysis/runtime_format.hpp>
#include <mp/arrays/array/arguments.hpp>
#include <mp/base/contiguous.hpp>
#include <mp/base/parallel.hpp>
#include <mp/executor.hpp>
#include <mp/numbers/format/philox.hpp>
#include <mp/numbers/rules/random_words.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>
#include <mp/numbers/simd/select_target.hpp>
#include <mp/numbers/simd/vec.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
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

/// A contiguous range of doubles.
template <class Range>
concept double_range = contiguous<Range> && std::same_as<std::remove_cv_t<contiguous_element<Range>>, double>;

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// + - * / fma and sqrt in a runtime_format. Every result is the exact one of the operands rounded once, in every
/// direction, for every precision and whatever doubles the operands are: where rounding the double would round twice, it
/// does not.
///
///     const mp::runtime_arithmetic half({.precision = 11, .emin = -14, .emax = 15});
///     double x = half.add(1.0, 0x1p-11);                                  // 1
///     half.multiply(mp::cpu{.threads = 4}, a, b, products);               // arrays of doubles
///
/// The random bits of stochastic rounding are an argument, or for element i of an array mp::random_bits(seed, i). Arrays
/// have as many elements each, and `out` may be one of the inputs; the same bits for every number of threads and every
/// instruction set. Which NaN an invalid operation gives is not said.
class runtime_arithmetic {
public:
    /// \throws argument_error  double has no such format, or stochastic rounding wants more than 62 bits
    explicit runtime_arithmetic(const runtime_format& format)
        : format_(format), rounding_(detail::checked_rounding("mp::runtime_arithmetic", format)) {}

    [[nodiscard]] const runtime_format& format() const noexcept { return format_; }
    /// The largest number, and the smallest positive one.
    [[nodiscard]] double largest() const noexcept { return detail::with_sign(rounding_.max_code, false); }
    [[nodiscard]] double smallest() const noexcept {
        return detail::bit_cast<double>(
            detail::round_and_pack<formats::binary64>({false, rounding_.quantum, 1}, projection{}));
    }

    /// The exact result, rounded once to the format; operands may be any doubles. `random` are the bits of stochastic rounding.
    [[nodiscard]] double round(double x, std::uint32_t random = 0) const noexcept {
        return detail::runtime_round::apply(x, x, rounding_, random);
    }
    [[nodiscard]] double add(double a, double b, std::uint32_t random = 0) const noexcept {
        return detail::runtime_add::apply(a, b, rounding_, random);
    }
    [[nodiscard]] double subtract(double a, double b, std::uint32_t random = 0) const noexcept {
        return detail::runtime_subtract::apply(a, b, rounding_, random);
    }
    [[nodiscard]] double multiply(double a, double b, std::uint32_t random = 0) const noexcept {
        return detail::runtime_multiply::apply(a, b, rounding_, random);
    }
    [[nodiscard]] double divide(double a, double b, std::uint32_t random = 0) const noexcept {
        return detail::runtime_divide::apply(a, b, rounding_, random);
    }
    [[nodiscard]] double sqrt(double x, std::uint32_t random = 0) const noexcept {
        return detail::runtime_sqrt::apply(x, x, rounding_, random);
    }
    /// a b + c, rounded once.
    [[nodiscard]] double fma(double a, double b, double c, std::uint32_t random = 0) const noexcept {
        return detail::runtime_fma(a, b, c, rounding_, random);
    }

    /// \throws argument_error  with nothing written: sizes differ, ranges overlap but are not the same, a range is null
    ///                         but not empty, exec.threads is less than one, or the processor lacks exec.instructions
    template <detail::double_range X, detail::double_range Out>
    void round(cpu exec, const X& x, Out&& out, std::uint64_t seed = 0) const {
        run<detail::runtime_round>("mp::runtime_arithmetic::round", exec, x, x, out, seed);
    }
    template <detail::double_range A, detail::double_range B, detail::double_range Out>
    void add(cpu exec, const A& a, const B& b, Out&& out, std::uint64_t seed = 0) const {
        run<detail::runtime_add>("mp::runtime_arithmetic::add", exec, a, b, out, seed);
    }
    template <detail::double_range A, detail::double_range B, detail::double_range Out>
    void subtract(cpu exec, const A& a, const B& b, Out&& out, std::uint64_t seed = 0) const {
        run<detail::runtime_subtract>("mp::runtime_arithmetic::subtract", exec, a, b, out, seed);
    }
    template <detail::double_range A, detail::double_range B, detail::double_range Out>
    void multiply(cpu exec, const A& a, const B& b, Out&& out, std::uint64_t seed = 0) const {
        run<detail::runtime_multiply>("mp::runtime_arithmetic::multiply", exec, a, b, out, seed);
    }
    template <detail::double_range A, detail::double_range B, detail::double_range Out>
    void divide(cpu exec, const A& a, const B& b, Out&& out, std::uint64_t seed = 0) const {
        run<detail::runtime_divide>("mp::runtime_arithmetic::divide", exec, a, b, out, seed);
    }
    template <detail::double_range X, detail::double_range Out>
    void sqrt(cpu exec, const X& x, Out&& out, std::uint64_t seed = 0) const {
        run<detail::runtime_sqrt>("mp::runtime_arithmetic::sqrt", exec, x, x, out, seed);
    }

private:
    template <class Operation, class A, class B, class Out>
    void run(std::string_view function, const cpu& exec, const A& a, const B& b, Out& out,
             std::uint64_t seed) const {
        const std::span<double> target = detail::as_span(out);
        const detail::array_input<double> x{"a", detail::as_span(a)};
        const detail::array_input<double> y{"b", detail::as_span(b)};
        const instruction_set isa = detail::check_elementwise(function, exec, target, x, y);
        const auto kernel = detail::runtime_kernel_for<Operation>(isa, rounding_);
        detail::parallel_for(exec, target.size(), std::size_t{1} << 14,
                             [&](std::size_t begin, std::size_t end) {
                                 kernel(rounding_, x.values.data() + begin, y.values.data() + begin,
                                        target.data() + begin, end - begin, seed, begin);
                             });
    }

    runtime_format format_;
    detail::runtime_rounding rounding_;
};

}}  // namespace mp
