// SPDX-License-Identifier: MIT
/// \file
/// Plans of matrix products on GPUs: the kernel, its tile, and the division of the work; and how long the end of a product
/// takes beside its products, by which they choose a schedule of wgmma. Launches of multistage_gemm_kernel by a plan.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/bfloat16.hpp>
#include <mp/config.hpp>
#include <mp/device/gpu/gemm/multistage_kernel.hpp>
#include <mp/device/gpu/gemm/problem.hpp>
#include <mp/device/gpu/gemm/stage_copies.hpp>
#include <mp/device/gpu/gemm/tiles.hpp>
#include <mp/device/gpu/properties.hpp>
#include <mp/device/simt/kernel_traits.hpp>
#include <mp/error.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>
#include <mp/linalg/gemm/epilogue.hpp>
#include <mp/tfloat32.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Where threads end 8 elements of C: read from shared memory, alpha, relu, one rounding, written.
inline constexpr int least_epilogue_instructions = 55;

}}  // namespace mp::detail

namespace mp {

/// Instructions of a thread that end 8 elements of C behind an epilogue of this type: what plans for wgmma weigh
/// against products. Counted in code for sm_90a; the identity is written by TMA. Specialize it for custom
/// epilogues.
template <class Epilogue>
inline constexpr int epilogue_instructions = detail::least_epilogue_instructions;
template <>
inline constexpr int epilogue_instructions<identity_epilogue> = 18;
template <>
inline constexpr int epilogue_instructions<silu_epilogue> = 360;
template <>
inline constexpr int epilogue_instructions<gelu_epilogue> = 430;
template <>
inline constexpr int epilogue_instructions<gelu_tanh_epilogue> = 510;
template <class First, class Second>
inline constexpr int epilogue_instructions<epilogue_chain<First, Second>> =
    epilogue_instructions<First> + epilogue_instructions<Second> - detail::least_epilogue_instructions;

}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// What the end of an element of C takes for each of k, in multiply-adds of wgmma. A multiprocessor issues an instruction for
/// 128 threads a cycle, and multiplies 4096 bytes of one operand with those of the other.
template <class Input>
[[nodiscard]] constexpr double epilogue_time(int instructions, std::ptrdiff_t k) {
    constexpr double products_of_a_cycle = 4096.0 / sizeof(Input);
    return instructions / (8.0 * 128) * products_of_a_cycle / static_cast<double>(k);
}

/// What `tiles` tiles of a multiprocessor take, one after the other, for each of their elements; `epilogue` is
/// epilogue_time() where that is to count.
[[nodiscard]] inline double time_of_tiles(const tile_choice& tile, double rate, double tiles,
                                          double epilogue) {
    const double products = 1 / rate;
    if (!tile.ping_pong) return tiles * (products + epilogue);
    // A warp that has a scheduler for itself issues every other cycle. Behind the last tile nothing runs.
    const double alone = 2 * epilogue;
    return (tiles - 1) * (std::max)(products, (products + alone) / 2) + products + alone;
}

}}  // namespace mp::detail

namespace mp {

/// An element type of the operands of a matrix product on a GPU: what tensor cores take, and float, which
/// ordinary instructions multiply.
template <class Value>
concept gpu_gemm_input =
    std::same_as<std::remove_const_t<Value>, float> || std::same_as<std::remove_const_t<Value>, half> ||
    std::same_as<std::remove_const_t<Value>, bfloat16> ||
    std::same_as<std::remove_const_t<Value>, tfloat32> ||
    std::same_as<std::remove_const_t<Value>, float8_e4m3fn> ||
    std::same_as<std::remove_const_t<Value>, float8_e5m2>;

/// Two types that are multiplied with each other: one type, or the two of 8 bits.
template <class A, class B>
concept gpu_gemm_pair =
    gpu_gemm_input<A> && gpu_gemm_input<B> &&
    (std::same_as<std::remove_const_t<A>, std::remove_const_t<B>> || (sizeof(A) == 1 && sizeof(B) == 1));

/// By which instructions a kernel multiplies. Products take it as a template argument, since each kernel that
/// a program could choose has to be compiled:
///
///     mp::gemm<mp::gpu_gemm_kernel::wmma>(stream, 1, a, b, 0, c);
enum class gpu_gemm_kernel : unsigned char {
    /// The one that takes the least time by estimate, of those that the device has for the types; but float8
    /// is never multiplied by wgmma, which has other bits there. A plan has to be made from the matrices: one that
    /// is made from a shape alone does not take wgmma.
    automatic,
    simt,  ///< ordinary instructions: every device, every type, far slower
    wmma,  ///< nvcuda::wmma: half from sm_75 on, bfloat16 and tfloat32 from sm_80 on
    mma,   ///< mma.sync with copies that run ahead: from sm_80 on, float8 from sm_89 on
    /// wgmma and TMA, in code for sm_90a. Lines of a and b, in all matrices of a batch, have to begin at
    /// multiples of 16 bytes; those of tfloat32 and 8 bits have to run along k (a row-major, b
    /// column-major). float8 has the bits of mp::emulated with float8_unit::native, promoted every 128 products.
    wgmma,
    /// wgmma whenever device and layout allow, also for float8, whose bits then depend on that; else as `automatic`.
    prefer_wgmma,
};

}  // namespace mp

namespace mp { inline namespace MP_ISA_NAMESPACE {

[[nodiscard]] constexpr std::string_view name_of(gpu_gemm_kernel kernel) {
    constexpr std::array<std::string_view, 6> names{"automatic", "simt",  "wmma",
                                                    "mma",       "wgmma", "prefer_wgmma"};
    return names[static_cast<std::size_t>(kernel)];
}

}}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Slices into which a product's k may be divided.
inline constexpr int most_splits = 64;

}}  // namespace mp::detail

namespace mp {

/// Options of a plan.
struct gpu_gemm_options {
    /// Slices of k that different blocks of threads add up, for products with few elements and much
    /// k. With more than one the product needs a workspace. Zero: as many as fill the device.
    int splits = 1;
    /// What the end of 8 elements of C takes, in instructions: mp::epilogue_instructions of the epilogue that products by
    /// this plan will have. Where that is long beside k, wgmma computes by another schedule (gpu_gemm_plan::ping_pong),
    /// to the same bits. Zero: it is taken for nothing. mp::gemm without a plan knows its epilogue.
    int epilogue_instructions = 0;
    /// wgmma: where C has one row or one column of tiles, so that one operand is read once and the other again for each
    /// tile, tells the cache of the device to keep the second rather than the first. The bits are the same.
    bool cache_hints = false;
};

/// The decisions for products of one shape and type, which can be made once and used often. Made by
/// plan_gemm.
struct gpu_gemm_plan {
    gpu_gemm_kernel kernel = gpu_gemm_kernel::automatic;
    int tile_rows = 0;     ///< of C, by a block of threads
    int tile_columns = 0;  ///< the same
    int tile_k = 0;        ///< elements of k that are multiplied between two barriers
    int splits = 1;
    std::ptrdiff_t rows = 0;
    std::ptrdiff_t columns = 0;
    std::ptrdiff_t k = 0;
    std::ptrdiff_t batch = 1;
    gpu_properties gpu = {};  ///< of the device that it was made for
    int cluster_blocks = 1;   ///< blocks of threads that share columns of B: with wgmma 1 or 2
    /// wgmma for few rows: computes the transpose of C, so that its columns are the 64 rows of an instruction.
    bool swapped = false;
    /// wgmma: warpgroups take tiles in turns, so that one of them ends its elements of C while the other one multiplies. The
    /// tile is then that of a warpgroup.
    bool ping_pong = false;
    /// wgmma: see gpu_gemm_options::cache_hints.
    bool cache_hints = false;

    /// Floats of workspace that a product by this plan needs; zero unless it splits k.
    [[nodiscard]] std::size_t workspace_size() const {
        return splits == 1 ? 0
                           : static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns) *
                                 static_cast<std::size_t>(splits) * static_cast<std::size_t>(batch);
    }

    /// Such as "mma.128x256x32", with ".swapped", ".pingpong", ".cluster2" and ".split4" behind it where there are such.
    [[nodiscard]] std::string kernel_name() const {
        std::string text(name_of(kernel));
        text.append(".").append(std::to_string(tile_rows)).append("x").append(std::to_string(tile_columns));
        text.append("x").append(std::to_string(tile_k));
        if (swapped) text.append(".swapped");
        if (ping_pong) text.append(".pingpong");
        if (cluster_blocks != 1) text.append(".cluster").append(std::to_string(cluster_blocks));
        if (splits != 1) text.append(".split").append(std::to_string(splits));
        return text;
    }
};

}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The architecture from which on a kernel takes operands of a type.
template <class Input>
[[nodiscard]] constexpr int least_capability(gpu_gemm_kernel kernel) {
    constexpr bool is_half = std::is_same_v<Input, half>;
    constexpr int never = 1 << 20;
    if (std::is_same_v<Input, float> && kernel != gpu_gemm_kernel::simt) return never;
    switch (kernel) {
        case gpu_gemm_kernel::wmma:
            return sizeof(Input) == 1 ? never : is_half ? 75 : 80;
        case gpu_gemm_kernel::mma:
            return is_float8<Input> ? 89 : 80;
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

/// Elements of k between two barriers.
template <class Input>
[[nodiscard]] constexpr int tile_k_of(gpu_gemm_kernel kernel) {
    return (kernel == gpu_gemm_kernel::wgmma ? 128 : stage_k_bytes) / static_cast<int>(sizeof(Input));
}

/// The kernel that is taken for a type on a device.
template <class Input>
[[nodiscard]] constexpr gpu_gemm_kernel best_kernel(int capability) {
    for (const auto kernel : {gpu_gemm_kernel::mma, gpu_gemm_kernel::wmma}) {
        if (capability >= least_capability<Input>(kernel)) return kernel;
    }
    return gpu_gemm_kernel::simt;
}

/// Whether wgmma is among the kernels that are chosen from. Of float8 it has other bits than mma.sync, and the bits of a
/// product are not to depend on how its operands lie unless that was asked for.
template <class Input, gpu_gemm_kernel Asked>
inline constexpr bool may_take_warpgroups =
    !std::is_same_v<Input, float> &&
    (Asked == gpu_gemm_kernel::prefer_wgmma || (Asked == gpu_gemm_kernel::automatic && !is_float8<Input>));

/// Whether a product with the template argument `Asked` is compiled with a kernel.
template <class Executor, class Input, gpu_gemm_kernel Asked>
[[nodiscard]] constexpr bool has_kernel(gpu_gemm_kernel kernel) {
    if constexpr (Asked != gpu_gemm_kernel::automatic && Asked != gpu_gemm_kernel::prefer_wgmma) {
        return kernel == Asked;
    } else {
        for (const int capability : compiled_capabilities<Executor>) {
            if (best_kernel<Input>(capability) == kernel) return true;
            if (may_take_warpgroups<Input, Asked> && kernel == gpu_gemm_kernel::wgmma && capability == 90) {
                return true;
            }
        }
        return false;
    }
}

/// The tiles that a kernel has for a type.
template <class Input>
[[nodiscard]] constexpr std::span<const tile_choice> tiles_of(gpu_gemm_kernel kernel) {
    switch (kernel) {
        case gpu_gemm_kernel::mma:
            return mma_tiles<Input>::choices;
        case gpu_gemm_kernel::wgmma:
            return warpgroup_tiles<Input>::choices;
        case gpu_gemm_kernel::wmma:
            return wmma_tiles::choices;
        default:
            return simt_tiles::choices;
    }
}

/// Throws unless the plan's tile is one that its kernel has for the type: no other is compiled.
template <class Input>
void check_tile(std::string_view function, const gpu_gemm_plan& plan) {
    const std::span<const tile_choice> tiles = tiles_of<Input>(plan.kernel);
    bool has_rows = false;
    bool has_columns = false;
    bool has_cluster = false;
    bool has_swapped = false;
    std::string known;
    for (const tile_choice& tile : tiles) {
        const bool same_rows = tile.rows == plan.tile_rows;
        const bool same_size = same_rows && tile.columns == plan.tile_columns;
        const bool same_cluster = same_size && tile.cluster_blocks == plan.cluster_blocks;
        const bool same_swapped = same_cluster && tile.swapped == plan.swapped;
        if (same_swapped && tile.ping_pong == plan.ping_pong) return;
        has_rows = has_rows || same_rows;
        has_columns = has_columns || same_size;
        has_cluster = has_cluster || same_cluster;
        has_swapped = has_swapped || same_swapped;
        if (!known.empty()) known.append(", ");
        known.append(std::to_string(tile.rows)).append("x").append(std::to_string(tile.columns));
        if (tile.cluster_blocks != 1) {
            known.append(" in clusters of ").append(std::to_string(tile.cluster_blocks));
        }
        if (tile.swapped) known.append(" swapped");
        if (tile.ping_pong) known.append(" ping-pong");
    }
    const std::string expected = "must be that of a tile which " + std::string(name_of(plan.kernel)) +
                                 " has for operands of this type: " + known;
    if (!has_rows) throw_argument(function, "plan.tile_rows", plan.tile_rows, expected);
    if (!has_columns) throw_argument(function, "plan.tile_columns", plan.tile_columns, expected);
    if (!has_cluster) throw_argument(function, "plan.cluster_blocks", plan.cluster_blocks, expected);
    if (!has_swapped) throw_argument(function, "plan.swapped", plan.swapped, expected);
    throw_argument(function, "plan.ping_pong", plan.ping_pong, expected);
}

/// Of what wgmma multiplies at a time, mma.sync multiplies so much on the same device. (Luo et al., "Dissecting the
/// NVIDIA Hopper Architecture through Microbenchmarking", 2025: 490.7 of 728.5 TFLOP/s.)
[[nodiscard]] constexpr double relative_rate(const gpu_properties& gpu, gpu_gemm_kernel kernel) {
    return gpu.has_warpgroups && kernel == gpu_gemm_kernel::mma ? 0.67 : 1.0;
}

/// What a product takes by the work of the multiprocessor that has most, in multiply-adds of the largest tile.
/// `epilogue` is epilogue_time() where that is to count.
[[nodiscard]] inline double estimated_time(const tile_choice& tile, const gpu_properties& gpu,
                                           gpu_gemm_kernel kernel, std::ptrdiff_t rows,
                                           std::ptrdiff_t columns, std::ptrdiff_t count,
                                           double epilogue = 0) {
    const std::ptrdiff_t clusters =
        tile_count(rows, tile.rows * tile.cluster_blocks) * tile_count(columns, tile.columns) * count;
    const std::ptrdiff_t at_a_time = (std::max)(1, gpu.multiprocessors / tile.cluster_blocks);
    // A block that has a multiprocessor for itself hides less of what its threads wait for.
    const double rate = tile.rate * relative_rate(gpu, kernel) * (tile.fits(gpu) ? 1.0 : 0.8);
    const auto blocks = (std::max<std::ptrdiff_t>)(tile_count(clusters, at_a_time), tile.overlapping);
    return time_of_tiles(tile, rate, static_cast<double>(blocks), epilogue) * tile.rows * tile.columns;
}

struct timed_tile {
    tile_choice tile;
    double time;
};

/// What is known of the operands' layouts.
struct operand_layouts {
    bool warpgroups_take = false;  ///< wgmma takes both
    bool swappable = false;        ///< rows of A run along k, and the kernel has tiles with swapped operands
};

/// Of the tiles of a kernel the one with which products take the least time: `count` of them, or slices of them.
[[nodiscard]] inline timed_tile choose_tile(std::span<const tile_choice> tiles, const gpu_properties& gpu,
                                            gpu_gemm_kernel kernel, std::ptrdiff_t rows,
                                            std::ptrdiff_t columns, std::ptrdiff_t count,
                                            const operand_layouts& layouts = {}, double epilogue = 0) {
    timed_tile best{};
    for (const tile_choice& tile : tiles) {
        if (tile.cluster_blocks > 1 && rows <= tile.rows) continue;  // there is no tile below
        // More rows would have B read again for each tile.
        if (tile.swapped && (rows > tile.rows || !layouts.swappable)) continue;
        if (tile.ping_pong && same_value(epilogue, 0.0)) continue;
        const double time = estimated_time(tile, gpu, kernel, rows, columns, count, epilogue);
        if (best.tile.rows == 0 || time < best.time) best = {tile, time};
    }
    return best;
}
template <class Input>
[[nodiscard]] timed_tile choose_tile(const gpu_properties& gpu, gpu_gemm_kernel kernel, std::ptrdiff_t rows,
                                     std::ptrdiff_t columns, std::ptrdiff_t count,
                                     const operand_layouts& layouts = {}, double epilogue = 0) {
    return choose_tile(tiles_of<Input>(kernel), gpu, kernel, rows, columns, count, layouts, epilogue);
}

/// The kernel that is taken where `Asked` was asked for: one by itself, and which one.
template <class Input, gpu_gemm_kernel Asked>
[[nodiscard]] gpu_gemm_kernel resolve_kernel(const gpu_properties& gpu, const operand_layouts& layouts,
                                             std::ptrdiff_t rows, std::ptrdiff_t columns,
                                             std::ptrdiff_t count) {
    constexpr bool chooses = Asked == gpu_gemm_kernel::automatic || Asked == gpu_gemm_kernel::prefer_wgmma;
    if constexpr (!chooses) return Asked;
    const gpu_gemm_kernel other = best_kernel<Input>(gpu.capability);
    constexpr auto wgmma = gpu_gemm_kernel::wgmma;
    if constexpr (may_take_warpgroups<Input, Asked>) {
        if (!layouts.warpgroups_take || !can_run<Input>(gpu, wgmma)) return other;
        if (Asked == gpu_gemm_kernel::prefer_wgmma) return wgmma;
        const double time = choose_tile<Input>(gpu, wgmma, rows, columns, count, layouts).time;
        return choose_tile<Input>(gpu, other, rows, columns, count, layouts).time < time ? other : wgmma;
    }
    return other;
}

/// Slices of k with which blocks fill the device, each of at least 1024 bytes of k: 8 of `steps`.
[[nodiscard]] inline int choose_splits(const gpu_properties& gpu, const tile_choice& tile,
                                       std::ptrdiff_t blocks, std::ptrdiff_t steps) {
    constexpr std::ptrdiff_t least_steps = 8;
    const std::ptrdiff_t wanted =
        std::ptrdiff_t{gpu.multiprocessors} * tile.overlapping / (std::max<std::ptrdiff_t>)(1, blocks);
    return static_cast<int>(
        std::clamp<std::ptrdiff_t>((std::min)(wanted, steps / least_steps), 1, most_splits));
}

/// Decides everything but the kernel.
template <class Input>
[[nodiscard]] gpu_gemm_plan plan_with_kernel(const gpu_properties& gpu, gpu_gemm_kernel kernel,
                                             std::ptrdiff_t rows, std::ptrdiff_t columns, std::ptrdiff_t k,
                                             std::ptrdiff_t batch, const gpu_gemm_options& options,
                                             const operand_layouts& layouts = {.swappable = true}) {
    constexpr std::string_view function = "mp::plan_gemm";
    const auto check_size = [&](std::string_view name, std::ptrdiff_t size) {
        if (size < 0) throw_argument(function, name, size, "must not be negative");
    };
    check_size("rows", rows);
    check_size("columns", columns);
    check_size("k", k);
    check_size("batch", batch);
    if (options.splits < 0 || options.splits > most_splits) {
        throw_argument(function, "options.splits", options.splits,
                       "must be from 0 to " + error_text(most_splits));
    }
    if (options.epilogue_instructions < 0) {
        throw_argument(function, "options.epilogue_instructions", options.epilogue_instructions,
                       "must not be negative");
    }
    if (!can_run<Input>(gpu, kernel)) {
        throw_argument(function, "Kernel", name_of(kernel),
                       "must be one that a device of capability " + error_text(gpu.capability) +
                           " has for operands of this type");
    }
    gpu_gemm_plan plan{kernel, 0, 0, tile_k_of<Input>(kernel), options.splits, rows, columns, k, batch, gpu};
    const bool weighs_epilogue = kernel == gpu_gemm_kernel::wgmma && options.splits == 1 && k != 0;
    const double epilogue = weighs_epilogue ? epilogue_time<Input>(options.epilogue_instructions, k) : 0;
    const tile_choice tile = choose_tile<Input>(gpu, kernel, rows, columns,
                                                batch * (std::max)(1, options.splits), layouts, epilogue)
                                 .tile;
    plan.tile_rows = tile.rows;
    plan.tile_columns = tile.columns;
    plan.cluster_blocks = tile.cluster_blocks;
    plan.swapped = tile.swapped;
    plan.ping_pong = tile.ping_pong;
    plan.cache_hints = options.cache_hints && kernel == gpu_gemm_kernel::wgmma;
    const std::ptrdiff_t steps = tile_count(k, slice_k_bytes / static_cast<int>(sizeof(Input)));
    if (plan.splits == 0) {
        plan.splits = choose_splits(
            gpu, tile, tile_count(rows, plan.tile_rows) * tile_count(columns, plan.tile_columns) * batch,
            steps);
    }
    plan.splits =
        static_cast<int>(std::clamp<std::ptrdiff_t>(plan.splits, 1, (std::max<std::ptrdiff_t>)(1, steps)));
    return plan;
}

/// Launches the kernel of a policy for layouts that are known.
template <template <class, class, class, bool, bool> class Policy, class Tile, bool AKMajor, bool BKMajor,
          class Executor, class A, class B, class Output, class Epilogue, class Scales>
void launch_layout(std::string_view function, const Executor& exec, const gpu_gemm_plan& plan,
                   const product_problem<A, B, Output, Epilogue>& problem, const Scales& scales) {
    using policy = Policy<Tile, A, B, AKMajor, BKMajor>;
    using kernel = multistage_gemm_kernel<policy, Output, Epilogue, Scales>;
    const kernel it{problem, scales};
    launch(function, exec,
           simt::launch_size{it.blocks(plan.batch), kernel::shared_bytes(plan.gpu.capability)}, it);
}

/// For those of the problem.
template <template <class, class, class, bool, bool> class Policy, class Tile, class Executor, class A,
          class B, class Output, class Epilogue, class Scales>
void launch_layouts(std::string_view function, const Executor& exec, const gpu_gemm_plan& plan,
                    const product_problem<A, B, Output, Epilogue>& problem, const Scales& scales) {
    with_layouts(problem, [&]<bool AKMajor, bool BKMajor>() {
        launch_layout<Policy, Tile, AKMajor, BKMajor>(function, exec, plan, problem, scales);
    });
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Decides how products of a (rows x k) and b (k x columns) are computed on a GPU with these
/// properties; `batch` is how many of them there are in a call. Throws argument_error for a kernel that the
/// device lacks for the type, for negative sizes and epilogues, and for splits below zero or above 64.
template <gpu_gemm_input Input, gpu_gemm_kernel Kernel = gpu_gemm_kernel::automatic>
[[nodiscard]] gpu_gemm_plan plan_gemm(const gpu_properties& gpu, std::ptrdiff_t rows, std::ptrdiff_t columns,
                                      std::ptrdiff_t k, std::ptrdiff_t batch = 1,
                                      const gpu_gemm_options& options = {}) {
    using input = std::remove_const_t<Input>;
    return detail::plan_with_kernel<input>(
        gpu, detail::resolve_kernel<input, Kernel>(gpu, {}, rows, columns, batch), rows, columns, k, batch,
        options);
}

}}  // namespace mp
