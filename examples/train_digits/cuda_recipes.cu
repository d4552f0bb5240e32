// SPDX-License-Identifier: MIT
// The recipes on a CUDA device. Without CUDA there is without_cuda.cpp instead.
#include <mp/cuda.hpp>

#include <mp/bfloat16.hpp>
#include <mp/half.hpp>
#include <mp/loss_scaling.hpp>

#include <vector>

#include "../common/cuda_device.hpp"
#include "device_training.hpp"
#include "recipes.hpp"

namespace examples::train_digits {
namespace {

using mp::bfloat16;
using mp::half;

/// The current CUDA device as device_network.hpp wants it, with a stream of its own.
class cuda_device {
public:
    template <class Value>
    using array = mp::device_buffer<Value>;

    [[nodiscard]] mp::cuda_stream exec() const { return stream_; }
    void wait() const { mp::synchronize(stream_); }

    template <class Value>
    [[nodiscard]] array<Value> put(const std::vector<Value>& values) const {
        return array<Value>(stream_, values);
    }
    template <class Value>
    [[nodiscard]] std::vector<Value> get(const array<Value>& from) const {
        return from.to_host(stream_);
    }

private:
    mp::unique_cuda_stream stream_;
};

template <class Value, class Master, class Policy>
training_record train_on_cuda(const training_task& task, const Policy& policy, bool checks) {
    cuda_device device;
    return train_on_device<Value, Master>(device, task, policy, checks);
}

/// Every step is made, with scale 1.
template <class Value, class Master>
training_record train_unscaled(const training_task& task) {
    return train_on_cuda<Value, Master>(task, mp::static_policy{}, false);
}

constexpr recipe recipes[] = {
    {"fp32", "fp32 in TF32", train_unscaled<float, float>, false, true},
#if !defined(MP_EXAMPLE_FEW_RECIPES)
    {"fp16", "fp16 alone", train_unscaled<half, half>},
#endif
    {"fp16-master", "fp16, master weights", train_unscaled<half, float>},
    {"fp16-static", "fp16, masters, static scale",
     [](const training_task& task) {
         const auto weight = static_cast<float>(task.loss_weight);
         return train_on_cuda<half, float>(task, mp::static_policy{.initial_scale = static_scale / weight},
                                           true);
     },
     true},
    {"fp16-dynamic", "fp16, masters, dynamic scale",
     [](const training_task& task) {
         return train_on_cuda<half, float>(task, mp::pytorch_policy{.growth_interval = growth_interval},
                                           true);
     },
     true},
#if !defined(MP_EXAMPLE_FEW_RECIPES)
    {"bf16-master", "bf16, master weights", train_unscaled<bfloat16, float>},
    {"bf16", "bf16 alone", train_unscaled<bfloat16, bfloat16>},
#endif
};

}  // namespace

gpu find_cuda_device() {
    return {cuda_device_name(), recipes};
}

}  // namespace examples::train_digits
