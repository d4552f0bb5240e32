// SPDX-License-Identifier: MIT
/// \file
/// The two schedules of products by wgmma beside each other, with epilogues of several lengths and little or much k.
#pragma once

#include <mp/bfloat16.hpp>
#include <mp/device/gpu/gemm.hpp>
#include <mp/linalg/gemm/epilogue.hpp>

#include <cstddef>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "device.hpp"
#include "kernel_labels.hpp"
#include "measure.hpp"
#include "other_products.hpp"
#include "random_data.hpp"

namespace bench::gpu {

/// Adds a schedule, unless it is excluded: the kernel that mp::gemm launches with such a plan, for operands that both run
/// along k.
template <class Tile, class Epilogue>
void add_schedule(std::vector<contender>& to, device& on, const char* name, const product_size& size,
                  const mp::bfloat16* a, const mp::bfloat16* b, mp::bfloat16* c, const Epilogue& epilogue) {
    using value = mp::bfloat16;
    const auto exec = on.exec();
    auto plan = mp::plan_gemm<value, mp::gpu_gemm_kernel::wgmma>(exec, size.rows, size.columns, size.k);
    plan.tile_rows = Tile::rows;
    plan.tile_columns = Tile::columns;
    plan.cluster_blocks = Tile::cluster_blocks;
    plan.swapped = false;
    plan.ping_pong = Tile::ping_pong;
    if (is_excluded<value>(plan)) return;
    std::printf("%s: %s\n", text(size).c_str(), plan.kernel_name().c_str());
    to.push_back({name,
                  [=] {
                      mp::detail::launch_warpgroup_tile<true, true, Tile>(
                          "bench", exec, plan,
                          mp::detail::make_product_problem(1.0F, mp::row_major(a, size.rows, size.k),
                                                           mp::column_major(b, size.k, size.columns), 0.0F,
                                                           mp::row_major(c, size.rows, size.columns),
                                                           epilogue, {}, false),
                          mp::detail::no_scales{});
                  },
                  "mp"});
}

template <class Epilogue>
void measure_schedules(device& on, measurements& to, const std::string& table, const Epilogue& epilogue) {
    std::vector<product_size> sizes;
    for (const std::ptrdiff_t k : {128, 256, 512, 1024, 2048, 4096}) sizes.push_back({8192, 8192, k});
    if (device::is_simulated) sizes = {{130, 264, 72}};
    for (const product_size& size : sizes) {
        if (!to.selects(table, text(size))) continue;
        const auto a = random_array<mp::bfloat16>(on, static_cast<std::size_t>(size.rows * size.k), 1);
        const auto b = random_array<mp::bfloat16>(on, static_cast<std::size_t>(size.k * size.columns), 2);
        auto c = on.make<mp::bfloat16>(static_cast<std::size_t>(size.rows * size.columns));
        std::vector<contender> all;
        const auto add = [&]<class Tile>(const char* name) {
            add_schedule<Tile>(all, on, name, size, a.data(), b.data(), c.data(), epilogue);
        };
        add.template operator()<mp::detail::warpgroup_tile<128, 256, 2>>("mp cooperative");
        add.template operator()<mp::detail::warpgroup_tile<64, 256, 2, true>>("mp ping-pong");
        const auto result_of = [&](const contender& it) {
            it.enqueue();
            on.wait();
            return first_elements(on, c, std::size_t{1} << 22);
        };
        if (all.size() == 2) {
            const auto expected = result_of(all[0]);
            mark_unless_alike(all[1], text(size), relative_difference(result_of(all[1]), expected), 0);
        }
        to.add(product_row(table.c_str(), text(size), size, 2), all);
    }
}

/// With the identity, a bias and relu, and a bias and gelu.
inline void measure_schedules(device& on, measurements& to) {
    const auto terms = on.put(std::vector<float>(device::is_simulated ? 264 : 8192, 0.25F));
    const auto bias = mp::bias_per_column(std::span<const float>(terms.data(), terms.size()));
    measure_schedules(on, to, "schedules of wgmma with the identity", mp::identity_epilogue{});
    measure_schedules(on, to, "schedules of wgmma with bias and relu",
                      mp::compose(bias, mp::relu_epilogue{}));
    measure_schedules(on, to, "schedules of wgmma with bias and gelu",
                      mp::compose(bias, mp::gelu_epilogue{}));
}

}  // namespace bench::gpu
