// SPDX-License-Identifier: MIT
#include <mp/device/gpu/prepare.hpp>
// alone: it says that a class of its own is an executor

#include <mp/device/gpu/gemm.hpp>
#include <mp/device/gpu/gemm_grouped.hpp>
#include <mp/device/simt/tensor_map.hpp>
#include <mp/half.hpp>
#include <mp/simt.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "device/gpu/watched.hpp"

namespace prepare_test {

using mp::half;
using simulated = mp::simulated_gpu<mp::arch::sm_90>;

/// A simulated GPU that counts the tensor maps which are made for it, and has a number.
struct counting_gpu : simulated {
    int* maps = nullptr;
    int number = 90;
};
mp::simt::tensor_map make_tensor_map(const counting_gpu& exec, const mp::simt::tensor_tiles& tiles) {
    ++*exec.maps;
    return mp::simt::make_tensor_map(simulated{}, tiles);
}
int device_number(const counting_gpu& exec) {
    return exec.number;
}

}  // namespace prepare_test

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

template <>
struct is_gpu_executor<prepare_test::counting_gpu> : std::true_type {};
template <>
inline constexpr auto compiled_capabilities<prepare_test::counting_gpu> =
    compiled_capabilities<prepare_test::simulated>;

}}  // namespace mp::detail

namespace prepare_test { namespace {

constexpr auto wgmma = mp::gpu_gemm_kernel::wgmma;
constexpr std::ptrdiff_t rows = 72, columns = 40, k = 256;

/// Small integers, whose sums are exact, in memory that TMA takes.
struct arrays {
    struct alignas(128) line {
        std::array<half, 64> values;
    };
    std::vector<line> a = std::vector<line>(rows * k / 64), b = std::vector<line>(k * columns / 64);
    std::vector<float> c = std::vector<float>(rows * columns, -1.0F);

    explicit arrays(int seed) { fill(seed); }
    void fill(int seed) {
        int value = seed;
        for (auto* const of : {&a, &b}) {
            for (line& it : *of) {
                for (half& element : it.values) element = half((value = (value * 5 + 3) % 17) - 8);
            }
        }
    }
    [[nodiscard]] mp::matrix_view<const half> left() const {
        return mp::row_major(a.front().values.data(), rows, k);
    }
    [[nodiscard]] mp::matrix_view<const half> right() const {
        return mp::column_major(b.front().values.data(), k, columns);
    }
    [[nodiscard]] mp::matrix_view<float> product() { return mp::row_major(c.data(), rows, columns); }
    [[nodiscard]] std::vector<float> expected() const {
        std::vector<float> result;
        for (std::ptrdiff_t i = 0; i < rows; ++i) {
            for (std::ptrdiff_t j = 0; j < columns; ++j) {
                float sum = 0;
                for (std::ptrdiff_t p = 0; p < k; ++p) {
                    sum += static_cast<float>(left()(i, p)) * static_cast<float>(right()(p, j));
                }
                result.push_back(2 * sum);
            }
        }
        return result;
    }
};

template <class Call>
std::string message(Call call) {
    try {
        call();
    } catch (const mp::error& error) {
        return error.what();
    }
    return "";
}

TEST_CASE(
    "a prepared product multiplies what its matrices hold when it is called, and makes no tensor maps") {
    arrays all(1);
    int maps = 0;
    const counting_gpu gpu{gpu_test::watched(simulated{.seed = 1}), &maps};
    for (const int splits : {1, 2}) {
        const auto plan = mp::plan_gemm<half, wgmma>(gpu, rows, columns, k, 1, {.splits = splits});
        REQUIRE(plan.splits == splits);
        std::vector<float> sums(plan.workspace_size());
        all.c.assign(all.c.size(), -1.0F);
        maps = 0;
        const auto product = mp::prepare(gpu, [&](const auto& exec) {
            mp::gemm<wgmma>(exec, plan, 2, all.left(), all.right(), 0, all.product(), {}, sums);
        });
        CHECK(product.size() == static_cast<std::size_t>(splits));
        CHECK(maps == 3);
        CHECK(all.c == std::vector<float>(all.c.size(), -1.0F));
        const auto copy = product;
        for (const int seed : {2, 3, 4}) {
            all.fill(seed);
            seed == 3 ? copy(gpu) : product(gpu);
            CHECK(all.c == all.expected());
        }
        CHECK(maps == 3);
    }
}

TEST_CASE("several products are prepared in one, for groups, too") {
    arrays all(1);
    const simulated gpu{.seed = 3};
    std::vector<std::int32_t> counts = {rows, rows / 2};
    std::vector<float> batch(2 * rows * columns, -1.0F), masked = batch;
    const mp::matrix_batch a{all.left(), 0}, b{all.right(), 0};
    const auto into = [](std::vector<float>& to) {
        return mp::matrix_batch{mp::row_major(to.data(), rows, columns), rows * columns};
    };
    const auto products = mp::prepare(gpu, [&](const auto& exec) {
        mp::gemm_batched<wgmma>(exec, 2, 2, a, b, 0, into(batch));
        mp::gemm_masked<wgmma>(exec, 2, a, b, std::span<const std::int32_t>(counts), 0, into(masked));
    });
    CHECK(products.size() == 2);
    products(gpu);
    const std::vector<float> expected = all.expected();
    const auto is_expected = [&](const std::vector<float>& found, std::ptrdiff_t first,
                                 std::ptrdiff_t count) {
        const auto begin = found.begin() + first * columns;
        return std::equal(begin, begin + count * columns, expected.begin());
    };
    CHECK(is_expected(batch, 0, rows));
    CHECK(is_expected(batch, rows, rows));
    CHECK(is_expected(masked, 0, rows));
    CHECK(is_expected(masked, rows, rows / 2));
    CHECK(masked.back() == -1.0F);
    // Of groups whose sizes the device has meanwhile.
    counts = {1, 0};
    masked.assign(masked.size(), -1.0F);
    products(gpu);
    CHECK(is_expected(masked, 0, 1));
    CHECK(masked[columns] == -1.0F);
}

TEST_CASE(
    "prepared launches are captured, and check where they are enqueued; errors come when they are prepared") {
    arrays all(5);
    mp::simt::launch_recorder recorder;
    const simulated gpu{.recorder = &recorder};
    const auto multiply = [&](const auto& exec) {
        mp::gemm<wgmma>(exec, 2, all.left(), all.right(), 0, all.product());
    };
    const auto product = mp::prepare(gpu, multiply);
    mp::simulated_graph graph;
    graph.capture(gpu, [&] { product(gpu); });
    CHECK(graph.nodes() == 1);
    graph.launch(gpu);
    CHECK(all.c == all.expected());

    int maps = 0;
    counting_gpu other{simulated{}, &maps};
    const auto on_other = mp::prepare(other, multiply);
    other.number = 91;
    all.c.assign(all.c.size(), -1.0F);
    CHECK(message([&] { on_other(other); }) ==
          "mp::prepared_launches: exec's device is 91; it must be the one that they were prepared for, which "
          "is 90");
    CHECK(all.c == std::vector<float>(all.c.size(), -1.0F));

    const auto plan = mp::plan_gemm<half, wgmma>(gpu, rows, columns, k, 1, {.splits = 2});
    CHECK(message([&] {
              static_cast<void>(mp::prepare(gpu, [&](const auto& exec) {
                  mp::gemm<wgmma>(exec, plan, 2, all.left(), all.right(), 0, all.product());
              }));
          }).starts_with("mp::gemm: workspace.size() is 0; it must be at least"));
    CHECK(mp::prepare(gpu, [](const auto&) {}).empty());
    CHECK_NOTHROW(mp::prepared_launches<simulated>{}(gpu));
}

TEST_CASE("maps are kept by all that they describe, and not without end") {
    mp::simt::tensor_map_cache cache;
    int made = 0;
    const auto find = [&](const mp::simt::tensor_tiles& tiles) {
        return cache.find(tiles, [&] {
            ++made;
            return mp::simt::make_tensor_map(simulated{}, tiles);
        });
    };
    const arrays all(1);
    const mp::simt::tensor_tiles tiles{all.a.data(), 2, 64, 8, 128, 64, 8, 128, 0, 0};
    for (int i = 0; i < 3; ++i) CHECK(find(tiles).opaque[0] == find(tiles).opaque[0]);
    CHECK(made == 1);
    std::vector<mp::simt::tensor_tiles> others(9, tiles);
    others[0].data = all.b.data();
    others[1].element_bytes = 1;
    others[2].length = 56;
    others[3].rows = 9;
    others[4].row_bytes = 256;
    others[5].tile_length = 32;
    others[6].tile_rows = 16;
    others[7].swizzle_bytes = 0;
    others[8].matrices = 1;
    others[8].matrix_bytes = 1024;
    for (const auto& it : others) {
        const auto map = find(it);
        mp::simt::tensor_tiles kept;
        static_assert(std::is_trivially_copyable_v<mp::simt::tensor_tiles>);
        std::memcpy(&kept, map.opaque, sizeof kept);
        CHECK(kept == it);
    }
    CHECK(made == 10);
    for (std::size_t i = 0; i < 2 * mp::simt::tensor_map_cache::most; ++i) {
        mp::simt::tensor_tiles it = tiles;
        it.rows = 100 + static_cast<std::int64_t>(i);
        static_cast<void>(find(it));
    }
    CHECK(cache.size() <= mp::simt::tensor_map_cache::most);
}

}  // namespace

}  // namespace prepare_test
