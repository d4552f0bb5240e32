// SPDX-License-Identifier: MIT
// Arrays of half and bfloat16 on every instruction set of the processor against the operators on numbers: all
// 2^32 pairs for + - * /, and 2^32 triples for fma, of which half are built to cancel.
#include <mp/array.hpp>
#include <mp/bfloat16.hpp>
#include <mp/half.hpp>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "arrays/array/arrays.hpp"
#include "numbers/format/exhaustive/every_block.hpp"
#include "oracle/random.hpp"

namespace {

constexpr std::size_t block_size = 1U << 16;

template <class Value>
struct buffers {
    std::vector<Value> a = std::vector<Value>(block_size), b = a, c = a, expected = a, out = a;
};

/// Compares one operation on one block on all instruction sets.
template <class Value, class Array, class Number>
void compare(oracle::disagreements& wrong, const char* name, buffers<Value>& in, Array array, Number number) {
    for (std::size_t i = 0; i < block_size; ++i) in.expected[i] = number(in.a[i], in.b[i], in.c[i]);
    for (const auto isa : arrays::instruction_sets()) {
        // The portable one is the operators in a loop, and two run the kernels of the instruction sets below them.
        if (isa == mp::instruction_set::portable || isa == mp::instruction_set::avx512_bf16 ||
            isa == mp::instruction_set::amx) {
            continue;
        }
        array(mp::cpu{.instructions = isa});
        for (std::size_t i = 0; i < block_size; ++i) {
            if (!arrays::agree(in.out[i], in.expected[i])) {
                wrong.add(name, "instructions", static_cast<int>(isa), "of", in.a[i].bits(), in.b[i].bits(),
                          in.c[i].bits(), "is", in.out[i].bits(), "instead of", in.expected[i].bits());
            }
        }
    }
}

template <class Value>
bool all_pairs(const char* name) {
    const exhaustive::findings found =
        exhaustive::every_block(name, 1U << 16, [](oracle::disagreements& wrong, std::uint64_t block) {
            thread_local buffers<Value> in;
            for (std::uint32_t code = 0; code < block_size; ++code) {
                in.a[code] = oracle::value_of<Value>(block);
                in.b[code] = oracle::value_of<Value>(code);
            }
            using value = Value;
            compare(
                wrong, "sum", in, [](mp::cpu exec) { mp::add(exec, in.a, in.b, in.out); },
                [](value a, value b, value) { return a + b; });
            compare(
                wrong, "difference", in, [](mp::cpu exec) { mp::subtract(exec, in.a, in.b, in.out); },
                [](value a, value b, value) { return a - b; });
            compare(
                wrong, "product", in, [](mp::cpu exec) { mp::multiply(exec, in.a, in.b, in.out); },
                [](value a, value b, value) { return a * b; });
            compare(
                wrong, "quotient", in, [](mp::cpu exec) { mp::divide(exec, in.a, in.b, in.out); },
                [](value a, value b, value) { return a / b; });
        });
    std::printf("%s, all pairs: %ld wrong\n%s", name, found.count, found.first.c_str());
    return found.count == 0;
}

template <class Value>
bool triples(const char* name) {
    const exhaustive::findings found =
        exhaustive::every_block(name, 1U << 16, [](oracle::disagreements& wrong, std::uint64_t block) {
            thread_local buffers<Value> in;
            const oracle::format& f = oracle::format_of<Value>;
            oracle::random_bits random(block);
            for (std::size_t i = 0; i < block_size; ++i) {
                in.a[i] = oracle::value_of<Value>(weighted_code(random, f));
                in.b[i] = oracle::value_of<Value>(weighted_code(random, f));
                if (i % 2 == 0) {
                    in.c[i] = oracle::value_of<Value>(weighted_code(random, f));
                } else {
                    // Within some units of minus the product, or far below it.
                    const std::uint32_t product = (in.a[i] * in.b[i]).bits() ^ 0x8000U;
                    const std::uint32_t distance = random.below(7) - 3;
                    const std::uint32_t steps =
                        random.below(static_cast<std::uint32_t>(2 * f.fraction_bits + 4)) << f.fraction_bits;
                    in.c[i] = oracle::value_of<Value>((i % 4 == 1 ? product + distance : product - steps) &
                                                      0xffffU);
                }
            }
            compare(
                wrong, "fused product", in, [](mp::cpu exec) { mp::fma(exec, in.a, in.b, in.c, in.out); },
                [](Value a, Value b, Value c) { return mp::fma(a, b, c); });
        });
    std::printf("%s, fused products: %ld wrong\n%s", name, found.count, found.first.c_str());
    return found.count == 0;
}

}  // namespace

int main() {
    bool right = all_pairs<mp::half>("half");
    right &= all_pairs<mp::bfloat16>("bfloat16");
    right &= triples<mp::half>("half fma");
    right &= triples<mp::bfloat16>("bfloat16 fma");
    return right ? 0 : 1;
}
