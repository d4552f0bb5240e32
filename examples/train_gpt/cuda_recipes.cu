// SPDX-License-Identifier: MIT
// The recipes on a CUDA device. Without CUDA there is without_cuda.cpp instead.
#include <mp/cuda.hpp>

#include <mp/autocast.hpp>
#include <mp/bfloat16.hpp>
#include <mp/half.hpp>

#include <cstddef>
#include <string>

#include "../common/cuda_device.hpp"
#include "device_training.hpp"

namespace examples::train_gpt {
namespace {

/// The current CUDA device, with a stream and workspaces of its own.
class cuda_device {
public:
    [[nodiscard]] mp::cuda_stream exec() { return {stream_.get().stream, &of_steps_}; }
    [[nodiscard]] mp::cuda_stream beside() { return {stream_.get().stream, &beside_}; }
    void wait() const { mp::synchronize(stream_); }
    [[nodiscard]] std::size_t workspace_bytes() const {
        return of_steps_.high_water() + beside_.high_water();
    }

private:
    mp::unique_cuda_stream stream_;
    mp::device_workspace of_steps_{stream_};
    mp::device_workspace beside_{stream_};
};

template <class Storage, class Policy, class Master, bool Scales,
          mp::precision Computing = mp::precision::off>
training_record train(const training_task& task) {
    cuda_device device;
    return train_on_device<Storage, Policy, Master, Scales, Computing>(device, task);
}

namespace ac = mp::autocast;
constexpr recipe recipes[] = {
// All of them take minutes to compile, and those under autocast longest.
#if !defined(MP_EXAMPLE_FEW_RECIPES)
    {"fp32", "float throughout", train<float, ac::off, float, false>},
    {"amp_bf16", "float under autocast, which computes in bfloat16 what PyTorch's does",
     train<float, ac::by_region, float, false, mp::precision::bf16>},
    {"amp_fp16", "float under autocast, which computes in half, with dynamic loss scaling",
     train<float, ac::by_region, float, true, mp::precision::fp16>},
    {"bf16", "bfloat16 with float master weights", train<mp::bfloat16, ac::off, float, false>},
#endif
    {"fp16", "half with float master weights and dynamic loss scaling",
     train<mp::half, ac::off, float, true>},
#if !defined(MP_EXAMPLE_FEW_RECIPES)
    {"fp16_alone", "half weights without masters, no loss scaling",
     train<mp::half, ac::off, mp::half, false>},
    {"fp8", "products in float8_e4m3fn and e5m2 with delayed scaling, the rest as bf16",
     train<mp::bfloat16, mp::layers::float8_delayed_scaling, float, false>},
    {"mxfp8", "products of blocks of 32 in float8_e4m3fn, the rest as bf16",
     train<mp::bfloat16, mp::layers::mxfp8_block_scaling, float, false>},
#endif
};

/// Ranks of a machine follow each other, and all machines have as many devices.
void choose_device(int rank) {
    int count = 0;
    mp::check_cuda(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
    mp::check_cuda(cudaSetDevice(rank % count), "cudaSetDevice");
}

}  // namespace

gpu find_cuda_device() {
    return {cuda_device_name(), recipes, choose_device};
}

}  // namespace examples::train_gpt
