// SPDX-License-Identifier: MIT
// Weights and states after some updates, by every optimizer and way of updating weights.
#include <mp/optim.hpp>

#include "formats.hpp"

namespace portability {

namespace {

template <class Optimizer, class Options>
void add_training(report& to, const std::string& name, const Options& options) {
    using weight = typename Optimizer::weight_type;
    using gradient_value = typename Optimizer::gradient_type;
    generator random(81);
    std::vector<weight> weights[2];
    std::vector<gradient_value> gradients[2];
    for (int part = 0; part < 2; ++part) {
        weights[part].resize(part == 0 ? 1003 : 77);
        gradients[part].resize(weights[part].size());
        for (weight& w : weights[part]) w = mp::round_to<weight>(random.next_float(115, 14));
    }
    Optimizer optimizer(mp::cpu{1, mp::instruction_set::portable},
                        {{"", weights[0], gradients[0]}, {"", weights[1], gradients[1]}}, options);
    checksum sum;
    for (int step = 0; step < 6; ++step) {
        for (auto& part : gradients) {
            for (gradient_value& g : part) {
                g = mp::round_to<gradient_value>(random.next_float(step < 3 ? 100 : 118, 24));
            }
        }
        const float inverse_scale = step % 2 == 0 ? 0x1.8p-2F : 0x1.8p-60F;
        if (step % 3 == 0) {
            optimizer.step(inverse_scale);
        } else {
            optimizer.unscale_gradients(inverse_scale);
            sum.add(optimizer.clip_gradient_norm(step == 1 ? 0.25 : 0x1p-61));
            optimizer.step();
        }
        for (std::size_t part = 0; part < 2; ++part) {
            sum.add(weights[part]);
            sum.add(optimizer.master_weights(part));
            if constexpr (requires { optimizer.momentum(part); }) {
                sum.add(optimizer.momentum(part));
            } else {
                sum.add(optimizer.gradient_mean(part));
                sum.add(optimizer.gradient_mean_square(part));
            }
        }
    }
    to.add(name, sum);
}

}  // namespace

void add_optimizer_checksums(report& to) {
    using mp::bfloat16;
    using mp::half;
    const mp::sgd_options momentum{.learning_rate = 0.1, .momentum = 0.9, .weight_decay = 0.01};
    [[maybe_unused]] const mp::sgd_options nesterov{
        .learning_rate = 0.1, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true};
    const mp::adamw_options adamw{.learning_rate = 0.01, .weight_decay = 0.1};
    add_training<mp::sgd<float>>(to, "sgd.float", momentum);
    add_training<mp::adamw<bfloat16>>(to, "adamw.bfloat16", adamw);
#if !defined(MP_FEW_CHECKSUMS)
    add_training<mp::sgd<half>>(to, "sgd.half", nesterov);
    add_training<mp::sgd<bfloat16>>(to, "sgd.bfloat16", momentum);
    add_training<mp::sgd<float, half>>(to, "sgd.float_half", nesterov);
    add_training<mp::adamw<float>>(to, "adamw.float", adamw);
    add_training<mp::adamw<half>>(to, "adamw.half", adamw);
#endif
    for (const auto how :
         {mp::weight_update::nearest, mp::weight_update::stochastic, mp::weight_update::kahan}) {
        const std::string name(mp::name_of(how));
        add_training<mp::sgd<bfloat16, bfloat16, bfloat16, float>>(
            to, "sgd.bfloat16_without_masters." + name,
            mp::sgd_options{.learning_rate = 0.1, .momentum = 0.9, .low_precision_update = how, .seed = 5});
#if !defined(MP_FEW_CHECKSUMS)
        add_training<mp::adamw<half, half, half, float>>(
            to, "adamw.half_without_masters." + name,
            mp::adamw_options{.learning_rate = 0.01, .low_precision_update = how, .seed = 6});
#endif
    }
}

}  // namespace portability
