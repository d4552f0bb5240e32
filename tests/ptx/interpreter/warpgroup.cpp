// SPDX-License-Identifier: MIT
// wgmma: products of warpgroups, whose operands lie in shared memory where descriptors say. Each warp has the 16 rows of
// its sums. They are written when the product is waited for, and the operands are read either then or when it begins: what
// is not there yet, or not any more, is seen.
#include "collective.hpp"
#include "memory_access.hpp"
#include "multiply.hpp"
#include "tensor_map.hpp"

#include <array>
#include <bit>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace ptx {

namespace {

/// What a descriptor says; all in bytes.
struct descriptor {
    explicit descriptor(std::uint64_t bits)
        : start(static_cast<std::uint32_t>(bits & 0x3FFFU) << 4),
          leading(static_cast<std::uint32_t>(bits >> 16 & 0x3FFFU) << 4),
          stride(static_cast<std::uint32_t>(bits >> 32 & 0x3FFFU) << 4) {
        static constexpr std::uint32_t modes[] = {0, 128, 64, 32};
        swizzle = modes[bits >> 62];
    }
    std::uint32_t start, leading, stride, swizzle;

    /// Where the byte `byte` of 16 lies of a line of an operand whose neighbours in memory run along k.
    [[nodiscard]] std::uint32_t along_k(std::uint32_t line, std::uint32_t byte) const {
        if (swizzle == 0) return start + line / 8 * stride + line % 8 * 16 + byte / 16 * leading + byte % 16;
        return swizzled(start + line / 8 * stride + line % 8 * swizzle + byte, swizzle);
    }
    /// And of one of two bytes an element whose neighbours run along the lines.
    [[nodiscard]] std::uint32_t along_lines(std::uint32_t line, std::uint32_t k) const {
        const std::uint32_t chunk = line / 8, within = line % 8 * 2;
        if (swizzle == 0) return start + chunk * stride + within + k / 8 * leading + k % 8 * 16;
        const std::uint32_t chunks = swizzle / 16;
        return swizzled(start + chunk / chunks * leading + chunk % chunks * 16 + within + k / 8 * stride +
                            k % 8 * swizzle,
                        swizzle);
    }
};

constexpr int depth_bytes = 32;

/// Bytes that no lane reads by itself.
template <std::size_t Bytes>
const std::byte* bytes_for_unit(warp& w, std::uint32_t at) {
    return locate(w, 0, space::shared, at, Bytes, access::read).bytes;
}

/// Lines of an operand from `first` on.
std::vector<std::byte> read_operand(warp& w, const descriptor& from, std::uint32_t first, std::uint32_t lines,
                                    bool transposed) {
    std::vector<std::byte> result(lines * depth_bytes);
    for (std::uint32_t line = 0; line < lines; ++line) {
        std::byte* const to = result.data() + line * depth_bytes;
        if (transposed) {
            for (std::uint32_t k = 0; k < depth_bytes / 2; ++k) {
                const std::uint32_t at = from.along_lines(first + line, k);
                std::memcpy(to + 2 * k, bytes_for_unit<2>(w, at), 2);
            }
        } else {
            for (std::uint32_t byte = 0; byte < depth_bytes; byte += 16) {
                const std::uint32_t at = from.along_k(first + line, byte);
                std::memcpy(to + byte, bytes_for_unit<16>(w, at), 16);
            }
        }
    }
    return result;
}

/// Tells that an operand has been read, 16 bytes after 16.
void note_operand(warp& w, const descriptor& from, std::uint32_t first, std::uint32_t lines, bool transposed,
                  const knowledge& by, stamp now) {
    const auto note = [&](std::uint32_t at) {
        note_unit(w, 0, locate_shared(w, 0, at, 16), 16, access::read, by, now);
    };
    for (std::uint32_t line = 0; line < lines; line += transposed ? 8 : 1) {
        if (transposed) {
            for (std::uint32_t k = 0; k < depth_bytes / 2; ++k) note(from.along_lines(first + line, k));
        } else {
            for (std::uint32_t byte = 0; byte < depth_bytes; byte += 16)
                note(from.along_k(first + line, byte));
        }
    }
}

/// detail: types of A and B, columns, flags (1: A transposed, 2: B transposed, 4: A in registers). list: sums, which are
/// integers for s8, and registers of A.
struct product {
    const instruction* what;
    std::size_t frame;
    descriptor a_from, b_from;
    bool adds;
    known knows;  ///< its warp, when it began
    std::vector<std::byte> a{}, b{};

    void read(warp& w) {
        const instruction* const now = w.current;
        w.current = what;
        const auto row = static_cast<std::uint32_t>(w.number % 4 * 16);
        a = (what->detail[3] & 4) != 0 ? read_registers(w)
                                       : read_operand(w, a_from, row, 16, (what->detail[3] & 1) != 0);
        b = read_operand(w, b_from, 0, static_cast<std::uint32_t>(what->detail[2]),
                         (what->detail[3] & 2) != 0);
        w.current = now;
    }

    /// Word k of a lane has bytes 4 (l % 4) of row l / 4; every second one 8 rows, every second pair 16 bytes later.
    [[nodiscard]] std::vector<std::byte> read_registers(const warp& w) const {
        std::vector<std::byte> result(16 * depth_bytes);
        for (std::size_t k = 0; k < 4; ++k) {
            const operand& from = what->list[static_cast<std::size_t>(what->detail[2]) / 2 + k];
            const auto* const words = reinterpret_cast<const std::uint32_t*>(
                reinterpret_cast<const std::byte*>(w.registers.data()) + frame + from.at);
            for (std::size_t lane = 0; lane < warp_lanes; ++lane) {
                const std::size_t row = lane / 4 + k % 2 * 8, byte = lane % 4 * 4 + k / 2 * 16;
                std::memcpy(result.data() + row * depth_bytes + byte, &words[lane], 4);
            }
        }
        return result;
    }

    void note_operands(warp& w) const {
        const instruction* const now = w.current;
        w.current = what;
        const stamp done = tick(w, unit_of_warp(w), w.unit_clock);
        const auto row = static_cast<std::uint32_t>(w.number % 4 * 16);
        if ((what->detail[3] & 4) == 0)
            note_operand(w, a_from, row, 16, (what->detail[3] & 1) != 0, *knows, done);
        note_operand(w, b_from, 0, static_cast<std::uint32_t>(what->detail[2]), (what->detail[3] & 2) != 0,
                     *knows, done);
        w.current = now;
    }

    void finish(warp& w) {
        if (a.empty()) read(w);
        note_operands(w);
        const auto a_type = static_cast<multiplicand>(what->detail[0]),
                   b_type = static_cast<multiplicand>(what->detail[1]);
        const int columns = what->detail[2];
        const int k = static_cast<int>(depth_bytes / bytes_of(a_type));
        if (a_type == multiplicand::s8) {
            add<std::uint32_t>(w, [&](std::uint32_t* sums) {
                multiply_add_integers(16, columns, k, a.data(), b.data(), sums);
            });
        } else {
            add<float>(w, [&](float* sums) {
                multiply_add(a_type, b_type, 16, columns, k, a.data(), b.data(), sums, true,
                             architecture_of(w));
            });
        }
    }

    /// Calls multiply(sums), whose rows follow each other.
    template <class Sum, class Multiply>
    void add(warp& w, Multiply multiply) const {
        const auto columns = static_cast<std::size_t>(what->detail[2]);
        std::vector<Sum> sums(16 * columns);
        // Sum k of a lane: row l / 4, or 8 rows later for every second pair; 8 columns for each four.
        const auto for_sums = [&](auto f) {
            for (std::size_t k = 0; k < columns / 2; ++k) {
                auto* const words = reinterpret_cast<std::uint32_t*>(
                    reinterpret_cast<std::byte*>(w.registers.data()) + frame + what->list[k].at);
                for (std::size_t lane = 0; lane < warp_lanes; ++lane) {
                    const std::size_t row = lane / 4 + k / 2 % 2 * 8;
                    f(words[lane], sums[row * columns + k / 4 * 8 + lane % 4 * 2 + k % 2]);
                }
            }
        };
        if (adds) for_sums([](std::uint32_t word, Sum& sum) { sum = std::bit_cast<Sum>(word); });
        multiply(sums.data());
        for_sums([](std::uint32_t& word, Sum sum) { word = std::bit_cast<std::uint32_t>(sum); });
    }
};

bool begin_product(warp& w, const instruction& i, lane_mask m, group& g) {
    if (!whole_warp_is_here(w, m, g)) return false;
    if (static_cast<std::size_t>(w.number / 4 * 4 + 4) > w.in->warps.size())
        w.fail(0, "is in no warpgroup of 4 warps");
    if (!w.products_fenced) w.fail(0, "begins a product without wgmma.fence before it");
    const lane_mask adds = read_predicate(w, i.o[2]);
    if (adds != 0 && adds != ~lane_mask{0}) w.fail(0, "adds in some lanes only");
    const descriptor a_from(i.o[0].is_used() ? uniform(w, i.o[0], m) : 0), b_from(uniform(w, i.o[1], m));
    product it{&i, g.frame, a_from, b_from, adds != 0, knowledge_of(w, m)};
    if (w.in->in->random.below(2) == 0) it.read(w);
    if (w.products.empty()) w.products.emplace_back();
    w.products.back().emplace_back([it, &w]() mutable { it.finish(w); });
    return true;
}
bool commit(warp& w, const instruction&, lane_mask m, group& g) {
    if (!whole_warp_is_here(w, m, g)) return false;
    if (w.products.empty()) w.products.emplace_back();
    w.products.emplace_back();
    return true;
}
bool wait_for_products(warp& w, const instruction& i, lane_mask m, group& g) {
    if (!whole_warp_is_here(w, m, g)) return false;
    while (!w.products.empty() && static_cast<std::int64_t>(w.products.size()) - 1 > i.value) {
        for (auto& it : w.products.front()) it();
        w.products.pop_front();
    }
    learn(w, m, unit_of_warp(w), w.unit_clock);
    return true;
}
bool fence(warp& w, const instruction&, lane_mask m, group& g) {
    if (!whole_warp_is_here(w, m, g)) return false;
    w.products_fenced = true;
    return true;
}

/// Of a word such as m64n128k16 the number behind a letter.
std::int32_t number_behind(std::string_view word, char letter) {
    const std::size_t at = word.find(letter);
    std::int32_t result = 0;
    if (at != std::string_view::npos)
        std::from_chars(word.data() + at + 1, word.data() + word.size(), result);
    return result;
}

void decode(decoder& d, instruction& to) {
    const std::string_view what = d.one_of({"mma_async", "commit_group", "wait_group", "fence"});
    if (!d.option("sync") || !d.option("aligned")) d.fail("expected .sync.aligned");
    if (what == "commit_group") to.try_run = &commit;
    if (what == "fence") to.try_run = &fence;
    if (what == "wait_group") {
        to.value = d.integer(0);
        to.try_run = &wait_for_products;
    }
    if (what != "mma_async") return;
    const std::string_view b_type = d.type(), a_type = d.type(), sum_type = d.type();
    const std::string_view shape = d.next_word();
    const multiplicand a = multiplicand_named(a_type), b = multiplicand_named(b_type);
    const bool integers = sum_type == "s32";
    if (!integers && sum_type != "f32") return;
    if (integers != (a == multiplicand::s8) || integers != (b == multiplicand::s8)) return;
    const std::int32_t columns = number_behind(shape, 'n');
    if (a == multiplicand::unknown || b == multiplicand::unknown || number_behind(shape, 'm') != 64 ||
        columns % 8 != 0 || columns < 8 || columns > 256 ||
        static_cast<std::size_t>(number_behind(shape, 'k')) * bytes_of(a) != depth_bytes) {
        return;
    }
    to.list = d.elements(0, 4);
    if (to.list.size() != static_cast<std::size_t>(columns) / 2) d.fail("another number of sums");
    const bool a_in_registers = d.at(1).kind == term::vector;
    if (a_in_registers) {
        const std::vector<operand> words = d.elements(1, 4);
        if (words.size() != 4) d.fail("another number of registers of A");
        for (const operand& it : words) {
            if (it.in != operand::place::frame || it.bytes != 4) d.fail("expected registers of 32 bits");
        }
        to.list.insert(to.list.end(), words.begin(), words.end());
    } else {
        to.o[0] = d.value(1, 8);
    }
    to.o[1] = d.value(2, 8);
    to.o[2] = d.predicate(3);
    // Instructions of integers have no such operands.
    if (!integers && (d.integer(4) != 1 || d.integer(5) != 1)) d.fail("operands are not negated here");
    std::int32_t flags = a_in_registers ? 4 : 0;
    // Only what is read from memory can be transposed.
    if (bytes_of(a) == 2 && !a_in_registers)
        flags = (d.integer(6) != 0 ? 1 : 0) | (d.integer(7) != 0 ? 2 : 0);
    if (bytes_of(a) == 2 && a_in_registers) flags |= d.integer(6) != 0 ? 2 : 0;
    to.detail = {static_cast<std::int32_t>(a), static_cast<std::int32_t>(b), columns, flags};
    to.try_run = &begin_product;
}

/// Registers of threads are not counted.
bool set_registers(warp& w, const instruction& i, lane_mask m, group& g) {
    if (i.value < 24 || i.value > 256 || i.value % 8 != 0) w.fail(0, "takes a multiple of 8 from 24 to 256");
    return whole_warp_is_here(w, m, g);
}

}  // namespace

void add_warpgroup_instructions(instruction_table& table) {
    table["wgmma"] = &decode;
    table["setmaxnreg"] = [](decoder& d, instruction& to) {
        d.one_of({"inc", "dec"});
        if (!d.option("sync") || !d.option("aligned") || d.type() != "u32")
            d.fail("expected .sync.aligned.u32");
        to.value = d.integer(0);
        to.try_run = &set_registers;
    };
}

}  // namespace ptx
