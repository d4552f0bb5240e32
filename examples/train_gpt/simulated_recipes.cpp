// SPDX-License-Identifier: MIT
// The loop for GPUs on the simulated one, some thousand times slower: to try it where there is no GPU. The
// recipes are the one that has everything, casts, loss scaling and skipped steps, and those of 8 bits.
#include <mp/bfloat16.hpp>
#include <mp/gpu.hpp>
#include <mp/workspace.hpp>

#include <cstddef>

#include "device_training.hpp"

namespace examples::train_gpt {
namespace {

/// Of the architecture with the fewest kernels of products to compile.
class simulated_device {
public:
    using executor = mp::simulated_gpu<mp::arch::sm_75>;

    explicit simulated_device(int threads) : threads_(threads) {}
    [[nodiscard]] executor exec() {
        return {.threads = threads_, .workspace = &of_steps_, .recorder = &recorder_};
    }
    [[nodiscard]] executor beside() { return {.threads = threads_, .workspace = &beside_}; }
    void wait() const {}
    [[nodiscard]] std::size_t workspace_bytes() const {
        return of_steps_.high_water() + beside_.high_water();
    }

private:
    int threads_;
    mp::host_workspace of_steps_;
    mp::host_workspace beside_;
    mp::simt::launch_recorder recorder_;
};

constexpr recipe recipes[] = {
    {"amp_fp16", "float under autocast, which computes in half, with dynamic loss scaling",
     [](const training_task& task) {
         simulated_device device(task.threads);
         // Autocast at compile time: of the kernels only those of half.
         return train_on_device<float, mp::autocast::fp16, float, true>(device, task);
     }},
    {"fp8", "products in float8_e4m3fn and e5m2 with delayed scaling, the rest as bf16",
     [](const training_task& task) {
         simulated_device device(task.threads);
         return train_on_device<mp::bfloat16, mp::layers::float8_delayed_scaling, float, false>(device, task);
     }},
    {"mxfp8", "products of blocks of 32 in float8_e4m3fn, the rest as bf16",
     [](const training_task& task) {
         simulated_device device(task.threads);
         return train_on_device<mp::bfloat16, mp::layers::mxfp8_block_scaling, float, false>(device, task);
     }},
};

}  // namespace

gpu simulated_gpu() {
    return {"a simulated GPU", recipes};
}

}  // namespace examples::train_gpt
