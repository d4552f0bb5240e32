// SPDX-License-Identifier: MIT
// wmma: fragments of A, B and sums. Where lanes hold what is not said, so it is anything here, and something else for
// each shape; 16 x 16 elements of half are there twice.
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

constexpr std::size_t extent = 16;  ///< rows of A, columns of B

/// Which element of a fragment with `each` of them in a lane `lane` holds as number k, in an order that nobody could
/// guess. `depth` is k of the shape.
constexpr std::size_t fragment_element(std::size_t lane, std::size_t k, std::size_t each, std::size_t depth) {
    return (lane * each + k) * (depth == 16 ? 77 : 53) % (warp_lanes * each);
}
/// Elements of A or B in a lane.
constexpr std::size_t elements_in_lane(std::size_t depth) {
    return extent * depth / warp_lanes;
}
constexpr std::size_t sums_in_lane = 8;

template <class Element>
constexpr std::size_t depth_of = sizeof(Element) == 2 ? 16 : 8;

/// o[1]: address, o[2]: pitch in elements. detail: rows of memory run along rows of the fragment, it is of B.
template <class Element>
bool load_fragment(warp& w, const instruction& i, lane_mask m, group& g) {
    if (!whole_warp_is_here(w, m, g)) return false;
    constexpr std::size_t depth = depth_of<Element>, each = elements_in_lane(depth);
    const std::size_t rows = i.detail[1] != 0 ? depth : extent, columns = extent * depth / rows;
    const std::uint64_t pitch = uniform(w, i.o[2], m);
    std::array<Element, extent * depth> values{};
    for (std::size_t row = 0; row < rows; ++row) {
        for (std::size_t column = 0; column < columns; ++column) {
            const std::uint64_t at =
                address_of(w, i, 1, 0) +
                sizeof(Element) * (i.detail[0] != 0 ? row * pitch + column : column * pitch + row);
            std::memcpy(&values[row * columns + column],
                        reach<sizeof(Element)>(w, 0, space::shared, at, access::read), sizeof(Element));
        }
    }
    if (address_of(w, i, 1, 0) % 32 != 0 || pitch * sizeof(Element) % 16 != 0)
        w.fail(0, "has an address or a pitch that is not aligned");
    for (std::size_t lane = 0; lane < warp_lanes; ++lane) {
        const auto element = [&](std::size_t k) {
            return std::uint32_t{values[fragment_element(lane, k % each, each, depth)]};
        };
        for (std::size_t k = 0; k < i.list.size(); ++k) {
            write_lane(w, i.list[k], static_cast<int>(lane),
                       sizeof(Element) == 4 ? element(k) : element(2 * k) | element(2 * k + 1) << 16);
        }
    }
    return true;
}
template <class Element>
void read_fragment(const warp& w, const operand* words, std::array<Element, extent * depth_of<Element>>& to) {
    constexpr std::size_t depth = depth_of<Element>, each = elements_in_lane(depth);
    constexpr std::size_t in_word = 4 / sizeof(Element);
    for (std::size_t lane = 0; lane < warp_lanes; ++lane) {
        for (std::size_t k = 0; k < each; ++k) {
            const std::uint64_t word = read_lane(w, words[k / in_word], static_cast<int>(lane));
            to[fragment_element(lane, k, each, depth)] =
                static_cast<Element>(word >> (8 * sizeof(Element) * (k % in_word)));
        }
    }
}
/// list: sums, A, B, addends, with room for 8 each. Of A there are rows of k, of B as well: rows of k, then columns.
template <class Element>
bool multiply_fragments(warp& w, const instruction& i, lane_mask m, group& g) {
    if (!whole_warp_is_here(w, m, g)) return false;
    constexpr std::size_t depth = depth_of<Element>;
    std::array<Element, extent * depth> a{}, b{}, columns{};
    read_fragment<Element>(w, i.list.data() + 8, a);
    read_fragment<Element>(w, i.list.data() + 16, b);
    for (std::size_t k = 0; k < b.size(); ++k) columns[k % extent * depth + k / extent] = b[k];
    std::array<float, extent * extent> c{};
    for (std::size_t lane = 0; lane < warp_lanes; ++lane) {
        for (std::size_t k = 0; k < sums_in_lane; ++k) {
            c[fragment_element(lane, k, sums_in_lane, depth)] = std::bit_cast<float>(
                static_cast<std::uint32_t>(read_lane(w, i.list[24 + k], static_cast<int>(lane))));
        }
    }
    const auto type = static_cast<multiplicand>(i.detail[0]);
    multiply_add(type, type, extent, extent, depth, reinterpret_cast<const std::byte*>(a.data()),
                 reinterpret_cast<const std::byte*>(columns.data()), c.data(), false, architecture_of(w));
    for (std::size_t lane = 0; lane < warp_lanes; ++lane) {
        for (std::size_t k = 0; k < sums_in_lane; ++k) {
            write_lane(w, i.list[k], static_cast<int>(lane),
                       std::bit_cast<std::uint32_t>(c[fragment_element(lane, k, sums_in_lane, depth)]));
        }
    }
    return true;
}
/// detail: rows of memory are rows, k of the shape.
bool store_fragment(warp& w, const instruction& i, lane_mask m, group& g) {
    if (!whole_warp_is_here(w, m, g)) return false;
    const std::uint64_t pitch = uniform(w, i.o[2], m);
    for (std::size_t lane = 0; lane < warp_lanes; ++lane) {
        for (std::size_t k = 0; k < sums_in_lane; ++k) {
            const std::size_t element =
                fragment_element(lane, k, sums_in_lane, static_cast<std::size_t>(i.detail[1]));
            const std::size_t row = element / extent, column = element % extent;
            const std::uint64_t at =
                address_of(w, i, 1, 0) + 4 * (i.detail[0] != 0 ? row * pitch + column : column * pitch + row);
            const auto value = static_cast<std::uint32_t>(read_lane(w, i.list[k], static_cast<int>(lane)));
            std::memcpy(reach<4>(w, static_cast<int>(lane), space::shared, at, access::write), &value, 4);
        }
    }
    return true;
}

void decode_product(decoder& d, instruction& to, std::size_t depth) {
    // The fragments know how memory lay.
    if (d.one_of({"row", "col"}).empty() || d.one_of({"row", "col"}).empty()) d.fail("expected orders");
    if (d.type() != "f32") return;
    // Without a type the operands are half.
    multiplicand type = multiplicand::f16;
    for (const multiplicand other : {multiplicand::bf16, multiplicand::tf32}) {
        const std::string_view name = other == multiplicand::bf16 ? "bf16" : "tf32";
        if (!d.option(name)) continue;
        if (!d.option(name)) d.fail("expected one type of A and B");
        type = other;
    }
    if (!d.option("f32") || (depth == 8) != (type == multiplicand::tf32)) return;
    to.detail[0] = static_cast<std::int32_t>(type);
    const std::size_t operand_words = type == multiplicand::f16 ? 8 : 4;
    for (std::size_t k = 0; k < 4; ++k) {
        const std::vector<operand> words = d.elements(k, 4);
        if (words.size() != (k % 3 == 0 ? sums_in_lane : operand_words))
            d.fail("another number of registers");
        to.list.insert(to.list.end(), words.begin(), words.end());
        to.list.resize(8 * (k + 1));
    }
    to.try_run = depth == 8 ? &multiply_fragments<std::uint32_t> : &multiply_fragments<std::uint16_t>;
}

void decode_fragments(decoder& d, instruction& to) {
    const std::string_view what = d.one_of({"load", "store", "mma"});
    const bool is_b = d.option("b");
    if (!is_b) d.one_of({"a", "d"});
    if (!d.option("sync") || !d.option("aligned")) d.fail("expected .sync.aligned");
    const std::string_view shape = d.one_of({"m16n16k16", "m16n16k8"});
    if (shape.empty()) return;
    const std::size_t depth = shape == "m16n16k8" ? 8 : 16;
    if (what == "mma") {
        decode_product(d, to, depth);
        return;
    }
    const bool loads = what == "load";
    to.detail[0] = d.one_of({"row", "col"}) == "row" ? 1 : 0;
    const std::string_view type = d.type();
    if (d.space_option() != space::shared) return;
    to.list = d.elements(loads ? 0 : 1, 4);
    d.address(loads ? 1 : 0, to, 1, space::shared);
    to.o[2] = d.value(2, 4);
    if (!loads) {
        to.detail[1] = static_cast<std::int32_t>(depth);
        if (type == "f32" && to.list.size() == sums_in_lane) to.try_run = &store_fragment;
        return;
    }
    to.detail[1] = is_b ? 1 : 0;
    if (to.list.size() != (type == "f16" ? 8U : 4U)) return;
    if (depth == 16 && (type == "f16" || type == "bf16")) to.try_run = &load_fragment<std::uint16_t>;
    if (depth == 8 && type == "tf32") to.try_run = &load_fragment<std::uint32_t>;
}

}  // namespace

void add_fragment_instructions(instruction_table& table) {
    table["wmma"] = &decode_fragments;
}

}  // namespace ptx
