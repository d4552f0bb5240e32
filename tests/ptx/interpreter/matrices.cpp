// SPDX-License-Identifier: MIT
// Matrix instructions of a warp: ldmatrix, stmatrix, mma.sync and wmma.
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

// --- wmma: where lanes hold what is not said, so it is anything here, and 16 x 16 elements of two bytes are there twice

/// Which element of 256 lane `lane` holds as number k of 8, in an order that nobody could guess.
constexpr std::size_t fragment_element(std::size_t lane, std::size_t k) {
    return (lane * 8 + k) * 77 % 256;
}

/// o[1]: address, o[2]: pitch in elements. detail: rows of memory run along rows of the fragment (A) or of k (B).
bool load_fragment(warp& w, const instruction& i, lane_mask m, group& g) {
    if (!whole_warp_is_here(w, m, g)) return false;
    const std::uint64_t pitch = uniform(w, i.o[2], m);
    std::array<std::uint16_t, 256> values{};
    for (std::size_t row = 0; row < 16; ++row) {
        for (std::size_t column = 0; column < 16; ++column) {
            const std::uint64_t at =
                address_of(w, i, 1, 0) + 2 * (i.detail[0] != 0 ? row * pitch + column : column * pitch + row);
            std::memcpy(&values[row * 16 + column], reach<2>(w, 0, space::shared, at, access::read), 2);
        }
    }
    if (address_of(w, i, 1, 0) % 32 != 0 || pitch % 8 != 0)
        w.fail(0, "has an address or a pitch that is not aligned");
    for (std::size_t lane = 0; lane < warp_lanes; ++lane) {
        for (std::size_t k = 0; k < 8; ++k) {
            const std::uint32_t pair = values[fragment_element(lane, 2 * k % 8)] |
                                       std::uint32_t{values[fragment_element(lane, (2 * k + 1) % 8)]} << 16;
            write_lane(w, i.list[k], static_cast<int>(lane), pair);
        }
    }
    return true;
}
void read_fragment(const warp& w, const operand* words, std::array<std::uint16_t, 256>& to) {
    for (std::size_t lane = 0; lane < warp_lanes; ++lane) {
        for (std::size_t k = 0; k < 8; ++k) {
            to[fragment_element(lane, k)] = static_cast<std::uint16_t>(
                read_lane(w, words[k / 2], static_cast<int>(lane)) >> (16 * (k % 2)));
        }
    }
}
/// list: sums, A, B, addends, 8 each. Fragments of A are rows of k, of B as well: rows of k, then columns.
bool multiply_fragments(warp& w, const instruction& i, lane_mask m, group& g) {
    if (!whole_warp_is_here(w, m, g)) return false;
    std::array<std::uint16_t, 256> a{}, b{}, columns{};
    read_fragment(w, i.list.data() + 8, a);
    read_fragment(w, i.list.data() + 16, b);
    for (std::size_t k = 0; k < 256; ++k) columns[k % 16 * 16 + k / 16] = b[k];
    std::array<float, 256> c{};
    for (std::size_t lane = 0; lane < warp_lanes; ++lane) {
        for (std::size_t k = 0; k < 8; ++k) {
            c[fragment_element(lane, k)] = std::bit_cast<float>(
                static_cast<std::uint32_t>(read_lane(w, i.list[24 + k], static_cast<int>(lane))));
        }
    }
    multiply_add(static_cast<multiplicand>(i.detail[0]), static_cast<multiplicand>(i.detail[0]), 16, 16, 16,
                 reinterpret_cast<const std::byte*>(a.data()),
                 reinterpret_cast<const std::byte*>(columns.data()), c.data(), false, architecture_of(w));
    for (std::size_t lane = 0; lane < warp_lanes; ++lane) {
        for (std::size_t k = 0; k < 8; ++k) {
            write_lane(w, i.list[k], static_cast<int>(lane),
                       std::bit_cast<std::uint32_t>(c[fragment_element(lane, k)]));
        }
    }
    return true;
}
bool store_fragment(warp& w, const instruction& i, lane_mask m, group& g) {
    if (!whole_warp_is_here(w, m, g)) return false;
    const std::uint64_t pitch = uniform(w, i.o[2], m);
    for (std::size_t lane = 0; lane < warp_lanes; ++lane) {
        for (std::size_t k = 0; k < 8; ++k) {
            const std::size_t row = fragment_element(lane, k) / 16, column = fragment_element(lane, k) % 16;
            const std::uint64_t at =
                address_of(w, i, 1, 0) + 4 * (i.detail[0] != 0 ? row * pitch + column : column * pitch + row);
            const auto value = static_cast<std::uint32_t>(read_lane(w, i.list[k], static_cast<int>(lane)));
            std::memcpy(reach<4>(w, static_cast<int>(lane), space::shared, at, access::write), &value, 4);
        }
    }
    return true;
}
void decode_fragments(decoder& d, instruction& to) {
    const std::string_view what = d.one_of({"load", "store", "mma"});
    const bool is_b = d.option("b");
    if (!is_b) d.one_of({"a", "d"});
    if (!d.option("sync") || !d.option("aligned")) d.fail("expected .sync.aligned");
    if (!d.option("m16n16k16")) return;
    if (what == "mma") {
        // The fragments know how memory lay.
        if (d.one_of({"row", "col"}).empty() || d.one_of({"row", "col"}).empty()) d.fail("expected orders");
        if (d.type() != "f32") return;
        to.detail[0] = static_cast<std::int32_t>(multiplicand::f16);
        if (d.option("bf16")) {
            d.option("bf16");
            to.detail[0] = static_cast<std::int32_t>(multiplicand::bf16);
        }
        if (!d.option("f32")) return;
        for (std::size_t k = 0; k < 4; ++k) {
            const std::vector<operand> words = d.elements(k, 4);
            // bfloat16 has 4 words of A and B.
            if (words.size() != 8 && !(words.size() == 4 && k % 3 != 0))
                d.fail("another number of registers");
            to.list.insert(to.list.end(), words.begin(), words.end());
            to.list.resize(8 * (k + 1));
        }
        to.try_run = &multiply_fragments;
        return;
    }
    const bool loads = what == "load";
    to.detail[0] = d.one_of({"row", "col"}) == "row" ? 1 : 0;
    const std::string_view type = d.type();
    if (d.space_option() != space::shared) return;
    to.list = d.elements(loads ? 0 : 1, 4);
    if (to.list.size() != 8 && to.list.size() != 4) return;
    d.address(loads ? 1 : 0, to, 1, space::shared);
    to.o[2] = d.value(2, 4);
    if (loads && (type == "f16" || type == "bf16")) {
        to.list.resize(8);
        to.try_run = &load_fragment;
    }
    if (!loads && type == "f32") to.try_run = &store_fragment;
}

}  // namespace

void add_matrix_instructions(instruction_table& table) {
    table["ldmatrix"] = [](decoder& d, instruction& to) { decode_matrices(d, to, true); };
    table["stmatrix"] = [](decoder& d, instruction& to) { decode_matrices(d, to, false); };
    table["mma"] = &decode_multiply;
    table["wmma"] = &decode_fragments;
}

}  // namespace ptx
