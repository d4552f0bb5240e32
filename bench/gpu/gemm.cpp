// SPDX-License-Identifier: MIT
// Matrix products beside cuBLASLt: squares, few rows or columns, little and much k, odd sizes, and all
// layouts. Both write c from random a and b in device memory; alpha is 1 and beta is 0. Small matrices stay
// in the caches of the device from run to run, for all contenders.
#include <mp/bfloat16.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>
#include <mp/tfloat32.hpp>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "device.hpp"
#include "kernel_labels.hpp"
#include "measure.hpp"
#include "other_products.hpp"
#include "random_data.hpp"
#include "schedules.hpp"
#if defined(__CUDACC__) && __has_include(<cublasLt.h>)
#define MP_BENCH_HAS_CUBLASLT 1
#include "cublaslt.hpp"
#endif

namespace {

using bench::gpu::contender;
using bench::gpu::device;
using bench::gpu::measurements;
using mp::gpu_gemm_kernel;
using mp::storage_order;

struct shape {
    std::ptrdiff_t rows;
    std::ptrdiff_t columns;
    std::ptrdiff_t k;
    bool splits = false;  ///< also with k divided among blocks of threads
};

std::string text(const shape& it) {
    return std::to_string(it.rows) + "x" + std::to_string(it.columns) + "x" + std::to_string(it.k);
}

std::vector<shape> shapes() {
    if (device::is_simulated) return {{64, 64, 64}, {33, 65, 130}, {16, 32, 1100, true}};
    std::vector<shape> result;
    for (const std::ptrdiff_t size : {512, 1024, 2048, 4096, 8192, 16384})
        result.push_back({size, size, size});
    const shape others[] = {{16, 8192, 8192, true}, {128, 8192, 8192, true}, {8192, 128, 8192, true},
                            {8192, 8192, 128},      {64, 64, 65536, true},   {4096, 14336, 4096},
                            {1023, 1023, 1023},     {4095, 4095, 4095},      {4097, 4097, 4097},
                            {8184, 8184, 8184}};
    result.insert(result.end(), std::begin(others), std::end(others));
    return result;
}

template <class Value>
mp::matrix_view<Value> view_of(device::array<Value>& array, std::ptrdiff_t rows, std::ptrdiff_t columns,
                               storage_order order) {
    return order == storage_order::row_major ? mp::row_major(array.data(), rows, columns)
                                             : mp::column_major(array.data(), rows, columns);
}

/// How a product is launched.
struct way {
    int splits = 1;
    bool overlapped = false;  ///< kernels begin before those before them have ended
    bool cache_hints = false;
};

/// The matrices of a row of a table and the ways to multiply them.
template <class Input, class Output>
class product {
public:
    product(device& on, const shape& size, storage_order a_order, storage_order b_order)
        : on_(&on),
          size_(size),
          a_memory_(random(on, size.rows * size.k, 1)),
          b_memory_(random(on, size.k * size.columns, 2)),
          c_memory_(on.make<Output>(static_cast<std::size_t>(size.rows * size.columns))),
          a_(view_of(a_memory_, size.rows, size.k, a_order)),
          b_(view_of(b_memory_, size.k, size.columns, b_order)),
          c_(mp::row_major(c_memory_.data(), size.rows, size.columns)) {}

    template <gpu_gemm_kernel Kernel>
    void add(std::vector<contender>& to, const way& how = {}) {
        const auto exec = how.overlapped ? on_->overlapping_exec() : on_->exec();
        const mp::gpu_properties gpu = mp::properties_of(exec);
        if (!mp::detail::can_run<Input>(gpu, Kernel)) return;
        if (Kernel == gpu_gemm_kernel::wgmma && !fits_warpgroups()) return;
        const mp::gpu_gemm_plan plan =
            mp::plan_gemm<Kernel>(exec, a_, b_, {.splits = how.splits, .cache_hints = how.cache_hints});
        if (how.splits != 1 && plan.splits == 1) return;
        if (bench::gpu::is_excluded<Input>(plan)) return;
        const auto workspace =
            std::make_shared<device::array<float>>(on_->make<float>(plan.workspace_size()));
        std::string name = "mp " + std::string(mp::name_of(Kernel)) + (how.splits == 1 ? "" : " split") +
                           (how.overlapped ? " overlapped" : "") + (how.cache_hints ? " hints" : "");
        std::printf("%s: %s\n", text(size_).c_str(), plan.kernel_name().c_str());
        to.push_back({std::move(name),
                      [this, exec, plan, workspace] {
                          mp::gemm<Kernel>(exec, plan, 1.0F, a_, b_, 0.0F, c_, mp::identity_epilogue{},
                                           workspace->span());
                      },
                      "mp"});
    }

    /// All that the device has.
    std::vector<contender> contenders(bool all) {
        std::vector<contender> result;
        add<gpu_gemm_kernel::wgmma>(result);
        if (!device::is_simulated && (size_.splits || size_.rows <= 2048)) {
            add<gpu_gemm_kernel::wgmma>(result, {.overlapped = true});
        }
        if (!device::is_simulated && size_.splits) add<gpu_gemm_kernel::wgmma>(result, {.cache_hints = true});
        add<gpu_gemm_kernel::mma>(result);
        if (size_.splits) add<gpu_gemm_kernel::wgmma>(result, {.splits = 0});
        if (size_.splits) add<gpu_gemm_kernel::mma>(result, {.splits = 0});
        if constexpr (sizeof(Input) != 1) {
            if (all) add<gpu_gemm_kernel::wmma>(result);
        }
#if defined(MP_BENCH_HAS_CUBLASLT)
        if (bench::gpu::cublaslt_functions::find() == nullptr) return result;
        static bench::gpu::cublaslt_library library;
        for (const bool fast : {false, true}) {
            if (fast && sizeof(Input) != 1) break;
            const auto it =
                std::make_shared<bench::gpu::cublaslt_product<Input, Output>>(library, a_, b_, c_, fast);
            if (!it->is_available()) break;
            result.push_back({fast ? "cuBLASLt fast" : "cuBLASLt",
                              [it, exec = on_->exec()] { it->enqueue(exec); }, "contender"});
        }
#endif
        return result;
    }

    /// Products with a scale for each 128 of k: a in lines of one row, b in blocks of 128 columns.
    template <gpu_gemm_kernel Kernel>
    void add_scaled(std::vector<contender>& to) {
        const auto exec = on_->exec();
        if (!mp::detail::can_run<Input>(mp::properties_of(exec), Kernel)) return;
        if (Kernel == gpu_gemm_kernel::wgmma && !fits_warpgroups()) return;
        const std::ptrdiff_t blocks = groups(size_.k, mp::k_per_scale);
        const std::ptrdiff_t column_groups = groups(size_.columns, 128);
        if (a_scales_.size() == 0) {
            a_scales_ = scales(size_.rows * blocks, 3);
            b_scales_ = scales(column_groups * blocks, 4);
        }
        const mp::gpu_gemm_plan plan = mp::plan_gemm<Kernel>(exec, a_, b_);
        if (bench::gpu::is_excluded<Input>(plan)) return;
        const mp::k_block_scales of_a{mp::row_major<const float>(a_scales_.data(), size_.rows, blocks), 1};
        const mp::k_block_scales of_b{mp::column_major<const float>(b_scales_.data(), blocks, column_groups),
                                      128};
        to.push_back({"mp " + std::string(mp::name_of(Kernel)) + " scaled",
                      [this, exec, plan, of_a, of_b] {
                          mp::gemm_scaled<Kernel>(exec, plan, 1.0F, a_, of_a, b_, of_b, 0.0F, c_);
                      },
                      "mp"});
    }

    /// Marks contenders that come to something else than the first one, or on the simulated GPU than the host, in
    /// as many elements as are quickly looked at.
    void mark_wrong(std::vector<contender>& all) {
        std::vector<Output> expected;
        for (contender& it : all) {
            const std::vector<Output> found = result_of(it);
            const bool is_scaled = it.name.find("scaled") != std::string::npos;
            if (expected.empty()) expected = is_scaled ? found : reference(found);
            // cuBLASLt's fast sums of 8 bits keep 13 bits.
            const double bound = sizeof(Input) == 1 ? 2e-2 : std::is_same_v<Output, float> ? 1e-3 : 1e-2;
            bench::gpu::mark_unless_alike(it, text(size_), bench::gpu::relative_difference(found, expected),
                                          bound);
        }
    }

private:
    static device::array<Input> random(device& on, std::ptrdiff_t size, unsigned seed) {
        return bench::gpu::random_array<Input>(on, static_cast<std::size_t>(size), seed);
    }
    [[nodiscard]] device::array<float> scales(std::ptrdiff_t count, unsigned seed) const {
        return bench::gpu::random_array<float>(*on_, static_cast<std::size_t>(count), seed);
    }
    static std::ptrdiff_t groups(std::ptrdiff_t size, std::ptrdiff_t of) { return (size + of - 1) / of; }

    /// Lines have to begin at multiples of 16 bytes, and to run along k unless elements have 16 bits.
    [[nodiscard]] bool fits_warpgroups() const {
        const auto fits = [](const auto& view, storage_order along_k) {
            return view.leading_dimension * static_cast<std::ptrdiff_t>(sizeof(Input)) % 16 == 0 &&
                   (sizeof(Input) == 2 || view.order == along_k);
        };
        return fits(a_, storage_order::row_major) && fits(b_, storage_order::column_major);
    }

    [[nodiscard]] std::vector<Output> result_of(const contender& it) {
        it.enqueue();
        on_->wait();
        return bench::gpu::first_elements(*on_, c_memory_, std::size_t{1} << 22);
    }

    /// On the host in double, where that is quickly done; else what the first contender found.
    [[nodiscard]] std::vector<Output> reference(const std::vector<Output>& found) {
        if (!device::is_simulated) return found;
        std::vector<Output> result;
        for (std::ptrdiff_t i = 0; i < size_.rows; ++i) {
            for (std::ptrdiff_t j = 0; j < size_.columns; ++j) {
                double sum = 0;
                for (std::ptrdiff_t p = 0; p < size_.k; ++p) {
                    sum += static_cast<double>(a_(i, p)) * static_cast<double>(b_(p, j));
                }
                result.push_back(mp::round_to<Output>(sum));
            }
        }
        return result;
    }

    device* on_;
    shape size_;
    device::array<Input> a_memory_;
    device::array<Input> b_memory_;
    device::array<Output> c_memory_;
    mp::matrix_view<Input> a_;
    mp::matrix_view<Input> b_;
    mp::matrix_view<Output> c_;
    device::array<float> a_scales_ = on_->make<float>(0);
    device::array<float> b_scales_ = on_->make<float>(0);
};

double elements(std::ptrdiff_t rows, std::ptrdiff_t columns) {
    return static_cast<double>(rows) * static_cast<double>(columns);
}

template <class Input, class Output>
bench::gpu::row row_of(const std::string& table, const std::string& name, const shape& size) {
    return {table,
            name,
            "TFLOP/s",
            elements(size.rows, size.columns),
            (elements(size.rows, size.k) + elements(size.k, size.columns)) * sizeof(Input) +
                elements(size.rows, size.columns) * sizeof(Output),
            2 * elements(size.rows, size.columns) * static_cast<double>(size.k)};
}

template <class Input, class Output>
void measure(device& on, measurements& to, const std::string& table, const std::string& name,
             const shape& size, storage_order a_order, storage_order b_order) {
    if (!to.selects(table, name)) return;
    product<Input, Output> it(on, size, a_order, b_order);
    const bool large = size.rows * size.columns > std::ptrdiff_t{8192} * 8192;
    std::vector<contender> all = it.contenders(!large);
    it.mark_wrong(all);
    to.add(row_of<Input, Output>(table, name, size), all);
}

/// Scaled products, with others' products without scales to compare with.
void measure_scaled(device& on, measurements& to) {
    using input = mp::float8_e4m3fn;
    using output = mp::bfloat16;
    std::vector<shape> sizes{{4096, 4096, 4096}, {8192, 8192, 8192}, {4096, 14336, 4096}};
    if (device::is_simulated) sizes = {{33, 65, 272}};
    const std::string table = "float8_e4m3fn matrix product with scales of 128 of k";
    for (const shape& size : sizes) {
        if (!to.selects(table, text(size))) continue;
        product<input, output> it(on, size, storage_order::row_major, storage_order::column_major);
        std::vector<contender> all;
        it.add_scaled<gpu_gemm_kernel::wgmma>(all);
        it.add_scaled<gpu_gemm_kernel::mma>(all);
        it.mark_wrong(all);
        for (contender& other : it.contenders(false)) {
            if (other.role == "contender") other.role = "reference";
            all.push_back(std::move(other));
        }
        to.add(row_of<input, output>(table, text(size), size), all);
    }
}

template <class Input, class Output>
void measure_type(device& on, measurements& to, const std::string& type) {
    for (const shape& size : shapes()) {
        measure<Input, Output>(on, to, type + " matrix product", text(size), size, storage_order::row_major,
                               storage_order::column_major);
    }
    if (sizeof(Input) != 2) return;
    constexpr std::pair<storage_order, const char*> orders[] = {
        {storage_order::row_major, "row-major"}, {storage_order::column_major, "column-major"}};
    const std::ptrdiff_t edge = device::is_simulated ? 40 : 4096;
    for (const auto& [a_order, a_name] : orders) {
        for (const auto& [b_order, b_name] : orders) {
            measure<Input, Output>(on, to, type + " matrix product by layout",
                                   std::string("a ") + a_name + " b " + b_name, {edge, edge, edge}, a_order,
                                   b_order);
        }
    }
}

}  // namespace

int main(int argc, char** argv) {
    struct part {
        const char* name;
        void (*run)(device& on, measurements& to);
    };
    constexpr part parts[] = {
        {"bfloat16",
         [](device& on, measurements& to) { measure_type<mp::bfloat16, mp::bfloat16>(on, to, "bfloat16"); }},
        {"half", [](device& on, measurements& to) { measure_type<mp::half, mp::half>(on, to, "half"); }},
        {"float8",
         [](device& on, measurements& to) {
             measure_type<mp::float8_e4m3fn, mp::bfloat16>(on, to, "float8_e4m3fn");
         }},
        {"scaled", measure_scaled},
        {"schedules", bench::gpu::measure_schedules},
        {"integers", bench::gpu::measure_integers},
        {"groups", bench::gpu::measure_groups},
        {"tfloat32",
         [](device& on, measurements& to) { measure_type<mp::tfloat32, float>(on, to, "tfloat32"); }}};
    return bench::gpu::run_program(
        argc, argv, "gemm", [&](device& on, measurements& to, const std::vector<std::string>& chosen) {
            bench::gpu::for_chosen(parts, chosen, [&](const part& it) { it.run(on, to); });
        });
}
