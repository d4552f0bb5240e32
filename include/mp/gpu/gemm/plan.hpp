// SPDX-License-Identifier: MIT
/// \file
/// Which kernel computes a matrix product on a GPU, and how the work is divided.
#pragma once

#include <mp/bfloat16.hpp>
#include <mp/error.hpp>
#include <mp/float8.hpp>
#include <mp/gpu/gemm/problem.hpp>
#include <mp/gpu/gemm/ring_kernel.hpp>
#include <mp/gpu/gemm/stage_copies.hpp>
#include <mp/gpu/properties.hpp>
#include <mp/half.hpp>
#include <mp/tfloat32.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>

namespace mp {

/// An element type of the factors of a matrix product in tensor cores.
template <class Value>
concept tensor_core_input =
    std::same_as<std::remove_const_t<Value>, half> || std::same_as<std::remove_const_t<Value>, bfloat16> ||
    std::same_as<std::remove_const_t<Value>, tfloat32> ||
    std::same_as<std::remove_const_t<Value>, float8_e4m3fn> ||
    std::same_as<std::remove_const_t<Value>, float8_e5m2>;

/// Two types that are multiplied with each other: one type, or the two of 8 bits.
template <class A, class B>
concept tensor_core_pair = tensor_core_input<A> && tensor_core_input<B> &&
    (std::same_as<std::remove_const_t<A>, std::remove_const_t<B>> || (sizeof(A) == 1 && sizeof(B) == 1));

/// By which instructions a kernel multiplies. Products take it as a template argument, since each kernel that
/// a program could choose has to be compiled:
///
///     mp::gemm<mp::gpu_gemm_kernel::wmma>(stream, 1, a, b, 0, c);
enum class gpu_gemm_kernel : unsigned char {
    automatic,  ///< the fastest one that the device has for the types
    lanes,      ///< ordinary instructions: every device, every type, far slower
    wmma,       ///< nvcuda::wmma: half from sm_75 on, bfloat16 and tfloat32 from sm_80 on
    mma,        ///< mma.sync with copies that run ahead: from sm_80 on, 8 bits from sm_89 on
    /// wgmma and TMA, in code for sm_90a. Lines of a and b, in all matrices of a batch, have to begin at
    /// multiples of 16 bytes; those of tfloat32 and 8 bits have to run along the depth (a row-major, b
    /// column-major). Not taken automatically as long as it has not been measured. 8 bits have the bits of
    /// mp::emulated with float8_unit::native, promoted every 128 products.
    wgmma,
    /// wgmma where the device has it and the matrices are as it takes them, and else what `automatic` takes.
    /// Both are compiled. Of 16 bits and tfloat32 both have the same bits, of 8 bits they have not. A plan
    /// has to be made from the matrices: one that is made from a shape alone does not take wgmma.
    automatic_with_wgmma,
};

[[nodiscard]] constexpr std::string_view name_of(gpu_gemm_kernel kernel) {
    constexpr std::array<std::string_view, 6> names{"automatic", "lanes", "wmma",
                                                    "mma",       "wgmma", "automatic_with_wgmma"};
    return names[static_cast<std::size_t>(kernel)];
}

/// What a caller may ask for.
struct gpu_gemm_options {
    /// Pieces of the depth that different blocks of threads add up, for products with few elements and much
    /// depth. With more than one the product needs a workspace. Zero: as many as fill the device.
    int splits = 1;
};

/// The decisions for products of one shape and type, which can be made once and used often. Made by
/// plan_gemm.
struct gpu_gemm_plan {
    gpu_gemm_kernel kernel = gpu_gemm_kernel::automatic;
    int tile_rows = 0;     ///< of C, by a block of threads
    int tile_columns = 0;  ///< the same
    int tile_depth = 0;    ///< elements of depth that are multiplied between two barriers
    int splits = 1;
    std::ptrdiff_t rows = 0;
    std::ptrdiff_t columns = 0;
    std::ptrdiff_t depth = 0;
    std::ptrdiff_t batch = 1;
    gpu_properties gpu = {};  ///< of the device that it was made for
    int cluster_blocks = 1;   ///< blocks of threads that share columns of B: with wgmma 1 or 2

    /// Floats of workspace that a product by this plan needs; zero unless it splits the depth.
    [[nodiscard]] std::size_t workspace_size() const {
        return splits == 1 ? 0
                           : static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns) *
                                 static_cast<std::size_t>(splits) * static_cast<std::size_t>(batch);
    }

    /// Such as "mma.128x256x32", with ".cluster2" and ".split4" behind it where there are such.
    [[nodiscard]] std::string kernel_name() const {
        std::string text(name_of(kernel));
        text.append(".").append(std::to_string(tile_rows)).append("x").append(std::to_string(tile_columns));
        text.append("x").append(std::to_string(tile_depth));
        if (cluster_blocks != 1) text.append(".cluster").append(std::to_string(cluster_blocks));
        if (splits != 1) text.append(".split").append(std::to_string(splits));
        return text;
    }
};

namespace detail {

/// The architecture from which on a kernel takes factors of a type.
template <class Input>
[[nodiscard]] constexpr int least_capability(gpu_gemm_kernel kernel) {
    constexpr bool is_half = std::is_same_v<Input, half>;
    constexpr int never = 1 << 20;
    switch (kernel) {
        case gpu_gemm_kernel::wmma:
            return sizeof(Input) == 1 ? never : is_half ? 75 : 80;
        case gpu_gemm_kernel::mma:
            return sizeof(Input) == 1 ? 89 : 80;
        default:
            return 0;
    }
}

/// Whether a device has a kernel for a type.
template <class Input>
[[nodiscard]] constexpr bool can_run(const gpu_properties& gpu, gpu_gemm_kernel kernel) {
    return gpu.capability >= least_capability<Input>(kernel) &&
           (kernel != gpu_gemm_kernel::wgmma || gpu.has_warpgroups);
}

/// Elements of depth between two barriers.
template <class Input>
[[nodiscard]] constexpr int tile_depth_of(gpu_gemm_kernel kernel) {
    return (kernel == gpu_gemm_kernel::wgmma ? 128 : stage_depth_bytes) / static_cast<int>(sizeof(Input));
}

/// The kernel that is taken for a type on a device.
template <class Input>
[[nodiscard]] constexpr gpu_gemm_kernel best_kernel(int capability) {
    for (const auto kernel : {gpu_gemm_kernel::mma, gpu_gemm_kernel::wmma}) {
        if (capability >= least_capability<Input>(kernel)) return kernel;
    }
    return gpu_gemm_kernel::lanes;
}

/// Whether a product with the template argument `Asked` is compiled with a kernel.
template <class Executor, class Input, gpu_gemm_kernel Asked>
[[nodiscard]] constexpr bool has_kernel(gpu_gemm_kernel kernel) {
    if constexpr (Asked != gpu_gemm_kernel::automatic && Asked != gpu_gemm_kernel::automatic_with_wgmma) {
        return kernel == Asked;
    } else {
        for (const int capability : compiled_capabilities<Executor>) {
            if (best_kernel<Input>(capability) == kernel) return true;
            if (Asked == gpu_gemm_kernel::automatic_with_wgmma && kernel == gpu_gemm_kernel::wgmma &&
                capability == 90) {
                return true;
            }
        }
        return false;
    }
}

/// The kernel that is taken where `Asked` was asked for: one by itself, and which one.
template <class Input, gpu_gemm_kernel Asked>
[[nodiscard]] constexpr gpu_gemm_kernel resolve_kernel(const gpu_properties& gpu, bool warpgroups_take_it) {
    if (Asked == gpu_gemm_kernel::automatic_with_wgmma && gpu.has_warpgroups && warpgroups_take_it) {
        return gpu_gemm_kernel::wgmma;
    }
    const bool is_automatic =
        Asked == gpu_gemm_kernel::automatic || Asked == gpu_gemm_kernel::automatic_with_wgmma;
    return is_automatic ? best_kernel<Input>(gpu.capability) : Asked;
}

/// Tiles of the kernels. Those of mma are large, since each byte that is fetched then serves more products:
/// 64 x 64 sums a warp is what registers have room for.
using mma_tile_256 = gemm_tile<128, 256, 64, 64, 4>;
using mma_tile_128 = gemm_tile<128, 128, 64, 64, 4>;
using mma_tile_64 = gemm_tile<64, 64, 32, 32, 4>;
/// 8 bits: sums that are promoted take twice the registers, and the way through half takes some.
using float8_tile_128 = gemm_tile<128, 128, 32, 64, 4>;
using wmma_tile_128 = gemm_tile<128, 128, 64, 32, 3>;
using lanes_tile_64 = gemm_tile<64, 64, 32, 32, 2>;

struct tile_choice {
    int rows;
    int columns;
    /// Multiply-adds per cycle and multiprocessor, relative to the largest tile. Estimates from how often a
    /// byte of shared memory is used; to be replaced by measurements.
    double rate;
    int resident_blocks;
    int cluster_blocks = 1;  ///< tiles below each other that are computed together
};

inline constexpr tile_choice mma_tiles[] = {{128, 256, 1.0, 1}, {128, 128, 0.9, 2}, {64, 64, 0.55, 2}};
/// Those of wgmma for 8 bits, whose promoted sums take the registers of 256 columns, and for the others.
inline constexpr tile_choice warpgroup_tiles_8[] = {{128, 128, 1.0, 1, 2}, {128, 128, 0.9, 1, 1}};
inline constexpr tile_choice warpgroup_tiles[] = {{128, 256, 1.0, 1, 2}, {128, 128, 0.8, 1, 1}};

/// The tile with which the product takes the least time, by the number of rounds that its blocks take.
template <std::size_t Count>
[[nodiscard]] tile_choice choose_tile(const tile_choice (&tiles)[Count], const gpu_properties& gpu,
                                      std::ptrdiff_t rows, std::ptrdiff_t columns, std::ptrdiff_t batch,
                                      int splits, int most_columns) {
    tile_choice best{};
    double least = 0;
    for (const tile_choice& tile : tiles) {
        if (tile.columns > most_columns) continue;
        if (tile.cluster_blocks > 1 && rows <= tile.rows) continue;  // there is no tile below
        const std::ptrdiff_t clusters = tile_count(rows, tile.rows * tile.cluster_blocks) *
                                        tile_count(columns, tile.columns) * batch * splits;
        const std::ptrdiff_t at_a_time = (std::max)(1, gpu.multiprocessors / tile.cluster_blocks);
        const std::ptrdiff_t rounds = tile_count(clusters, at_a_time * tile.resident_blocks);
        const double time =
            static_cast<double>(rounds) * tile.resident_blocks * tile.rows * tile.columns / tile.rate;
        if (best.rows == 0 || time < least) {
            best = tile;
            least = time;
        }
    }
    return best;
}

/// Pieces of the depth with which blocks fill the device, each of at least 512 bytes of depth.
[[nodiscard]] inline int choose_splits(const gpu_properties& gpu, std::ptrdiff_t blocks,
                                       std::ptrdiff_t steps) {
    constexpr std::ptrdiff_t least_steps = 8;
    const std::ptrdiff_t wanted = gpu.multiprocessors / (std::max<std::ptrdiff_t>)(1, blocks);
    return static_cast<int>(std::clamp<std::ptrdiff_t>((std::min)(wanted, steps / least_steps), 1, 64));
}

/// Decides everything but the kernel.
template <class Input>
[[nodiscard]] gpu_gemm_plan plan_with_kernel(const gpu_properties& gpu, gpu_gemm_kernel kernel,
                                             std::ptrdiff_t rows, std::ptrdiff_t columns,
                                             std::ptrdiff_t depth, std::ptrdiff_t batch,
                                             const gpu_gemm_options& options) {
    constexpr std::string_view function = "mp::plan_gemm";
    const auto check_size = [&](std::string_view name, std::ptrdiff_t size) {
        if (size < 0) throw_argument(function, name, size, "must not be negative");
    };
    check_size("rows", rows);
    check_size("columns", columns);
    check_size("depth", depth);
    check_size("batch", batch);
    if (options.splits < 0 || options.splits > 64) {
        throw_argument(function, "options.splits", options.splits, "must be from 0 to 64");
    }
    if (!can_run<Input>(gpu, kernel)) {
        throw_argument(function, "Kernel", name_of(kernel),
                       "must be one that a device of capability " + error_text(gpu.capability) +
                           " has for factors of this type");
    }
    gpu_gemm_plan plan{kernel, 0,     0,  tile_depth_of<Input>(kernel), options.splits, rows, columns,
                       depth,  batch, gpu};
    const auto take = [&](const tile_choice& tile) {
        plan.tile_rows = tile.rows;
        plan.tile_columns = tile.columns;
        plan.cluster_blocks = tile.cluster_blocks;
    };
    const int pieces = (std::max)(1, options.splits);
    constexpr int most_columns = sizeof(Input) == 1 ? 128 : 256;
    if (kernel == gpu_gemm_kernel::mma) {
        take(choose_tile(mma_tiles, gpu, rows, columns, batch, pieces, most_columns));
    } else if (kernel == gpu_gemm_kernel::wgmma) {
        take(choose_tile(sizeof(Input) == 1 ? warpgroup_tiles_8 : warpgroup_tiles, gpu, rows, columns, batch,
                         pieces, most_columns));
    } else {
        plan.tile_rows = plan.tile_columns = kernel == gpu_gemm_kernel::wmma ? 128 : 64;
    }
    const std::ptrdiff_t steps = tile_count(depth, plan.tile_depth);
    if (plan.splits == 0) {
        plan.splits = choose_splits(
            gpu, tile_count(rows, plan.tile_rows) * tile_count(columns, plan.tile_columns) * batch, steps);
    }
    plan.splits =
        static_cast<int>(std::clamp<std::ptrdiff_t>(plan.splits, 1, (std::max<std::ptrdiff_t>)(1, steps)));
    return plan;
}

}  // namespace detail

/// Decides how products of a (rows x depth) and b (depth x columns) are computed on a GPU with these
/// properties; `batch` is how many of them there are in a call. Throws argument_error for a kernel that the
/// device lacks for the type, for negative sizes, and for splits below zero or above 64.
template <tensor_core_input Input, gpu_gemm_kernel Kernel = gpu_gemm_kernel::automatic>
[[nodiscard]] gpu_gemm_plan plan_gemm(const gpu_properties& gpu, std::ptrdiff_t rows, std::ptrdiff_t columns,
                                      std::ptrdiff_t depth, std::ptrdiff_t batch = 1,
                                      const gpu_gemm_options& options = {}) {
    using input = std::remove_const_t<Input>;
    return detail::plan_with_kernel<input>(gpu, detail::resolve_kernel<input, Kernel>(gpu, false), rows,
                                           columns, depth, batch, options);
}

}  // namespace mp
