// SPDX-License-Identifier: MIT
// Loss scalers: the scales of every policy over a sequence of events, saved states, events as text;
// unscaling, and scales of tensors.
#include <mp/convert.hpp>
#include <mp/loss_scaling.hpp>
#include <mp/nn/scaling/amax.hpp>
#include <mp/nn/scaling/scaled_gradient.hpp>
#include <mp/nn/scaling/state_text.hpp>
#include <mp/nn/scaling/tensor_scaling.hpp>
#include <mp/nn/scaling/tensor_statistics.hpp>

#include "formats.hpp"

namespace portability {

namespace {

template <class Policy>
void add_policy(report& to, const std::string& name, const Policy& policy) {
    mp::scale_state_of<Policy> state = mp::initial_scale_state(policy);
    checksum sum;
    generator random(91);
    for (int i = 0; i < 400; ++i) {
        const std::uint64_t word = random.next();
        const bool bad = word % 11 == 0;
        mp::gradient_observation seen;
        seen.infinities = bad ? 1 + word % 3 : 0;
        seen.nans = word % 37 == 0 ? 1 : 0;
        seen.values = 1000;
        seen.zeros = word % 17;
        seen.flushed = (word >> 8) % 300;
        seen.subnormals = (word >> 16) % 100;
        seen.large = (word >> 32) % 9;
        seen.overflows = (word >> 36) % 2;
        const std::uint64_t magnitude =
            (std::uint64_t{1023} - 30 + (word >> 40) % 40) << 52 | (word & 0xfffffffffffffU);
        seen.largest = std::bit_cast<double>(magnitude);
        const mp::scale_change change = mp::update_scale(policy, state, seen);
        sum.add(change.before);
        sum.add(change.after);
        sum.add(change.kind);
        sum.add(mp::inverse_of_scale(change.after));
        if (i % 40 == 0) {
            sum.add(to_string(mp::scale_event{static_cast<std::uint64_t>(i), change, seen}));
            if constexpr (mp::savable_policy<Policy>) sum.add(mp::save_state<Policy>({policy, state}));
        }
        // Policies that give up, and scales that leave the range, start again.
        if (!(change.after > 0x1p-60F && change.after < 0x1p60F) ||
            change.kind == mp::scale_change_kind::failed || change.kind == mp::scale_change_kind::disabled) {
            state = mp::initial_scale_state(policy);
        }
    }
    to.add("scaler." + name, sum);
}

}  // namespace

void add_scaling_checksums(report& to) {
    add_policy(to, "pytorch",
               mp::pytorch_policy{.growth_factor = 1.7, .backoff_factor = 0.3, .growth_interval = 3});
    add_policy(to, "sharded_pytorch", mp::sharded_pytorch_policy{.growth_interval = 3});
    add_policy(to, "tensorflow", mp::tensorflow_policy{8.0F, 3});
    add_policy(to, "keras", mp::keras_policy{8.0F, 3});
    add_policy(to, "jmp", mp::jmp_policy{.loss_scale = 9.0F, .period = 3, .factor = 3});
    add_policy(to, "apex", mp::apex_policy{});
    add_policy(to, "apex_fp16_utils", mp::apex_fp16_utils_policy{});
    add_policy(to, "apex_hysteresis", mp::apex_hysteresis_policy{});
    add_policy(to, "mxnet", mp::mxnet_policy{});
    add_policy(to, "openseq2seq", mp::openseq2seq_policy{});
    add_policy(to, "chainer", mp::chainer_policy{});
    add_policy(to, "logmax", mp::logmax_policy{});
    add_policy(to, "histogram", mp::histogram_policy{});
    add_policy(to, "deepspeed", mp::deepspeed_policy{});
    add_policy(to, "deepspeed_fused", mp::deepspeed_fused_policy{});
    add_policy(to, "megatron", mp::megatron_policy{.growth_interval = 5});
    add_policy(to, "fairseq", mp::fairseq_policy{});
    add_policy(to, "static", mp::static_policy{1024.0F});

    checksum unscaled;
    const std::vector<float> floats = hard_floats(2001, 92);
    std::vector<float> out(floats.size());
    const auto add = [&](const mp::non_finite_report& it) {
        unscaled.add(it.infinities);
        unscaled.add(it.nans);
        unscaled.add(static_cast<std::uint64_t>(it.first_index));
        unscaled.add(out);
    };
    for (const float inverse : {1.0F, 0x1.5p-20F, 0x1p-120F, 3.3F}) {
        add(mp::unscale_and_check(portable_cpu, floats, out, inverse));
        add(mp::check_finite(portable_cpu, floats, inverse));
        std::vector<mp::half> halves(floats.size());
        mp::convert(portable_cpu, floats, halves);
        add(mp::unscale_and_check(portable_cpu, halves, out, inverse));
    }
    to.add("unscale_and_check", unscaled);

    checksum tensors;
    const std::vector<float> plain = plain_floats(3001, 93);
    tensors.add(mp::amax(portable_cpu, plain));
    tensors.add(mp::amax(portable_cpu, floats));
    std::vector<mp::float8_e4m3fn> quantized(plain.size());
    for (const float scale : {0.37F, 64.0F, 1.0F / 3.0F}) {
        mp::quantize_with_scale(portable_cpu, plain, quantized, scale);
        tensors.add(quantized);
        std::vector<float> back(plain.size());
        mp::dequantize_with_scale(portable_cpu, quantized, back, scale);
        tensors.add(back);
    }
    for (const float amax : {1.0F, 0.1F, 777.5F, 0x1p-140F}) {
        tensors.add(mp::current_scaling{448.0F}.scale(amax));
        tensors.add(mp::torchao_scaling{448.0F}.scale(amax));
        tensors.add(mp::power_of_two_block_scale<mp::float8_e4m3fn>(amax));
    }
    to.add("tensor_scaling", tensors);

    checksum statistics;
    for (const mp::tensor_statistics& it :
         {mp::measure_statistics(portable_cpu, plain), mp::measure_logarithms(portable_cpu, plain)}) {
        statistics.add(it.count);
        for (const double x :
             {it.mean, it.squares, it.lowest, it.highest, it.least_magnitude, it.deviation()}) {
            statistics.add(x);
        }
    }
    to.add("tensor_statistics", statistics);

    checksum accumulated;
    mp::gradient_accumulator accumulator(plain.size());
    for (const float scale : {1024.0F, 768.0F, 3.0F}) {
        accumulator.add(portable_cpu, mp::scaled_gradient(plain, scale));
    }
    const mp::scaled_gradient<float> sum_of_all = accumulator.gradient();
    for (const float x : sum_of_all.values_with_scale()) accumulated.add(x);
    accumulated.add(accumulator.scale());
    to.add("gradient_accumulator", accumulated);

    std::vector<float> clipped = plain;
    checksum clip;
    clip.add(mp::clip_gradient_norm(mp::unscaled_gradient<float>(clipped), 0.7));
    clip.add(clipped);
    to.add("clip_gradient_norm", clip);
}

}  // namespace portability
