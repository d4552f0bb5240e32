// SPDX-License-Identifier: MIT
#include "multiply.hpp"

#include "text.hpp"

#include <mp/bfloat16.hpp>
#include <mp/device/simt/host/matrix_operations.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>
#include <mp/linalg/tensor_core/block_fma.hpp>
#include <mp/matrix_view.hpp>
#include <mp/tfloat32.hpp>

#include <cstring>
#include <string>
#include <vector>

namespace ptx {

namespace {

template <mp::arch architecture, class A, class B>
void run_on(int rows, int columns, int k, const std::byte* a, const std::byte* b, float* c,
            bool by_warpgroup) {
    const mp::float8_unit unit =
        by_warpgroup ? mp::float8_unit::native : mp::simt::detail::synchronous_unit<architecture>();
    mp::simt::detail::tile_product<architecture, A, B>(rows, columns, k,
                                                       reinterpret_cast<const unsigned char*>(a),
                                                       reinterpret_cast<const unsigned char*>(b), unit)
        .add_to(c);
}

template <class A, class B>
void run(int rows, int columns, int k, const std::byte* a, const std::byte* b, float* c, bool by_warpgroup,
         int architecture) {
    if constexpr (sizeof(A) > 1) {
        if (architecture == 80) return run_on<mp::arch::sm_80, A, B>(rows, columns, k, a, b, c, by_warpgroup);
    }
    if (architecture != 90)
        throw failure("tensor cores of sm_" + std::to_string(architecture) +
                      " are not offered for these factors");
    run_on<mp::arch::sm_90, A, B>(rows, columns, k, a, b, c, by_warpgroup);
}

template <mp::arch architecture>
void run_half(int rows, int columns, int k, const std::byte* a, const std::byte* b, unsigned short* c) {
    const auto read = [](const void* from, int count) {
        std::vector<mp::half> values(static_cast<std::size_t>(count));
        std::memcpy(static_cast<void*>(values.data()), from, values.size() * sizeof(mp::half));
        return values;
    };
    std::vector<mp::half> left = read(a, rows * k), right = read(b, columns * k),
                          sums = read(c, rows * columns);
    mp::mma<architecture>(mp::row_major(left.data(), rows, k), mp::column_major(right.data(), k, columns),
                          mp::row_major(sums.data(), rows, columns),
                          mp::row_major(sums.data(), rows, columns));
    std::memcpy(c, static_cast<const void*>(sums.data()), sums.size() * sizeof(mp::half));
}

}  // namespace

multiplicand multiplicand_named(std::string_view name) {
    if (name == "f16") return multiplicand::f16;
    if (name == "bf16") return multiplicand::bf16;
    if (name == "tf32") return multiplicand::tf32;
    if (name == "e4m3") return multiplicand::e4m3;
    if (name == "e5m2") return multiplicand::e5m2;
    if (name == "s8") return multiplicand::s8;
    return multiplicand::unknown;
}

void multiply_add(multiplicand a_type, multiplicand b_type, int rows, int columns, int k, const std::byte* a,
                  const std::byte* b, float* c, bool by_warpgroup, int architecture) {
    using mp::float8_e4m3fn;
    using mp::float8_e5m2;
    switch (a_type) {
        case multiplicand::f16:
            return run<mp::half, mp::half>(rows, columns, k, a, b, c, by_warpgroup, architecture);
        case multiplicand::bf16:
            return run<mp::bfloat16, mp::bfloat16>(rows, columns, k, a, b, c, by_warpgroup, architecture);
        case multiplicand::tf32:
            return run<mp::tfloat32, mp::tfloat32>(rows, columns, k, a, b, c, by_warpgroup, architecture);
        case multiplicand::e4m3:
            if (b_type == multiplicand::e4m3)
                return run<float8_e4m3fn, float8_e4m3fn>(rows, columns, k, a, b, c, by_warpgroup,
                                                         architecture);
            return run<float8_e4m3fn, float8_e5m2>(rows, columns, k, a, b, c, by_warpgroup, architecture);
        case multiplicand::e5m2:
            if (b_type == multiplicand::e4m3)
                return run<float8_e5m2, float8_e4m3fn>(rows, columns, k, a, b, c, by_warpgroup, architecture);
            return run<float8_e5m2, float8_e5m2>(rows, columns, k, a, b, c, by_warpgroup, architecture);
        case multiplicand::s8:  // sums of integers are no matter of the model
        case multiplicand::unknown:
            break;
    }
}

void multiply_add_half(int rows, int columns, int k, const std::byte* a, const std::byte* b,
                       unsigned short* c, int architecture) {
    if (architecture == 80)
        run_half<mp::arch::sm_80>(rows, columns, k, a, b, c);
    else
        run_half<mp::arch::sm_90>(rows, columns, k, a, b, c);
}

void multiply_add_integers(int rows, int columns, int k, const std::byte* a, const std::byte* b,
                           std::uint32_t* c) {
    for (int row = 0; row < rows; ++row) {
        for (int column = 0; column < columns; ++column) {
            for (int i = 0; i < k; ++i) {
                const int product =
                    static_cast<signed char>(a[row * k + i]) * static_cast<signed char>(b[column * k + i]);
                c[row * columns + column] += static_cast<std::uint32_t>(product);
            }
        }
    }
}

}  // namespace ptx
