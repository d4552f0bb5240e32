// SPDX-License-Identifier: MIT
// What the product by wgmma tells the cache of the device.
// alone: it says that a class of its own is an executor
#include <mp/device/gpu/gemm.hpp>
#include <mp/half.hpp>
#include <mp/simt.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace cache_hints_test {

/// A GPU that looks at kernels and runs none.
struct looking_gpu : mp::simulated_gpu<mp::arch::sm_90> {
    std::string* hints = nullptr;
};
template <class Kernel>
void launch(std::string_view, const looking_gpu& exec, const mp::simt::launch_size&, const Kernel& kernel) {
    if constexpr (requires { kernel.a_hint; }) {
        const auto letter = [](mp::simt::cache_hint hint) {
            using mp::simt::cache_hint;
            return hint == cache_hint::evict_first ? '1' : hint == cache_hint::evict_last ? 'n' : '-';
        };
        *exec.hints = {letter(kernel.a_hint), letter(kernel.b_hint)};
    }
}

}  // namespace cache_hints_test

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

template <>
struct is_gpu_executor<cache_hints_test::looking_gpu> : std::true_type {};
template <>
inline constexpr auto compiled_capabilities<cache_hints_test::looking_gpu> =
    compiled_capabilities<mp::simulated_gpu<mp::arch::sm_90>>;

}}  // namespace mp::detail

namespace cache_hints_test { namespace {

constexpr auto wgmma = mp::gpu_gemm_kernel::wgmma;

/// For a and b: read once, read again for each tile, or nothing. Of the transpose of C, which few rows are computed as, the
/// operands have changed places.
std::string hints_of(std::ptrdiff_t rows, std::ptrdiff_t columns, bool asked = true, std::ptrdiff_t batch = 1,
                     std::ptrdiff_t b_stride = 0) {
    std::string result = "not launched";
    const looking_gpu gpu{{}, &result};
    constexpr std::ptrdiff_t k = 512;
    const auto memory = [](int number) {  // is not touched
        return reinterpret_cast<mp::half*>(std::uintptr_t{1} << 40 << number);
    };
    const mp::matrix_batch a{mp::row_major(memory(0), rows, k), rows * k};
    const mp::matrix_batch b{mp::column_major(memory(1), k, columns), b_stride};
    const mp::matrix_batch c{mp::row_major(memory(2), rows, columns), rows * columns};
    const auto plan = mp::plan_gemm<wgmma>(gpu, batch, a, b, {.cache_hints = asked});
    mp::gemm_batched<wgmma>(gpu, plan, 1, a, b, 0, c);
    return result;
}

TEST_CASE("an operand that is read once makes room in the cache for the other one") {
    CHECK(hints_of(128, 8192) == "n1");
    CHECK(hints_of(8192, 64) == "1n");
    CHECK(hints_of(16, 8192) == "1n");
    CHECK(hints_of(1024, 1024) == "--");
    CHECK(hints_of(64, 64) == "--");
    CHECK(hints_of(128, 8192, false) == "--");
    // The same b for all products of a batch is read again, its own for each of them is not.
    CHECK(hints_of(128, 8192, true, 3, 0) == "--");
    CHECK(hints_of(128, 8192, true, 3, 512 * 8192) == "n1");
}

}  // namespace

}  // namespace cache_hints_test
