// SPDX-License-Identifier: MIT
/// \file
/// A thread of a GPU on the host, and matrix instructions of a warpgroup. A product is computed when it begins; its registers
/// hold NaN until the thread has waited, and the operands must not be written until then, so that it makes no difference.
#pragma once

#include <mp/device/simt/fragments.hpp>
#include <mp/device/simt/host/matrix_operations.hpp>
#include <mp/device/simt/host/thread_state.hpp>
#include <mp/device/simt/matrix_descriptor.hpp>
#include <mp/linalg/tensor_core/arch.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace mp::simt::detail { inline namespace MP_ISA_NAMESPACE {

/// A decoded descriptor. Addresses are those of the block's shared memory.
class described_tile {
public:
    explicit described_tile(matrix_descriptor descriptor)
        : begin_(static_cast<std::uint32_t>(descriptor.bits & 0x3FFF) * 16),
          leading_(static_cast<std::uint32_t>(descriptor.bits >> 16 & 0x3FFF) * 16),
          stride_(static_cast<std::uint32_t>(descriptor.bits >> 32 & 0x3FFF) * 16),
          swizzle_(descriptor.bits >> 62) {}

    /// Offset of 16 bytes of the tile, from byte `byte` of row `row` on. Rows in shared memory run along k;
    /// transposed along m of A (n of B).
    [[nodiscard]] std::uint32_t chunk(int row, int byte) const {
        const auto l = static_cast<std::uint32_t>(row);
        const auto b = static_cast<std::uint32_t>(byte);
        // Rows of 16 (no swizzle), 32, 64 or 128 bytes; eight of them are a block.
        const std::uint32_t width = row_bytes();
        const std::uint32_t block = l / 8 * stride_ + b / width * leading_;
        // The exchange of 16-byte chunks goes by the address, so it does not matter where in a tile one begins.
        return exchanged(static_cast<int>(width), begin_ + block + l % 8 * width + b % width);
    }

    /// "leading_bytes 16, stride_bytes 1024, swizzle_bytes 128"
    [[nodiscard]] std::string text() const {
        return "leading_bytes " + std::to_string(leading_) + ", stride_bytes " + std::to_string(stride_) +
               ", swizzle_bytes " + std::to_string(swizzle_ == 0 ? 0 : row_bytes());
    }

private:
    [[nodiscard]] std::uint32_t row_bytes() const { return swizzle_ == 0 ? 16U : 256U >> swizzle_; }

    std::uint32_t begin_;
    std::uint32_t leading_;
    std::uint32_t stride_;
    std::uint64_t swizzle_;
};

template <arch Arch>
class wgmma_operations : public wmma_operations<Arch> {
public:
    using wmma_operations<Arch>::wmma_operations;

    [[nodiscard]] matrix_descriptor describe(std::uint32_t offset, int leading_bytes, int stride_bytes,
                                             int swizzle_bytes, const site& where = site::current()) const {
        const auto demand = [&](bool met, const char* name, std::int64_t value, const char* expected) {
            if (met) return;
            this->fail(where, kernel_violation::argument,
                       std::string("describes a tile whose ") + name + " is " + std::to_string(value) +
                           "; it must be " + expected);
        };
        constexpr int most = 0x3FFF * 16;
        demand(offset % 16 == 0, "offset", offset, "a multiple of 16");
        demand(leading_bytes >= 0 && leading_bytes % 16 == 0 && leading_bytes <= most, "leading_bytes",
               leading_bytes, "a multiple of 16, below 2^18");
        demand(stride_bytes >= 0 && stride_bytes % 16 == 0 && stride_bytes <= most, "stride_bytes",
               stride_bytes, "a multiple of 16, below 2^18");
        demand(swizzle_bytes == 0 || swizzle_code(swizzle_bytes) != 0, "swizzle_bytes", swizzle_bytes,
               "0, 32, 64 or 128");
        return describe_tile(offset, leading_bytes, stride_bytes, swizzle_bytes);
    }

    template <int Count>
    void setmaxnreg_decrease(const site& where = site::current()) const {
        change_registers<Count>("setmaxnreg_decrease", -1, where);
    }
    template <int Count>
    void setmaxnreg_increase(const site& where = site::current()) const {
        change_registers<Count>("setmaxnreg_increase", 1, where);
        registers_of_block& registers = this->owner().registers(this->state().block);
        while (auto* const request = registers.request_of(warpgroup_in_block())) {
            request->threads.push_back(this->state().number);
            this->owner().wait(this->state(), "setmaxnreg_increase", where);
        }
    }

    void fence_products(const site& where = site::current()) const {
        char none = 0;
        collective_operation(this->state(), slot(where), "fence_products", where, none,
                             [&](char* const*) { group().fenced = true; });
    }

    template <class A, class B, int Columns, bool ATransposed = false, bool BTransposed = false>
    void multiply_async(mma_sum<A> (&sum)[std::size_t{Columns / 2}], matrix_descriptor a, matrix_descriptor b,
                        bool add = true, const site& where = site::current()) const {
        static_assert(Arch == arch::sm_90, "mp: wgmma is an instruction of sm_90a");
        static_assert(Columns == 16 || Columns == 64 || Columns == 128 || Columns == 256,
                      "mp: products of 16, 64, 128 or 256 columns are offered");
        static_assert(sizeof(A) == 2 || !(ATransposed || BTransposed),
                      "mp: only operands of 16 bits can be transposed");
        struct product_operands {
            const thread_state* thread;
            std::byte* sum;
            matrix_descriptor a;
            matrix_descriptor b;
            bool add;
        } mine{&this->state(), reinterpret_cast<std::byte*>(&sum[0]), a, b, add};
        cluster& all = this->owner();
        collective_operation(
            this->state(), slot(where), "multiply_async", where, mine, [&](product_operands* const* lanes) {
                for (int i = 0; i < warpgroup_size; ++i) {
                    if (lanes[i]->a == a && lanes[i]->b == b && lanes[i]->add == add) continue;
                    all.fail(*lanes[i]->thread, where, kernel_violation::argument,
                             "multiply_async takes the same descriptors in all threads of the warpgroup");
                }
                warpgroup_state& group_of_warps = group();
                if (!group_of_warps.fenced) {
                    this->fail(where, kernel_violation::missing_fence,
                               "begins a product of a warpgroup without fence_products() since its sums were "
                               "waited for");
                }
                std::vector<std::byte*> registers(warpgroup_size);
                for (int i = 0; i < warpgroup_size; ++i)
                    registers[static_cast<std::size_t>(i)] = lanes[i]->sum;
                sums_in_flight& total = sums_of(registers, Columns, where);
                if (!add) std::fill(total.values.begin(), total.values.end(), 0U);
                const std::vector<unsigned char> left = read_operand<A, ATransposed>(a, 64, where);
                const std::vector<unsigned char> right = read_operand<B, BTransposed>(b, Columns, where);
                add_products<A, B, Columns>(left.data(), right.data(), total.values);
                total.last_group = group_of_warps.committed;
            });
    }

    void commit_products(const site& where = site::current()) const {
        char none = 0;
        collective_operation(this->state(), slot(where), "commit_products", where, none, [&](char* const*) {
            warpgroup_state& it = group();
            it.groups.push_back(std::exchange(it.open, {}));
            ++it.committed;
        });
    }

    template <int Pending>
    void wait_products(const site& where = site::current()) const {
        char none = 0;
        this->warp_operation("wait_products", where, none,
                             [&](char* const*) { wait_as_warp(Pending, where); });
    }

private:
    [[nodiscard]] collective_slot& slot(const site& where) const {
        cluster& all = this->owner();
        if (!all.has_warpgroups()) {
            this->fail(where, kernel_violation::argument,
                       "works as a warpgroup; the threads of the block must be a multiple of 128");
        }
        return all.warpgroup_slot(this->state());
    }
    [[nodiscard]] std::size_t warpgroup_in_block() const {
        return static_cast<std::size_t>(this->state().index / warpgroup_size);
    }

    /// More registers for the threads of the warpgroup, where the sign of `direction` says so, or fewer.
    template <int Count>
    void change_registers(const char* operation, int direction, const site& where) const {
        static_assert(Count >= 24 && Count <= 256 && Count % 8 == 0,
                      "mp: threads have 24 to 256 registers, a multiple of 8");
        char none = 0;
        cluster& all = this->owner();
        collective_operation(this->state(), slot(where), operation, where, none, [&](char* const*) {
            registers_of_block& registers = all.registers(this->state().block);
            const int before = registers.count(warpgroup_in_block());
            if ((Count - before) * direction < 0) {
                this->fail(where, kernel_violation::argument,
                           std::string("comes to ") + operation + "<" + std::to_string(Count) + "> with " +
                               std::to_string(before) + " registers a thread");
            }
            if (direction < 0) {
                registers.decrease(warpgroup_in_block(), Count);
            } else {
                registers.increase(warpgroup_in_block(), Count);
            }
            registers.grant([&](int thread) { all.wake(thread); });
        });
    }

    [[nodiscard]] warpgroup_state& group() const { return this->owner().warpgroup(this->state()); }

    /// sums += a b for 64 lines of A and `Columns` lines of B.
    template <class A, class B, int Columns>
    static void add_products(const unsigned char* a, const unsigned char* b,
                             std::vector<std::uint32_t>& sums) {
        if constexpr (std::is_same_v<mma_sum<A>, float>) {
            std::vector<float> floats(sums.size());
            const std::size_t bytes = sums.size() * sizeof(float);
            std::memcpy(floats.data(), sums.data(), bytes);
            tile_product<Arch, A, B>(64, Columns, mma_k<A>, a, b, float8_unit::native).add_to(floats.data());
            std::memcpy(sums.data(), floats.data(), bytes);
        } else {
            static_assert(std::is_same_v<A, B>, "mp: integers are multiplied with integers");
            add_integer_products(64, Columns, a, b, sums.data());
        }
    }

    /// The sums in these registers, which are poisoned from now on.
    sums_in_flight& sums_of(const std::vector<std::byte*>& registers, int columns, const site& where) const {
        warpgroup_state& it = group();
        for (const auto& sums : it.sums) {
            if (sums->registers != registers || sums->columns != columns) continue;
            sums->where = where;
            return *sums;
        }
        auto sums = std::make_shared<sums_in_flight>();
        sums->where = where;
        sums->poison = this->owner().poison().of(where);
        this->owner().observe();
        sums->registers = registers;
        sums->per_thread = columns / 2;
        sums->columns = columns;
        sums->values.resize(static_cast<std::size_t>(64 * columns));
        for (int thread = 0; thread < warpgroup_size; ++thread) {
            std::byte* own = registers[static_cast<std::size_t>(thread)];
            for (int i = 0; i < sums->per_thread; ++i, own += sizeof(std::uint32_t)) {
                const fragment_coordinate at = wgmma_coordinate(thread, i);
                std::memcpy(&sums->values[static_cast<std::size_t>(at.row * columns + at.position)], own,
                            sizeof(std::uint32_t));
                std::memcpy(own, &sums->poison, sizeof(std::uint32_t));
            }
        }
        it.sums.push_back(sums);
        return *it.sums.back();
    }

    /// The bytes of an operand, `rows` rows of 32 bytes of k; reading them is under way from now on.
    template <class Value, bool Transposed>
    std::vector<unsigned char> read_operand(matrix_descriptor descriptor, int rows, const site& where) const {
        constexpr int size = static_cast<int>(sizeof(Value));
        constexpr int k = mma_k<Value>;
        const described_tile tile(descriptor);
        shared_memory& memory = this->own_memory();
        std::vector<unsigned char> operand(static_cast<std::size_t>(rows * mma_k_bytes));
        const int outer = Transposed ? k : rows;
        const int inner_bytes = Transposed ? rows * size : mma_k_bytes;
        for (int row = 0; row < outer; ++row) {
            for (int byte = 0; byte < inner_bytes; byte += 16) {
                const std::uint32_t at = tile.chunk(row, byte);
                if (row != 0) check_neighbours(tile, {row - 1, byte}, {row, byte}, where);
                if (byte != 0) check_neighbours(tile, {row, byte - 16}, {row, byte}, where);
                this->check_access(where, "begins to multiply", 16, at, [&] {
                    memory.check_range(at, 16, 16);
                    memory.begin_asynchronous_read(this->state().access(), at, 16);
                });
                group().open.ranges.emplace_back(at, 16U);
                if constexpr (Transposed) {
                    for (int i = 0; i < 16 / size; ++i) {
                        std::memcpy(
                            &operand[static_cast<std::size_t>((byte / size + i) * mma_k_bytes + row * size)],
                            memory.data() + at + i * size, sizeof(Value));
                    }
                } else {
                    std::memcpy(&operand[static_cast<std::size_t>(row * mma_k_bytes + byte)],
                                memory.data() + at, 16);
                }
            }
        }
        return operand;
    }

    /// 16 bytes of an operand, and those to the right of them or below them: where a copy brought both, they
    /// are neighbours in its tile, or the second ones begin another tile.
    void check_neighbours(const described_tile& operand, fragment_coordinate first,
                          fragment_coordinate second, const site& where) const {
        const tile_layouts& layouts = this->owner().layouts(this->state().block);
        if (layouts.empty()) return;
        const std::uint32_t to = operand.chunk(second.row, second.position);
        const auto a = layouts.at(operand.chunk(first.row, first.position));
        const auto b = layouts.at(to);
        if (!a || !b) return;
        const bool below = second.row != first.row;
        const int down = below ? 1 : 0;
        const int right = below ? 0 : 16;
        const bool fits = a->tile == b->tile ? b->row == a->row + down && b->byte == a->byte + right
                                             : (below ? b->row == 0 && b->byte == a->byte
                                                      : b->row == a->row && b->byte == 0);
        if (fits) return;
        const auto text = [](const char* name, int row, int byte) {
            return std::string(name) + " row " + std::to_string(row) + ", byte " + std::to_string(byte);
        };
        this->fail(where, kernel_violation::argument,
                   "multiplies a tile by a descriptor that does not fit its layout (" + operand.text() +
                       "): " + text("what it calls", second.row, second.position) + " is" +
                       text("", b->row, b->byte) + " of the tile that " + place_of(b->tile->where) +
                       " copied, with rows of " + std::to_string(b->tile->row_bytes) +
                       " bytes, swizzled by " + std::to_string(b->tile->swizzle_bytes),
                   static_cast<std::ptrdiff_t>(to));
    }

    void wait_as_warp(int pending, const site& where) const {
        warpgroup_state& it = group();
        const auto warp = static_cast<std::size_t>(this->state().warp() % 4);
        const std::size_t left = static_cast<std::size_t>(pending);
        const std::size_t done = it.committed > left ? it.committed - left : 0;
        for (std::size_t number = it.waited[warp]; number < done; ++number) {
            product_group& finished = it.groups[number - it.first];
            if (--finished.warps_that_wait != 0) continue;
            for (const auto& [offset, bytes] : finished.ranges) {
                this->owner()
                    .memory_of(this->state())
                    .end_asynchronous_read(this->state().access(), offset, bytes);
            }
        }
        it.waited[warp] = (std::max)(it.waited[warp], done);
        // The reads are noted as this lane's; all lanes of the warp have waited for them.
        const auto self = static_cast<std::size_t>(this->state().number);
        const int first_lane = this->state().number / warp_size * warp_size;
        for (int i = first_lane; i < first_lane + warp_size; ++i) {
            std::uint32_t& known = this->owner().thread(i).clock[self];
            known = (std::max)(known, this->state().clock[self]);
        }
        cluster::next_epoch(this->state());
        while (!it.groups.empty() && it.groups.front().warps_that_wait == 0) {
            it.groups.pop_front();
            ++it.first;
        }
        for (const auto& sums : it.sums) {
            if (sums->last_group < done) give_back(*sums, static_cast<int>(warp), where);
        }
        std::erase_if(it.sums, [](const auto& sums) {
            return std::all_of(sums->registers.begin(), sums->registers.end(),
                               [](const std::byte* own) { return own == nullptr; });
        });
        // The sums may be touched now: a fence has to follow before the next product.
        if (it.sums.empty()) it.fenced = false;
    }

    /// Puts the sums into the registers of a warp.
    void give_back(sums_in_flight& sums, int warp, const site& where) const {
        for (int thread = warp * warp_size; thread < (warp + 1) * warp_size; ++thread) {
            std::byte*& own = sums.registers[static_cast<std::size_t>(thread)];
            if (own == nullptr) continue;
            for (int i = 0; i < sums.per_thread; ++i, own += sizeof(std::uint32_t)) {
                if (std::memcmp(own, &sums.poison, sizeof(std::uint32_t)) != 0) {
                    this->fail(where, kernel_violation::unfinished_copy,
                               "waits for a product whose sums were written while it was under way");
                }
                const fragment_coordinate at = wgmma_coordinate(thread, i);
                std::memcpy(own, &sums.values[static_cast<std::size_t>(at.row * sums.columns + at.position)],
                            sizeof(std::uint32_t));
            }
            own = nullptr;
        }
    }
};

}}  // namespace mp::simt::detail

namespace mp::simt {

/// What kernels get as their thread where they run on the host: the operations of
/// <mp/device/simt/device/device_thread.hpp>, checked.
template <arch Arch>
class simulated_thread : public detail::wgmma_operations<Arch> {
public:
    static constexpr int capability = static_cast<int>(Arch);
    static constexpr bool on_device = false;
    static constexpr bool has_warpgroups = Arch == arch::sm_90;

    explicit simulated_thread(detail::thread_state& state) : detail::wgmma_operations<Arch>(state) {}
};

}  // namespace mp::simt
