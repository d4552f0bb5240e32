// SPDX-License-Identifier: MIT
// Checks the kernels of matrix products on this device, one kernel a process, since a failed launch invalidates the
// device for the whole process: products of random numbers, in all layouts of the kernel, are compared with the
// tensor-core model of the device, bit for bit.
//
//   exactness --rows     prints the labels of the kernels (kernel_labels.hpp), a line each
//   exactness LABEL      checks one. Prints a line of a CSV table: name,result,elements,different,what. Exits with 0 if
//                        all bits are those of the model, with 1 if not, with 77 if the device does not have the kernel.
#include <mp/bfloat16.hpp>
#include <mp/float8.hpp>
#include <mp/gemm.hpp>
#include <mp/half.hpp>
#include <mp/tensor_core.hpp>
#include <mp/tfloat32.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "architectures.hpp"
#include "device.hpp"
#include "kernel_labels.hpp"

namespace {

using bench::gpu::device;
using mp::arch;
using mp::gpu_gemm_kernel;
using mp::gpu_gemm_plan;
using mp::storage_order;

/// Result of a check.
struct finding {
    enum class kind { right, wrong, not_here };
    kind result = kind::right;
    std::size_t elements = 0;
    std::size_t different = 0;
    std::string what = {};  ///< the first difference, or why nothing was compared
};

/// Operands and layouts of a product.
struct problem {
    std::ptrdiff_t rows;
    std::ptrdiff_t columns;
    std::ptrdiff_t k;
    storage_order a_order;
    storage_order b_order;
};

template <class Value>
std::vector<Value> random_numbers(std::ptrdiff_t size, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> draw;
    std::vector<Value> values(static_cast<std::size_t>(size));
    for (Value& it : values) it = mp::round_to<Value>(draw(random));
    return values;
}

template <class Value>
mp::matrix_view<Value> view_of(Value* data, std::ptrdiff_t rows, std::ptrdiff_t columns,
                               storage_order order) {
    return order == storage_order::row_major ? mp::row_major(data, rows, columns)
                                             : mp::column_major(data, rows, columns);
}

/// Computes the product by the tensor-core model of a capability; that of floats in the order of ordinary instructions.
/// Returns false if there is no model of the operands.
template <class Input, class Output>
bool multiply_by_model(int capability, gpu_gemm_kernel kernel, mp::matrix_view<const Input> a,
                       mp::matrix_view<const Input> b, mp::matrix_view<Output> c) {
    if constexpr (std::is_same_v<Input, float>) {
        mp::gemm(mp::cpu{.products = mp::accumulation::ordered}, 1.0F, a, b, 0.0F, c);
        return true;
    } else {
        bool has_model = false;
        bench::gpu::with_architecture(capability, [&]<arch Arch>() {
            if constexpr (mp::block_rule_of(Arch, mp::detail::operand_kind_of<Input>, false).products != 0) {
                const auto unit = mp::has_float8_through_half(Arch) && kernel != gpu_gemm_kernel::wgmma
                                      ? mp::float8_unit::through_half
                                      : mp::float8_unit::native;
                mp::gemm(mp::emulated<Arch>{.threads = 8, .float8 = unit}, 1.0F, a, b, 0.0F, c);
                has_model = true;
            }
        });
        return has_model;
    }
}

/// The result that the plan has by the model: slices of k are added in float, in order. Empty if there is no model.
template <class Input, class Output>
std::vector<Output> expected_result(int capability, const gpu_gemm_plan& plan, mp::matrix_view<const Input> a,
                                    mp::matrix_view<const Input> b) {
    std::vector<Output> result(static_cast<std::size_t>(a.rows * b.columns));
    const auto view = [&](auto& values) { return mp::row_major(values.data(), a.rows, b.columns); };
    if (plan.splits == 1) {
        const bool has_model = multiply_by_model<Input, Output>(capability, plan.kernel, a, b, view(result));
        return has_model ? result : std::vector<Output>();
    }
    constexpr std::ptrdiff_t step = mp::detail::slice_k_bytes / static_cast<std::ptrdiff_t>(sizeof(Input));
    const std::ptrdiff_t slice =
        mp::detail::tile_count(mp::detail::tile_count(a.columns, step), plan.splits) * step;
    std::vector<float> total(result.size());
    std::vector<float> sums(result.size());
    for (std::ptrdiff_t begin = 0; begin < a.columns; begin += slice) {
        const std::ptrdiff_t size = std::min(slice, a.columns - begin);
        if (!multiply_by_model<Input, float>(capability, plan.kernel, a.block(0, begin, a.rows, size),
                                             b.block(begin, 0, size, b.columns), view(sums))) {
            return {};
        }
        for (std::size_t i = 0; i < total.size(); ++i) {
            total[i] = begin == 0 ? sums[i] : mp::detail::float_add(total[i], sums[i]);
        }
    }
    std::transform(total.begin(), total.end(), result.begin(),
                   [](float it) { return mp::round_to<Output>(it); });
    return result;
}

template <class Output>
void compare(const std::vector<Output>& found, const std::vector<Output>& expected, std::ptrdiff_t columns,
             finding& to) {
    for (std::size_t i = 0; i < expected.size(); ++i) {
        ++to.elements;
        if (std::memcmp(&found[i], &expected[i], sizeof(Output)) == 0) continue;
        if (mp::isnan(found[i]) && mp::isnan(expected[i])) continue;
        if (++to.different != 1) continue;
        const auto at = static_cast<std::ptrdiff_t>(i);
        char text[120];
        std::snprintf(text, sizeof text, "(%td %td) is %.9g instead of %.9g", at / columns, at % columns,
                      static_cast<double>(found[i]), static_cast<double>(expected[i]));
        to.what = text;
        to.result = finding::kind::wrong;
    }
}

/// Multiplies by the plan, whose sizes are set here, and compares the result with the model.
template <gpu_gemm_kernel Kernel, class Input, class Output>
void check_product(device& on, gpu_gemm_plan plan, const problem& it, finding& to) {
    const auto letter = [](storage_order order) { return order == storage_order::row_major ? 'r' : 'c'; };
    // The last line of the log says which product a kernel does not return from.
    std::fprintf(stderr, "%tdx%tdx%td, layouts %c%c\n", it.rows, it.columns, it.k, letter(it.a_order),
                 letter(it.b_order));
    const std::vector<Input> a_values = random_numbers<Input>(it.rows * it.k, 1);
    const std::vector<Input> b_values = random_numbers<Input>(it.k * it.columns, 2);
    const device::array<Input> a_memory = on.put(a_values);
    const device::array<Input> b_memory = on.put(b_values);
    device::array<Output> c_memory = on.make<Output>(static_cast<std::size_t>(it.rows * it.columns));
    plan.rows = it.rows;
    plan.columns = it.columns;
    plan.k = it.k;
    device::array<float> workspace = on.make<float>(plan.workspace_size());
    mp::gemm<Kernel>(on.exec(), plan, 1.0F, view_of<const Input>(a_memory.data(), it.rows, it.k, it.a_order),
                     view_of<const Input>(b_memory.data(), it.k, it.columns, it.b_order), 0.0F,
                     mp::row_major(c_memory.data(), it.rows, it.columns), mp::identity_epilogue{},
                     workspace.span());
    on.wait();
    const std::vector<Output> expected = expected_result<Input, Output>(
        on.capability(), plan, view_of<const Input>(a_values.data(), it.rows, it.k, it.a_order),
        view_of<const Input>(b_values.data(), it.k, it.columns, it.b_order));
    if (expected.empty()) {
        to.result = finding::kind::not_here;
        to.what = "there is no model of this device";
        return;
    }
    compare(on.get(c_memory), expected, it.columns, to);
}

/// Checks the kernel of a plan in all layouts: several tiles in each direction, whose edges are partial, and several tiles
/// for each block of threads.
template <gpu_gemm_kernel Kernel, class Input, class Output>
finding check_kernel(device& on, gpu_gemm_plan plan) {
    finding result;
    plan.gpu = mp::properties_of(on.exec());
    if (!mp::detail::can_run<Input>(plan.gpu, Kernel)) {
        return {finding::kind::not_here, 0, 0, "not in this device, or not in the code for it"};
    }
    plan.gpu.multiprocessors = 4;
    constexpr auto row = storage_order::row_major;
    constexpr auto column = storage_order::column_major;
    const std::ptrdiff_t rows =
        plan.swapped ? plan.tile_rows - 3
                     : (device::is_simulated ? 72 : 2 * plan.tile_rows * plan.cluster_blocks + 40);
    const std::ptrdiff_t columns = device::is_simulated ? 72 : 2 * plan.tile_columns + 24;
    const std::ptrdiff_t k = device::is_simulated ? 400 : 528;
    const auto check = [&](storage_order a_order, storage_order b_order) {
        check_product<Kernel, Input, Output>(on, plan, {rows, columns, k, a_order, b_order}, result);
    };
    check(row, column);
    // TMA tiles of other types have to run along k.
    if (Kernel == gpu_gemm_kernel::wgmma && sizeof(Input) != 2) return result;
    check(row, row);
    if (plan.swapped) return result;
    check(column, row);
    check(column, column);
    return result;
}

struct candidate {
    std::string label;
    std::function<finding(device& on)> check;
};

template <gpu_gemm_kernel Kernel, class Input, class Output>
void add_kernels(std::vector<candidate>& to, int splits = 1) {
    for (const mp::detail::tile_choice& tile : mp::detail::tiles_of<Input>(Kernel)) {
        gpu_gemm_plan plan;
        plan.kernel = Kernel;
        plan.tile_rows = tile.rows;
        plan.tile_columns = tile.columns;
        plan.tile_k = mp::detail::tile_k_of<Input>(Kernel);
        plan.splits = splits;
        plan.cluster_blocks = tile.cluster_blocks;
        plan.swapped = tile.swapped;
        plan.ping_pong = tile.ping_pong;
        to.push_back({bench::gpu::kernel_label<Input>(plan),
                      [plan](device& on) { return check_kernel<Kernel, Input, Output>(on, plan); }});
    }
}

/// All tiles of the kernels that `automatic` takes for some device, and those of wgmma and wmma that callers ask for.
std::vector<candidate> all_candidates() {
    using mp::bfloat16;
    using mp::float8_e4m3fn;
    using mp::float8_e5m2;
    using mp::half;
    using mp::tfloat32;
    constexpr auto mma = gpu_gemm_kernel::mma;
    constexpr auto wgmma = gpu_gemm_kernel::wgmma;
    constexpr auto wmma = gpu_gemm_kernel::wmma;
    std::vector<candidate> all;
    add_kernels<gpu_gemm_kernel::simt, float, float>(all);
    add_kernels<mma, bfloat16, bfloat16>(all);
    add_kernels<wgmma, bfloat16, bfloat16>(all);
    add_kernels<mma, float8_e4m3fn, bfloat16>(all);
    add_kernels<wgmma, float8_e4m3fn, bfloat16>(all);
    add_kernels<mma, bfloat16, bfloat16>(all, bench::gpu::label_splits);
    add_kernels<wgmma, bfloat16, bfloat16>(all, bench::gpu::label_splits);
    add_kernels<mma, half, half>(all);
    add_kernels<wgmma, half, half>(all);
    add_kernels<mma, tfloat32, float>(all);
    add_kernels<wgmma, tfloat32, float>(all);
    add_kernels<mma, float8_e5m2, bfloat16>(all);
    add_kernels<wmma, half, float>(all);
    add_kernels<wmma, bfloat16, bfloat16>(all);
    add_kernels<wmma, tfloat32, float>(all);
    return all;
}

void print(const std::string& label, const char* result, const finding& it) {
    std::string what = it.what;
    std::replace(what.begin(), what.end(), ',', ';');
    std::replace(what.begin(), what.end(), '\n', ' ');
    std::printf("%s,%s,%zu,%zu,%s\n", label.c_str(), result, it.elements, it.different, what.c_str());
}

int run(const candidate& it) {
    try {
        device on;
        const finding found = it.check(on);
        constexpr const char* words[] = {"ok", "wrong", "skipped"};
        constexpr int statuses[] = {0, 1, 77};
        print(it.label, words[static_cast<int>(found.result)], found);
        return statuses[static_cast<int>(found.result)];
    } catch (const std::exception& error) {
        print(it.label, "failed", {finding::kind::wrong, 0, 0, error.what()});
        return 1;
    }
}

}  // namespace

int main(int argc, char** argv) {
    const std::string_view wanted = argc == 2 ? argv[1] : "";
    for (const candidate& it : all_candidates()) {
        if (wanted == "--rows") std::printf("%s\n", it.label.c_str());
        if (wanted == it.label) return run(it);
    }
    if (wanted == "--rows") return 0;
    std::fprintf(stderr, "usage: %s --rows | LABEL, where LABEL is one of those that --rows prints\n",
                 argv[0]);
    return 2;
}
