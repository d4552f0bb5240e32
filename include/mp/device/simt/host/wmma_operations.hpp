// SPDX-License-Identifier: MIT
/// \file
/// Fragments of nvcuda::wmma on the host. Which lane holds which element is drawn from the seed of the
/// schedule: a kernel that relies on it fails.
#pragma once

#include <mp/device/simt/fragments.hpp>
#include <mp/device/simt/host/matrix_operations.hpp>
#include <mp/device/simt/host/tensor_core_tile.hpp>
#include <mp/device/simt/shared_pointer.hpp>
#include <mp/linalg/tensor_core/arch.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

namespace mp::simt::detail { inline namespace MP_ISA_NAMESPACE {

/// Sides of a fragment's square.
inline constexpr int wmma_size = 16;

/// A lane's share of a fragment of Rows x Columns elements; RowMajor is their order in memory.
template <class Value, int Rows, int Columns, bool RowMajor>
struct wmma_fragment {
    using value_type = Value;
    static constexpr int rows = Rows;
    static constexpr int columns = Columns;
    static constexpr bool row_major = RowMajor;
    static constexpr int lines = RowMajor ? Rows : Columns;
    static constexpr int length = RowMajor ? Columns : Rows;
    static constexpr int num_elements = Rows * Columns / warp_size;

    Value values[std::size_t{num_elements}];
};

template <arch Arch>
class wmma_operations : public matrix_operations<Arch> {
public:
    using matrix_operations<Arch>::matrix_operations;

    template <class Input, bool KMajor>
    using wmma_a = wmma_fragment<Input, wmma_size, wmma_k<Input>, KMajor>;
    template <class Input, bool KMajor>
    using wmma_b = wmma_fragment<Input, wmma_k<Input>, wmma_size, !KMajor>;
    template <class Input>
    using wmma_sums = wmma_fragment<float, wmma_size, wmma_size, true>;

    template <class Fragment, class Input>
    void load_fragment(Fragment& to, shared_pointer<Input> from, int pitch,
                       const site& where = site::current()) const {
        static_assert(std::is_same_v<typename Fragment::value_type, Input>);
        transfer<Fragment>(
            to, from.offset, pitch, "load_fragment", "reads a line of", where, [&](int line, int i) {
                return from.offset +
                       static_cast<std::uint32_t>((line * pitch + i) * static_cast<int>(sizeof(Input)));
            });
    }
    template <class Sums>
    void clear_fragment(Sums& sums) const {
        sums = {};
    }
    template <class Sums, class A, class B>
    void multiply_fragments(Sums& sums, const A& a, const B& b, const site& where = site::current()) const {
        struct product_operands {
            Sums* sums;
            const A* a;
            const B* b;
        } mine{&sums, &a, &b};
        const placing places(this->owner().seed());
        collective_operation(
            this->state(), this->owner().warp_slot(this->state()), "multiply_fragments", where, mine,
            [&](product_operands* const* lanes) {
                using a_value = typename A::value_type;
                using b_value = typename B::value_type;
                constexpr int k = A::columns;
                static_assert(k == B::rows, "mp: fragments of one type of operand are multiplied");
                a_value left[std::size_t{wmma_size}][std::size_t{k}];
                b_value right[std::size_t{wmma_size}][std::size_t{k}];
                float total[wmma_size][wmma_size];
                for (int i = 0; i < wmma_size; ++i) {
                    for (int p = 0; p < k; ++p) {
                        left[i][p] = places.template of<A>(i, p, lanes, &product_operands::a);
                        right[i][p] = places.template of<B>(p, i, lanes, &product_operands::b);
                    }
                    for (int j = 0; j < wmma_size; ++j) {
                        total[i][j] = places.template of<Sums>(i, j, lanes, &product_operands::sums);
                    }
                }
                tile_product<Arch, a_value, b_value>(
                    wmma_size, wmma_size, k, reinterpret_cast<const unsigned char*>(&left[0][0]),
                    reinterpret_cast<const unsigned char*>(&right[0][0]), synchronous_unit<Arch>())
                    .add_to(&total[0][0]);
                for (int i = 0; i < wmma_size; ++i) {
                    for (int j = 0; j < wmma_size; ++j) {
                        places.template of<Sums>(i, j, lanes, &product_operands::sums) = total[i][j];
                    }
                }
            });
    }
    template <class Sums>
    void store_fragment(shared_pointer<float> to, const Sums& sums, int pitch,
                        const site& where = site::current()) const {
        transfer<Sums>(
            sums, to.offset, pitch, "store_fragment", "writes a line of", where,
            [&](int line, int i) { return to.offset + static_cast<std::uint32_t>((line * pitch + i) * 4); });
    }

private:
    /// The layout of fragments: a permutation of lanes and elements.
    struct placing {
        std::uint64_t step;
        std::uint64_t offset;

        explicit placing(std::uint64_t seed) : step(2 * (seed * 7919 % 128) + 1), offset(seed * 31 % 256) {}

        [[nodiscard]] int number(int element, int elements) const {
            return static_cast<int>((static_cast<std::uint64_t>(element) * step + offset) %
                                    static_cast<std::uint64_t>(elements));
        }
        /// The element (row, column) in the fragments that a member of the lanes' operands points to.
        template <class Fragment, class Operands, class Member>
        auto& of(int row, int column, Operands* const* lanes, Member member) const {
            const int at = number(row * Fragment::columns + column, Fragment::rows * Fragment::columns);
            return (lanes[at % warp_size]->*member)->values[at / warp_size];
        }
    };

    /// Moves a fragment between lanes and shared memory, line by line.
    template <class Fragment, class Held, class Address>
    void transfer(Held& fragment, std::uint32_t offset, int pitch, const char* operation, const char* verb,
                  const site& where, Address address) const {
        using value = typename Fragment::value_type;
        constexpr bool stores = std::is_const_v<Held>;
        struct transfer_operands {
            const thread_state* thread;
            Held* fragment;
            std::uint32_t offset;
            int pitch;
        } mine{&this->state(), &fragment, offset, pitch};
        cluster& all = this->owner();
        if (offset % 32 != 0 || pitch * static_cast<int>(sizeof(value)) % 16 != 0) {
            all.fail(this->state(), where, kernel_violation::alignment,
                     std::string(operation) +
                         " takes an address that is a multiple of 32 bytes, and lines that are "
                         "multiples of 16 bytes apart",
                     static_cast<std::ptrdiff_t>(offset));
        }
        const placing places(all.seed());
        shared_memory& memory = all.memory_of(this->state());
        collective_operation(
            this->state(), all.warp_slot(this->state()), operation, where, mine,
            [&](transfer_operands* const* lanes) {
                for (int lane = 0; lane < warp_size; ++lane) {
                    if (lanes[lane]->offset == offset && lanes[lane]->pitch == pitch) continue;
                    all.fail(*lanes[lane]->thread, where, kernel_violation::argument,
                             std::string(operation) + " takes the same address and pitch in all lanes");
                }
                for (int line = 0; line < Fragment::lines; ++line) {
                    const std::uint32_t begin = address(line, 0);
                    const std::size_t bytes = sizeof(value) * static_cast<std::size_t>(Fragment::length);
                    const thread_state& reader = *lanes[line]->thread;
                    all.check_access(reader, where, verb, bytes, begin, [&] {
                        memory.check_range(begin, bytes, 16);
                        stores ? memory.write(reader.access(), begin, bytes)
                               : memory.read(reader.access(), begin, bytes);
                    });
                    if (stores) all.layouts(reader.block).forget(begin, bytes);
                    for (int i = 0; i < Fragment::length; ++i) {
                        const int row = Fragment::row_major ? line : i;
                        const int column = Fragment::row_major ? i : line;
                        auto& element =
                            places.template of<Fragment>(row, column, lanes, &transfer_operands::fragment);
                        unsigned char* const at = memory.data() + address(line, i);
                        if constexpr (stores) {
                            std::memcpy(at, &element, sizeof element);
                        } else {
                            std::memcpy(static_cast<void*>(&element), at, sizeof element);
                        }
                    }
                }
            });
    }
};

}}  // namespace mp::simt::detail
