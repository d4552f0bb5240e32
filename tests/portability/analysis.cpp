// SPDX-License-Identifier: MIT
// Arithmetic in formats of the run, and bits that are flipped.
#include <mp/analysis.hpp>
#include <mp/half.hpp>

#include "formats.hpp"

namespace portability {

void add_analysis_checksums(report& to) {
    constexpr std::size_t length = 1024;
    generator random(41);
    std::vector<double> a(length);
    std::vector<double> b(length);
    for (std::size_t i = 0; i < length; ++i) {
        // Of all sizes around 1, some of few bits.
        const std::uint64_t fraction = i % 3 == 0 ? 0xfff0000000000 : 0xfffffffffffff;
        const std::uint64_t field = std::uint64_t{1023 - 40 + i % 80} << 52;
        const std::uint64_t sign = std::uint64_t{1} << 63;
        a[i] = mp::detail::bit_cast<double>((random.next() & (fraction | sign)) | field);
        b[i] = mp::detail::bit_cast<double>((random.next() & (fraction | sign)) | field);
    }
    std::vector<double> out(length);
    for (mp::runtime_format format :
         {mp::runtime_format{.precision = 11, .emin = -14, .emax = 15},
          mp::runtime_format{.precision = 3, .emin = -10, .emax = 15, .subnormals = false},
          mp::runtime_format{.precision = 28, .emin = -60, .emax = 60}, mp::runtime_format{}}) {
        checksum sum;
        for (int round = 0; round < 9; ++round) {
            format.round = static_cast<mp::rounding>(round);
            format.random_bits = 9;
            const mp::runtime_arithmetic arithmetic(format);
            const mp::cpu exec{1, mp::instruction_set::portable};
            arithmetic.round(exec, a, out, 7);
            sum.add(out);
            arithmetic.add(exec, a, b, out, 7);
            sum.add(out);
            arithmetic.multiply(exec, a, b, out, 7);
            sum.add(out);
            arithmetic.divide(exec, a, b, out, 7);
            sum.add(out);
            arithmetic.sqrt(exec, a, out, 7);
            sum.add(out);
            for (std::size_t i = 0; i < length; ++i)
                sum.add(arithmetic.fma(a[i], b[i], a[length - 1 - i], 5));
        }
        to.add("analysis.precision_" + std::to_string(format.precision), sum);
    }
    checksum flips;
    std::vector<mp::half> values(length);
    for (const mp::bit_flip_options& options : {mp::bit_flip_options{.seed = 3, .count = 100},
                                                mp::bit_flip_options{.seed = 4, .probability = 0.02}}) {
        for (const mp::bit_flip& it : mp::flip_bits(values, options))
            flips.add_word(it.index * 16 + static_cast<std::uint64_t>(it.bit));
    }
    flips.add_code(values);
    to.add("analysis.bit_flips", flips);
}

}  // namespace portability
