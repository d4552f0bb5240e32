// SPDX-License-Identifier: MIT
// All 2^32 floats as arrays, rounded by the kernels of every instruction set to half, bfloat16 and both OCP
// float8 formats, to nearest even and some of them in other projections, against the conversion of single
// numbers.
#include <mp/convert.hpp>

#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#include "arrays/convert/instruction_sets.hpp"
#include "numbers/format/exhaustive/every_block.hpp"

namespace {

constexpr std::uint64_t block_size = 1U << 18;

template <class To>
bool check(const char* name) {
    const std::vector<mp::instruction_set> instruction_sets = instruction_sets_at_hand();
    const auto work = [&](oracle::disagreements& wrong, std::uint64_t block) {
        std::vector<float> from(block_size);
        for (std::uint64_t i = 0; i < block_size; ++i)
            from[i] = std::bit_cast<float>(static_cast<std::uint32_t>(block * block_size + i));
        std::vector<To> expected(block_size);
        std::vector<To> to(block_size);
        const mp::projection other{static_cast<mp::rounding>(1 + block / 16 % 5),
                                   static_cast<mp::saturation>(block / 80 % 3)};
        for (const mp::projection p : {mp::projection{}, other}) {
            // The others take the long way for single numbers: one block in sixteen, all exponents.
            if (p != mp::projection{} && block % 16 != block / 512 % 16) continue;
            for (std::uint64_t i = 0; i < block_size; ++i) expected[i] = mp::round_to<To>(from[i], p);
            for (const mp::instruction_set isa : instruction_sets) {
                mp::convert(mp::cpu{.instructions = isa}, from, to, p);
                if (std::memcmp(to.data(), expected.data(), block_size * sizeof(To)) == 0) continue;
                for (std::uint64_t i = 0; i < block_size; ++i) {
                    if (to[i].bits() != expected[i].bits()) {
                        wrong.add(static_cast<int>(isa), bits_of(from[i]), "becomes", bits_of(to[i]),
                                  "and not", bits_of(expected[i]), "rounding", static_cast<int>(p.round));
                    }
                }
            }
        }
    };
    const exhaustive::findings found =
        exhaustive::every_block(name, (std::uint64_t{1} << 32) / block_size, work);
    if (found.count != 0) std::fprintf(stderr, "%s: %ld wrong\n%s\n", name, found.count, found.first.c_str());
    return found.count == 0;
}

}  // namespace

int main() {
    bool right = check<mp::half>("floats to half");
    right = check<mp::bfloat16>("floats to bfloat16") && right;
    right = check<mp::float8_e4m3fn>("floats to e4m3fn") && right;
    right = check<mp::float8_e5m2>("floats to e5m2") && right;
    return right ? 0 : 1;
}
