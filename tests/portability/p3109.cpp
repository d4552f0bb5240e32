// SPDX-License-Identifier: MIT
// The operations of IEEE P3109 on numbers of different formats, on scaled numbers and on blocks.
#include <mp/p3109_operations.hpp>

#include "formats.hpp"

namespace portability {

namespace {

namespace operations = mp::p3109_operations;

using result = mp::p3109<16, 11>;
using scale = mp::p3109<8, 1, mp::signedness::is_unsigned, mp::domain::finite>;
using small = mp::p3109<8, 4>;
using other = mp::p3109<8, 3>;

constexpr mp::projection ways[]{
    {}, {.round = mp::rounding::upward}, {mp::rounding::stochastic_c, mp::saturation::finite, 5, 19}};

template <class Function>
void add_unary(report& to, const char* name, Function f) {
    checksum sum;
    for (const small x : codes<small>(256)) {
        for (const mp::projection& p : ways) sum.add(f(x, p));
    }
    to.add(std::string("p3109.") + name, sum);
}

template <class Function, class Scaled>
void add_binary(report& to, const char* name, Function f, Scaled scaled) {
    checksum sum;
    for (const small x : codes<small>(64)) {
        for (const other y : codes<other>(64)) {
            for (const mp::projection& p : ways) sum.add(f(x, y, p));
            sum.add(scaled(scale(4), x, scale(0.5F), y, ways[0]));
        }
    }
    to.add(std::string("p3109.") + name, sum);
}

}  // namespace

void add_p3109_checksums([[maybe_unused]] report& to) {
#if !defined(MP_FEW_CHECKSUMS)
#define MP_ADD_UNARY(name) add_unary(to, #name, operations::name<result>)
    MP_ADD_UNARY(convert);
    MP_ADD_UNARY(sqrt);
    MP_ADD_UNARY(recip);
    MP_ADD_UNARY(rsqrt);
    MP_ADD_UNARY(exp);
    MP_ADD_UNARY(exp2);
    MP_ADD_UNARY(exp_minus_one);
    MP_ADD_UNARY(log);
    MP_ADD_UNARY(log2);
    MP_ADD_UNARY(log_one_plus);
    MP_ADD_UNARY(softplus);
    MP_ADD_UNARY(sin);
    MP_ADD_UNARY(cos);
    MP_ADD_UNARY(tan);
    MP_ADD_UNARY(sin_pi);
    MP_ADD_UNARY(cos_pi);
    MP_ADD_UNARY(tan_pi);
    MP_ADD_UNARY(arc_sin);
    MP_ADD_UNARY(arc_cos);
    MP_ADD_UNARY(arc_tan);
    MP_ADD_UNARY(arc_sin_pi);
    MP_ADD_UNARY(arc_cos_pi);
    MP_ADD_UNARY(arc_tan_pi);
    MP_ADD_UNARY(sinh);
    MP_ADD_UNARY(cosh);
    MP_ADD_UNARY(tanh);
    MP_ADD_UNARY(arc_sinh);
    MP_ADD_UNARY(arc_cosh);
    MP_ADD_UNARY(arc_tanh);
#undef MP_ADD_UNARY
#define MP_ADD_BINARY(name) add_binary(to, #name, operations::name<result>, operations::scaled_##name<float>)
    MP_ADD_BINARY(add);
    MP_ADD_BINARY(multiply);
    MP_ADD_BINARY(divide);
    MP_ADD_BINARY(hypot);
    MP_ADD_BINARY(arc_tan2);
    MP_ADD_BINARY(arc_tan2_pi);
    MP_ADD_BINARY(maximum_magnitude_number);
#undef MP_ADD_BINARY
    const std::vector<small> numbers = codes<small>(256);
    checksum sums[4];
    for (std::size_t i = 0; i + 8 <= numbers.size(); i += 4) {
        operations::block<scale, small, 8> x{scale(8), {}};
        std::array<small, 8> elements{};
        for (std::size_t k = 0; k < 8; ++k) x.elements[k] = elements[k] = numbers[i + k];
        for (const mp::projection& p : ways) {
            sums[0].add(operations::block_reduce_add<result>(x, p));
            sums[1].add(operations::block_reduce_multiply<result>(x, p));
            sums[2].add(operations::block_dot_product<float>(x, x, p));
            const auto converted = operations::convert_to_block_max_abs_finite<scale, other>(elements, p, p);
            const auto fused = operations::block_fma<other>(x, converted, x, scale(2), p);
            sums[3].add(converted.scale);
            for (std::size_t k = 0; k < 8; ++k) sums[3].add(fused.elements[k]);
        }
    }
    to.add("p3109.block_reduce_add", sums[0]);
    to.add("p3109.block_reduce_multiply", sums[1]);
    to.add("p3109.block_dot_product", sums[2]);
    to.add("p3109.blocks", sums[3]);
#endif
}

}  // namespace portability
