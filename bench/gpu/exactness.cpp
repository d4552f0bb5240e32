// SPDX-License-Identifier: MIT
// Which kernels of matrix products are right on this device: each multiplies 512 x 512 x 512 random numbers and is
// compared with the tensor-core model, bit for bit, and so is a product of other layouts with k = 528.
//
//   exactness            the names of the kernels, a line each
//   exactness NAME       tries one, and ends with 0 if it is right. Prints a line of a CSV table:
//                        name,result,elements,different,what
//
// One kernel a process: a launch that fails takes the process's device with it.
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
#include <random>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "device.hpp"

namespace {

using bench::gpu::device;
using mp::arch;
using mp::gpu_gemm_kernel;
using mp::storage_order;

/// What came of a try.
struct finding {
    enum class kind { right, wrong, not_here };
    kind result = kind::right;
    std::size_t elements = 0;
    std::size_t different = 0;
    std::string what = {};  ///< the kernel, and the first difference
};

struct shape {
    std::ptrdiff_t rows;
    std::ptrdiff_t columns;
    std::ptrdiff_t k;
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

/// The product as the tensor cores of a device give it by the model, or as ordinary instructions do.
template <gpu_gemm_kernel Kernel, arch Arch, class Input, class Output>
void by_model(mp::matrix_view<const Input> a, mp::matrix_view<const Input> b, mp::matrix_view<Output> c) {
    if constexpr (Kernel == gpu_gemm_kernel::simt) {
        mp::gemm(mp::cpu{.products = mp::accumulation::ordered}, 1.0F, a, b, 0.0F, c);
    } else {
        constexpr auto unit = mp::has_float8_through_half(Arch) && Kernel != gpu_gemm_kernel::wgmma
                                  ? mp::float8_unit::through_half
                                  : mp::float8_unit::native;
        mp::gemm(mp::emulated<Arch>{.threads = 2, .float8 = unit}, 1.0F, a, b, 0.0F, c);
    }
}

/// By the model of the device's generation; false where there is none.
template <gpu_gemm_kernel Kernel, class Input, class Output>
bool by_model_of(int capability, mp::matrix_view<const Input> a, mp::matrix_view<const Input> b,
                 mp::matrix_view<Output> c) {
    if (capability == 90) return by_model<Kernel, arch::sm_90>(a, b, c), true;
    if constexpr (Kernel != gpu_gemm_kernel::wgmma) {
        if (capability == 80) {
            if constexpr (sizeof(Input) != 1) return by_model<Kernel, arch::sm_80>(a, b, c), true;
        }
        if (capability == 89) return by_model<Kernel, arch::sm_89>(a, b, c), true;
    }
    return false;
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
        std::snprintf(text, sizeof text, "; (%td %td) is %.9g instead of %.9g", at / columns, at % columns,
                      static_cast<double>(found[i]), static_cast<double>(expected[i]));
        to.what += text;
        to.result = finding::kind::wrong;
    }
}

/// One product by a kernel. `cluster_blocks` chooses among wgmma's tiles; 0 leaves that to the plan.
template <gpu_gemm_kernel Kernel, class Input, class Output>
void multiply(device& on, const shape& size, storage_order a_order, storage_order b_order, int cluster_blocks,
              finding& to) {
    const std::vector<Input> a_values = random_numbers<Input>(size.rows * size.k, 1);
    const std::vector<Input> b_values = random_numbers<Input>(size.k * size.columns, 2);
    device::array<Input> a_memory = on.put(a_values);
    device::array<Input> b_memory = on.put(b_values);
    device::array<Output> c_memory = on.make<Output>(static_cast<std::size_t>(size.rows * size.columns));
    const auto exec = on.exec();
    const mp::gpu_properties gpu = mp::properties_of(exec);
    const auto a = view_of<const Input>(a_memory.data(), size.rows, size.k, a_order);
    const auto b = view_of<const Input>(b_memory.data(), size.k, size.columns, b_order);
    mp::gpu_gemm_plan plan = mp::plan_gemm<Kernel>(exec, a, b);
    if (cluster_blocks != 0) {
        plan.cluster_blocks = cluster_blocks;
        plan.swapped = false;
        plan.tile_rows = 128;
        plan.tile_columns = cluster_blocks == 2 && sizeof(Input) != 1 ? 256 : 128;
    }
    to.what += (to.what.empty() ? "" : " and ") + plan.kernel_name();
    mp::gemm<Kernel>(exec, plan, 1.0F, a, b, 0.0F, mp::row_major(c_memory.data(), size.rows, size.columns));
    on.wait();
    std::vector<Output> expected(c_memory.size());
    if (!by_model_of<Kernel, Input, Output>(
            gpu.capability, view_of<const Input>(a_values.data(), size.rows, size.k, a_order),
            view_of<const Input>(b_values.data(), size.k, size.columns, b_order),
            mp::row_major(expected.data(), size.rows, size.columns))) {
        to.result = finding::kind::not_here;
        to.what += ": there is no model of this device";
        return;
    }
    compare(on.get(c_memory), expected, size.columns, to);
}

template <gpu_gemm_kernel Kernel, class Input, class Output, int ClusterBlocks = 0>
finding try_kernel(device& on) {
    finding result;
    if (!mp::detail::can_run<Input>(mp::properties_of(on.exec()), Kernel)) {
        return {finding::kind::not_here, 0, 0, "not in this device, or not in the code for it"};
    }
    constexpr auto row = storage_order::row_major;
    constexpr auto column = storage_order::column_major;
    const std::ptrdiff_t edge = device::is_simulated ? 96 : 512;
    multiply<Kernel, Input, Output>(on, {edge, edge, edge}, row, column, ClusterBlocks, result);
    // Other layouts where all kernels take them, and a k that tiles do not divide.
    constexpr bool any_layout = sizeof(Input) == 2;
    multiply<Kernel, Input, Output>(on, {edge, edge, edge + 16}, any_layout ? column : row,
                                    any_layout ? row : column, ClusterBlocks, result);
    // Few rows have tiles of their own.
    if constexpr (ClusterBlocks != 2)
        multiply<Kernel, Input, Output>(on, {24, edge, edge}, row, column, 0, result);
    return result;
}

struct tier {
    const char* name;
    finding (*run)(device& on);
};

using mp::bfloat16;
using mp::float8_e4m3fn;
using mp::half;
using mp::tfloat32;

// What others build on comes first.
constexpr tier tiers[] = {
    {"simt_float", try_kernel<gpu_gemm_kernel::simt, float, float>},
    {"wmma_half", try_kernel<gpu_gemm_kernel::wmma, half, float>},
    {"wmma_bfloat16", try_kernel<gpu_gemm_kernel::wmma, bfloat16, bfloat16>},
    {"wmma_tfloat32", try_kernel<gpu_gemm_kernel::wmma, tfloat32, float>},
    {"mma_half", try_kernel<gpu_gemm_kernel::mma, half, half>},
    {"mma_bfloat16", try_kernel<gpu_gemm_kernel::mma, bfloat16, bfloat16>},
    {"mma_tfloat32", try_kernel<gpu_gemm_kernel::mma, tfloat32, float>},
    {"mma_float8_e4m3fn", try_kernel<gpu_gemm_kernel::mma, float8_e4m3fn, bfloat16>},
    {"wgmma_half", try_kernel<gpu_gemm_kernel::wgmma, half, half, 1>},
    {"wgmma_bfloat16", try_kernel<gpu_gemm_kernel::wgmma, bfloat16, bfloat16, 1>},
    {"wgmma_bfloat16_clusters", try_kernel<gpu_gemm_kernel::wgmma, bfloat16, bfloat16, 2>},
    {"wgmma_tfloat32", try_kernel<gpu_gemm_kernel::wgmma, tfloat32, float, 1>},
    {"wgmma_tfloat32_clusters", try_kernel<gpu_gemm_kernel::wgmma, tfloat32, float, 2>},
    {"wgmma_float8_e4m3fn", try_kernel<gpu_gemm_kernel::wgmma, float8_e4m3fn, bfloat16, 1>},
    {"wgmma_float8_e4m3fn_clusters", try_kernel<gpu_gemm_kernel::wgmma, float8_e4m3fn, bfloat16, 2>},
};

void print(const char* name, const char* result, const finding& it) {
    std::string what = it.what;
    std::replace(what.begin(), what.end(), ',', ';');
    std::replace(what.begin(), what.end(), '\n', ' ');
    std::printf("%s,%s,%zu,%zu,%s\n", name, result, it.elements, it.different, what.c_str());
}

int run(const tier& it) {
    try {
        device on;
        const finding found = it.run(on);
        constexpr const char* words[] = {"right", "WRONG", "not here"};
        print(it.name, words[static_cast<int>(found.result)], found);
        return found.result == finding::kind::wrong ? 1 : 0;
    } catch (const std::exception& error) {
        print(it.name, "FAILED", {finding::kind::wrong, 0, 0, error.what()});
        return 1;
    }
}

}  // namespace

int main(int argc, char** argv) {
    const std::string_view name = argc == 2 ? argv[1] : "";
    for (const tier& it : tiers) {
        if (argc == 1) std::printf("%s\n", it.name);
        if (it.name == name) return run(it);
    }
    if (argc == 1) return 0;
    std::fprintf(stderr, "%s: there is no kernel '%s'; without arguments it names them\n", argv[0], argv[1]);
    return 2;
}
