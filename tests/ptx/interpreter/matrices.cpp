// SPDX-License-Identifier: MIT
// Matrix instructions of a warp: ldmatrix, stmatrix and mma.sync; wmma is in fragments.cpp.
#include "collective.hpp"
#include "memory_access.hpp"
#include "multiply.hpp"

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace ptx {

namespace {

/// Rows of 16 bytes, whose addresses lanes 8 m to 8 m + 7 have for matrix m. detail: transposed.
bool load_matrices(warp& w, const instruction& i, lane_mask m, group& g) {
    if (!whole_warp_is_here(w, m, g)) return false;
    std::array<std::array<std::array<std::uint16_t, 8>, 8>, 4> matrices{};
    for (std::size_t k = 0; k < i.list.size(); ++k) {
        for (std::size_t row = 0; row < 8; ++row) {
            const int lane = static_cast<int>(8 * k + row);
            std::memcpy(matrices[k][row].data(),
                        reach<16>(w, lane, space::shared, address_of(w, i, 1, lane), access::read), 16);
        }
    }
    for (std::size_t k = 0; k < i.list.size(); ++k) {
        for (std::size_t lane = 0; lane < warp_lanes; ++lane) {
            const std::size_t line = lane / 4, first = lane % 4 * 2;
            const std::uint32_t low = i.detail[0] != 0 ? matrices[k][first][line] : matrices[k][line][first];
            const std::uint32_t high =
                i.detail[0] != 0 ? matrices[k][first + 1][line] : matrices[k][line][first + 1];
            write_lane(w, i.list[k], static_cast<int>(lane), low | high << 16);
        }
    }
    return true;
}
bool store_matrices(warp& w, const instruction& i, lane_mask m, group& g) {
    if (!whole_warp_is_here(w, m, g)) return false;
    for (std::size_t k = 0; k < i.list.size(); ++k) {
        std::array<std::array<std::uint16_t, 8>, 8> matrix{};
        for (std::size_t lane = 0; lane < warp_lanes; ++lane) {
            const std::uint64_t pair = read_lane(w, i.list[k], static_cast<int>(lane));
            for (std::size_t half = 0; half < 2; ++half) {
                const std::size_t line = lane / 4, at = lane % 4 * 2 + half;
                const auto value = static_cast<std::uint16_t>(pair >> (16 * half));
                (i.detail[0] != 0 ? matrix[at][line] : matrix[line][at]) = value;
            }
        }
        for (std::size_t row = 0; row < 8; ++row) {
            const int lane = static_cast<int>(8 * k + row);
            std::memcpy(reach<16>(w, lane, space::shared, address_of(w, i, 1, lane), access::write),
                        matrix[row].data(), 16);
        }
    }
    return true;
}
void decode_matrices(decoder& d, instruction& to, bool loads) {
    if (!d.option("sync") || !d.option("aligned") || !d.option("m8n8")) d.fail("expected .sync.aligned.m8n8");
    const std::string_view count = d.one_of({"x1", "x2", "x4"});
    to.detail[0] = d.option("trans") ? 1 : 0;
    if (d.space_option() != space::shared || d.type() != "b16") d.fail("expected .shared.b16");
    to.list = d.elements(loads ? 0 : 1, 4);
    if (count.empty() || to.list.size() != static_cast<std::size_t>(count[1] - '0'))
        d.fail("another number of matrices");
    d.address(loads ? 1 : 0, to, 1, space::shared);
    to.try_run = loads ? &load_matrices : &store_matrices;
}

// --- mma.sync: 16 x 8 sums, 32 bytes of k

constexpr std::size_t line_bytes = 32;

/// Words of a fragment of A: lane l has bytes 4 (l % 4) of row l / 4, of row l / 4 + 8, and both 16 bytes later; of B of
/// column l / 4, twice. list: sums, A, B, addends.
enum class sum_type { float32, float16, integer };

template <sum_type Sums>
bool multiply(warp& w, const instruction& i, lane_mask m, group& g) {
    if (!whole_warp_is_here(w, m, g)) return false;
    const auto a_type = static_cast<multiplicand>(i.detail[0]),
               b_type = static_cast<multiplicand>(i.detail[1]);
    std::array<std::byte, 16 * line_bytes> a{};
    std::array<std::byte, 8 * line_bytes> b{};
    constexpr bool half_sums = Sums == sum_type::float16;
    constexpr std::size_t sums = half_sums ? 2 : 4;
    const operand* const a_words = i.list.data() + sums;
    const operand* const b_words = a_words + 4;
    const operand* const addends = b_words + 2;
    for (std::size_t lane = 0; lane < warp_lanes; ++lane) {
        const std::size_t line = lane / 4, column = lane % 4 * 4;
        const auto put = [&](std::byte* to, const operand& word) {
            const auto value = static_cast<std::uint32_t>(read_lane(w, word, static_cast<int>(lane)));
            std::memcpy(to, &value, sizeof value);
        };
        for (std::size_t k = 0; k < 4; ++k)
            put(a.data() + (line + k % 2 * 8) * line_bytes + column + k / 2 * 16, a_words[k]);
        for (std::size_t k = 0; k < 2; ++k) put(b.data() + line * line_bytes + column + k * 16, b_words[k]);
    }
    const int depth = static_cast<int>(line_bytes / bytes_of(a_type));
    using sum = std::conditional_t<half_sums, unsigned short,
                                   std::conditional_t<Sums == sum_type::integer, std::uint32_t, float>>;
    std::array<sum, 128> c{};
    // Sums 0 and 1 are in row l / 4, 2 and 3 in row l / 4 + 8, at columns 2 (l % 4) and the next one.
    const auto place_of_sum = [](std::size_t lane, std::size_t k) {
        return (lane / 4 + k / 2 * 8) * 8 + lane % 4 * 2 + k % 2;
    };
    for (std::size_t lane = 0; lane < warp_lanes; ++lane) {
        for (std::size_t k = 0; k < 4; ++k) {
            if constexpr (half_sums) {
                c[place_of_sum(lane, k)] = static_cast<unsigned short>(
                    read_lane(w, addends[k / 2], static_cast<int>(lane)) >> (16 * (k % 2)));
            } else {
                c[place_of_sum(lane, k)] = std::bit_cast<sum>(
                    static_cast<std::uint32_t>(read_lane(w, addends[k], static_cast<int>(lane))));
            }
        }
    }
    if constexpr (half_sums)
        multiply_add_half(16, 8, depth, a.data(), b.data(), c.data(), architecture_of(w));
    else if constexpr (Sums == sum_type::integer)
        multiply_add_integers(16, 8, depth, a.data(), b.data(), c.data());
    else
        multiply_add(a_type, b_type, 16, 8, depth, a.data(), b.data(), c.data(), false, architecture_of(w));
    for (std::size_t lane = 0; lane < warp_lanes; ++lane) {
        for (std::size_t k = 0; k < sums; ++k) {
            std::uint32_t value;
            if constexpr (half_sums) {
                value = c[place_of_sum(lane, 2 * k)] | std::uint32_t{c[place_of_sum(lane, 2 * k + 1)]} << 16;
            } else {
                value = std::bit_cast<std::uint32_t>(c[place_of_sum(lane, k)]);
            }
            write_lane(w, i.list[k], static_cast<int>(lane), value);
        }
    }
    return true;
}
void decode_multiply(decoder& d, instruction& to) {
    const std::string_view c_type = d.type(), b_type = d.type(), a_type = d.type(), d_type = d.type();
    if (!d.option("sync") || !d.option("aligned") || !d.option("row") || !d.option("col"))
        d.fail("expected .row.col");
    const multiplicand a = multiplicand_named(a_type), b = multiplicand_named(b_type);
    if (a == multiplicand::unknown || b == multiplicand::unknown || bytes_of(a) != bytes_of(b)) return;
    const std::string_view shape = d.one_of({"m16n8k16", "m16n8k8", "m16n8k32"});
    const std::size_t depth = shape == "m16n8k16" ? 16 : shape == "m16n8k8" ? 8 : 32;
    if (depth * bytes_of(a) != line_bytes || c_type != d_type) return;
    const bool half_sums = c_type == "f16", integers = c_type == "s32";
    if (!half_sums && !integers && c_type != "f32") return;
    const bool a_is_integer = a == multiplicand::s8, b_is_integer = b == multiplicand::s8;
    if (integers != a_is_integer || integers != b_is_integer) return;
    to.detail = {static_cast<std::int32_t>(a), static_cast<std::int32_t>(b), 0, 0};
    const std::size_t counts[] = {half_sums ? 2U : 4U, 4, 2, half_sums ? 2U : 4U};
    for (std::size_t k = 0; k < 4; ++k) {
        const std::vector<operand> words = d.elements(k, 4);
        if (words.size() != counts[k]) d.fail("another number of registers");
        to.list.insert(to.list.end(), words.begin(), words.end());
    }
    to.try_run = half_sums  ? &multiply<sum_type::float16>
                 : integers ? &multiply<sum_type::integer>
                            : &multiply<sum_type::float32>;
}

}  // namespace

void add_matrix_instructions(instruction_table& table) {
    table["ldmatrix"] = [](decoder& d, instruction& to) { decode_matrices(d, to, true); };
    table["stmatrix"] = [](decoder& d, instruction& to) { decode_matrices(d, to, false); };
    table["mma"] = &decode_multiply;
}

}  // namespace ptx
