// SPDX-License-Identifier: MIT
/// \file
/// Matrix instructions of a warp on the host, by the exact model of tensor cores, and fragments of nvcuda::wmma. The lane
/// that holds an element of those is drawn from the seed of the schedule: a kernel that relies on it fails.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/base/instruction_set.hpp>
#include <mp/device/simt/fragments.hpp>
#include <mp/device/simt/host/barrier_operations.hpp>
#include <mp/device/simt/shared_pointer.hpp>
#include <mp/half.hpp>
#include <mp/linalg/tensor_core/arch.hpp>
#include <mp/linalg/tensor_core/block_fma.hpp>
#include <mp/linalg/tensor_core/emulated_product.hpp>
#include <mp/matrix_view.hpp>
#include <mp/numbers/simd/processor.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

namespace mp::simt::detail { inline namespace MP_ISA_NAMESPACE {

/// The unit by which mma.sync multiplies numbers of 8 bits.
template <arch Arch>
constexpr float8_unit synchronous_unit() {
    return has_float8_through_half(Arch) ? float8_unit::through_half : float8_unit::native;
}

/// c += a b of signed bytes, modulo 2^32, for `rows` lines of A and `columns` lines of B, of mma_k_bytes each.
inline void add_integer_products(int rows, int columns, const unsigned char* a, const unsigned char* b,
                                 std::uint32_t* c) {
    for (int row = 0; row < rows; ++row) {
        for (int column = 0; column < columns; ++column) {
            std::int32_t products = 0;  // at most 32 * 2^14
            for (int k = 0; k < mma_k_bytes; ++k) {
                products += static_cast<std::int8_t>(a[row * mma_k_bytes + k]) *
                            static_cast<std::int8_t>(b[column * mma_k_bytes + k]);
            }
            c[row * columns + column] += static_cast<std::uint32_t>(products);
        }
    }
}

/// c += a b for `rows` lines of A, `columns` lines of B and `k` elements in each, as lines of bytes that
/// follow each other; c has `columns` floats a row. Blocks of ascending k, each with the sum before as
/// its addend.
template <arch Arch, class A, class B>
class tile_product {
public:
    tile_product(int rows, int columns, int k, const unsigned char* a, const unsigned char* b,
                 float8_unit unit)
        : rows_(rows),
          columns_(columns),
          k_(k),
          unit_(mp::detail::unit_for<A>(unit)),
          a_(static_cast<std::size_t>(rows * k)),
          b_(static_cast<std::size_t>(columns * k)) {
        std::memcpy(static_cast<void*>(a_.data()), a, a_.size() * sizeof(A));
        std::memcpy(static_cast<void*>(b_.data()), b, b_.size() * sizeof(B));
    }

    void add_to(float* c) const {
        using product = mp::detail::emulated_product<Arch, float, A, B>;
        const product whole{mp::row_major(a_.data(), rows_, k_), mp::column_major(b_.data(), k_, columns_),
                            unit_, best_instruction_set(), 0};
        // Rows of sums are read and written in whole panels.
        constexpr std::ptrdiff_t panel = mp::detail::panel_columns;
        const std::ptrdiff_t stride = (columns_ + panel - 1) / panel * panel;
        typename product::scratch memory;
        memory.sums.resize(static_cast<std::size_t>(rows_ * stride));
        for (std::ptrdiff_t i = 0; i < rows_; ++i) {
            std::copy_n(c + i * columns_, columns_, memory.sums.begin() + i * stride);
        }
        whole.add_chunk({&whole, {0, 0, rows_, columns_, stride}, 0, k_}, memory);
        for (std::ptrdiff_t i = 0; i < rows_; ++i) {
            std::copy_n(memory.sums.begin() + i * stride, columns_, c + i * columns_);
        }
    }

private:
    int rows_;
    int columns_;
    int k_;
    float8_unit unit_;
    std::vector<A> a_;
    std::vector<B> b_;
};

template <arch Arch>
class matrix_operations : public barrier_operations {
public:
    using barrier_operations::barrier_operations;

    template <int Count, class Value>
    [[nodiscard]] registers<Count> load_matrix(shared_pointer<Value> row,
                                               const site& where = site::current()) const {
        return loaded<Count, false>(row.offset, "load_matrix", where);
    }
    template <int Count, class Value>
    [[nodiscard]] registers<Count> load_matrix_transposed(shared_pointer<Value> row,
                                                          const site& where = site::current()) const {
        static_assert(sizeof(Value) == 2, "mp: matrices of elements of 2 bytes can be transposed");
        return loaded<Count, true>(row.offset, "load_matrix_transposed", where);
    }

    template <int Count, class Value>
    void store_matrix(shared_pointer<Value> row, const registers<Count>& from,
                      const site& where = site::current()) const {
        static_assert(Count == 1 || Count == 2 || Count == 4, "mp: 1, 2 or 4 matrices are stored");
        static_assert(Arch >= arch::sm_90, "mp: store_matrix is there from sm_90 on");
        struct store_operands {
            const thread_state* thread;
            std::uint32_t offset;
            const registers<Count>* from;
        } mine{&state(), row.offset, &from};
        if (state().observed) check_sums(&from, sizeof from, where);
        warp_operation("store_matrix", where, mine, [&](store_operands* const* lanes) {
            for (int matrix = 0; matrix < Count; ++matrix) {
                unsigned char rows[8][16];
                for (int lane = 0; lane < warp_size; ++lane) {
                    const fragment_coordinate to = loaded_coordinate(lane);
                    std::memcpy(&rows[to.row][to.position], &(*lanes[lane]->from)[matrix], 4);
                }
                count_rows("store_matrix", where, lanes + 8 * matrix);
                for (int i = 0; i < 8; ++i) store_row(*lanes[8 * matrix + i], rows[i], where);
            }
        });
    }

    template <class A, class B>
    void multiply_add(float (&sum)[4], const registers<4>& a, const registers<2>& b,
                      const site& where = site::current()) const {
        multiply(sum, a, b, where, [](auto* const* lanes) { multiply_warp<A, B>(lanes); });
    }
    template <class A, class B>
    void multiply_add(registers<2>& sum, const registers<4>& a, const registers<2>& b,
                      const site& where = site::current()) const {
        static_assert(std::is_same_v<A, half> && std::is_same_v<B, half>,
                      "mp: sums of half are for operands of half");
        multiply(sum, a, b, where, [](auto* const* lanes) { multiply_halves(lanes); });
    }
    template <class A, class B>
    void multiply_add(std::int32_t (&sum)[4], const registers<4>& a, const registers<2>& b,
                      const site& where = site::current()) const {
        static_assert(std::is_same_v<A, std::int8_t> && std::is_same_v<B, std::int8_t>,
                      "mp: sums of integers are for operands of std::int8_t");
        static_assert(Arch >= arch::sm_80,
                      "mp: the tensor cores of this architecture do not multiply these types");
        multiply(sum, a, b, where, [](auto* const* lanes) { multiply_integers(lanes); });
    }

private:
    template <class Sum, class Execute>
    void multiply(Sum& sum, const registers<4>& a, const registers<2>& b, const site& where,
                  Execute execute) const {
        struct mma_operands {
            Sum* sum;
            const registers<4>* a;
            const registers<2>* b;
        } mine{&sum, &a, &b};
        warp_operation("multiply_add", where, mine, execute);
    }

    template <int Count, bool Transposed>
    registers<Count> loaded(std::uint32_t offset, const char* operation, const site& where) const {
        static_assert(Count == 1 || Count == 2 || Count == 4, "mp: 1, 2 or 4 matrices are loaded");
        struct load_operands {
            const thread_state* thread;
            std::uint32_t offset;
            registers<Count> result;
        } mine{&state(), offset, {}};
        cluster& all = owner();
        shared_memory& memory = own_memory();
        warp_operation(operation, where, mine, [&](load_operands* const* lanes) {
            for (int i = 0; i < 8 * Count; ++i) {
                const load_operands& it = *lanes[i];
                all.check_access(*it.thread, where, "reads a row of", 16, it.offset, [&] {
                    memory.check_range(it.offset, 16, 16);
                    memory.read(it.thread->access(), it.offset, 16);
                });
            }
            for (int matrix = 0; matrix < Count; ++matrix) {
                count_rows(operation, where, lanes + 8 * matrix);
                for (int lane = 0; lane < warp_size; ++lane) {
                    const auto byte_at = [&](int row, int byte) {
                        return memory
                            .data()[lanes[8 * matrix + row]->offset + static_cast<std::uint32_t>(byte)];
                    };
                    unsigned char bytes[4];
                    for (int i = 0; i < 4; ++i) {
                        if constexpr (Transposed) {
                            const fragment_coordinate from = loaded_transposed_coordinate(lane);
                            bytes[i] = byte_at(from.row + i / 2, from.position + i % 2);
                        } else {
                            const fragment_coordinate from = loaded_coordinate(lane);
                            bytes[i] = byte_at(from.row, from.position + i);
                        }
                    }
                    std::memcpy(&lanes[lane]->result[matrix], bytes, 4);
                }
            }
        });
        return mine.result;
    }

    /// The row of a matrix to which a lane points, as if that lane stored it.
    template <class Operands>
    void store_row(const Operands& it, const unsigned char (&row)[16], const site& where) const {
        cluster& all = owner();
        shared_memory& memory = own_memory();
        all.check_access(*it.thread, where, "writes a row of", 16, it.offset, [&] {
            memory.check_range(it.offset, 16, 16);
            memory.write(it.thread->access(), it.offset, 16, all.settings().equal_writes ? row : nullptr);
        });
        if (it.thread->observed) all.layouts(it.thread->block).forget(it.offset, 16);
        std::memcpy(memory.data() + it.offset, row, 16);
    }

    /// The eight rows of one matrix are accessed together.
    template <class Operands>
    void count_rows(const char* operation, const site& where, Operands* const* rows) const {
        if (owner().statistics() == nullptr) return;
        std::array<lane_access, 8> lanes;
        for (int i = 0; i < 8; ++i) lanes[static_cast<std::size_t>(i)] = {i, rows[i]->offset, 16};
        owner().statistics()->note_warp(where.file_name(), where.line(), where.column(), operation, true,
                                        lanes);
    }

    /// The operands of the 32 lanes as rows of bytes.
    struct warp_operands {
        unsigned char a[mma_rows][mma_k_bytes];
        unsigned char b[mma_columns][mma_k_bytes];

        template <class Operands>
        explicit warp_operands(Operands* const* lanes) {
            for (int lane = 0; lane < warp_size; ++lane) {
                for (int i = 0; i < 4; ++i) {
                    const fragment_coordinate place = mma_a_coordinate(lane, i);
                    std::memcpy(&a[place.row][place.position], &(*lanes[lane]->a)[i], 4);
                }
                for (int i = 0; i < 2; ++i) {
                    const fragment_coordinate place = mma_b_coordinate(lane, i);
                    std::memcpy(&b[place.row][place.position], &(*lanes[lane]->b)[i], 4);
                }
            }
        }
    };

    template <class A, class B, class Operands>
    static void multiply_warp(Operands* const* lanes) {
        const warp_operands operands(lanes);
        float c[mma_rows][mma_columns];
        const auto for_each_sum = [&](auto f) {
            for (int lane = 0; lane < warp_size; ++lane) {
                for (int i = 0; i < 4; ++i) {
                    const fragment_coordinate place = mma_c_coordinate(lane, i);
                    f((*lanes[lane]->sum)[i], c[place.row][place.position]);
                }
            }
        };
        for_each_sum([](float sum, float& element) { element = sum; });
        tile_product<Arch, A, B>(mma_rows, mma_columns, mma_k<A>, &operands.a[0][0], &operands.b[0][0],
                                 synchronous_unit<Arch>())
            .add_to(&c[0][0]);
        for_each_sum([](float& sum, float element) { sum = element; });
    }

    template <class Operands>
    static void multiply_integers(Operands* const* lanes) {
        const warp_operands operands(lanes);
        std::uint32_t products[mma_rows][mma_columns] = {};
        add_integer_products(mma_rows, mma_columns, &operands.a[0][0], &operands.b[0][0], &products[0][0]);
        for (int lane = 0; lane < warp_size; ++lane) {
            for (int i = 0; i < 4; ++i) {
                const fragment_coordinate place = mma_c_coordinate(lane, i);
                std::int32_t& sum = (*lanes[lane]->sum)[i];
                sum = static_cast<std::int32_t>(static_cast<std::uint32_t>(sum) +
                                                products[place.row][place.position]);
            }
        }
    }

    template <class Operands>
    static void multiply_halves(Operands* const* lanes) {
        const warp_operands operands(lanes);
        constexpr block_rule rule = mp::detail::checked_block_rule<Arch, half, half, half>();
        const auto element_of = [](const unsigned char* row, int k) {
            half value;
            std::memcpy(static_cast<void*>(&value), row + 2 * k, 2);
            return value;
        };
        for (int lane = 0; lane < warp_size; ++lane) {
            for (int i = 0; i < 4; ++i) {
                const fragment_coordinate place = mma_c_coordinate(lane, i);
                std::uint32_t& pair = (*lanes[lane]->sum)[i / 2];
                const int shift = i % 2 * 16;
                std::uint32_t sum = mp::detail::accumulator_bits(
                    half::from_bits(static_cast<std::uint16_t>(pair >> shift & 0xFFFFU)));
                for (int k = 0; k < mma_k<half>; k += rule.products) {
                    sum = mp::detail::block_fma_bits<half, half>(
                        rule, rule.products, [&](int j) { return element_of(operands.a[place.row], k + j); },
                        [&](int j) { return element_of(operands.b[place.position], k + j); }, sum);
                }
                const std::uint32_t bits = mp::detail::accumulator_from_bits<half>(sum).bits();
                pair = (pair & ~(0xFFFFU << shift)) | bits << shift;
            }
        }
    }
};

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
        this->warp_operation("multiply_fragments", where, mine, [&](product_operands* const* lanes) {
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
            this->fail(where, kernel_violation::alignment,
                       std::string(operation) +
                           " takes an address that is a multiple of 32 bytes, and lines that are "
                           "multiples of 16 bytes apart",
                       static_cast<std::ptrdiff_t>(offset));
        }
        const placing places(all.seed());
        shared_memory& memory = this->own_memory();
        this->warp_operation(operation, where, mine, [&](transfer_operands* const* lanes) {
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
