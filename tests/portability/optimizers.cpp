// SPDX-License-Identifier: MIT
// Weights before the first update, and weights and states after some, by every optimizer and way of updating weights;
// schedules and averages.
#include <mp/optim.hpp>
#include <mp/train/training/initializers.hpp>

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
            if (options.low_precision_update == mp::weight_update::split) {
                std::vector<float> masters(weights[part].size());
                optimizer.copy_master_weights(part, 0, masters);
                sum.add(masters);
            }
            if constexpr (std::is_same_v<typename Optimizer::state_type, mp::block_moment>) {
                std::vector<float> moments(weights[part].size());
                for (const std::size_t state : {0U, 1U}) {
                    optimizer.copy_state(part, state, 0, moments);
                    sum.add(moments);
                }
            } else if constexpr (requires { optimizer.momentum(part); }) {
                sum.add(optimizer.momentum(part));
            } else {
                sum.add(optimizer.gradient_mean(part));
                sum.add(optimizer.gradient_mean_square(part));
            }
        }
    }
    to.add(name, sum);
}

template <class Weight>
void add_adafactor(report& to, const std::string& name, const mp::adafactor_options& options) {
    generator random(84);
    std::vector<Weight> weights[2];
    std::vector<Weight> gradients[2];
    for (int part = 0; part < 2; ++part) {
        weights[part].resize(part == 0 ? 21 * 603 : 77);
        gradients[part].resize(weights[part].size());
        for (Weight& w : weights[part]) w = mp::round_to<Weight>(random.next_float(115, 14));
    }
    mp::adafactor<Weight> optimizer(mp::cpu{1, mp::instruction_set::portable},
                                    {{.weights = weights[0], .gradient = gradients[0], .rows = 21},
                                     {.weights = weights[1], .gradient = gradients[1]}},
                                    options);
    checksum sum;
    for (int step = 0; step < 4; ++step) {
        for (auto& part : gradients) {
            for (Weight& g : part) g = mp::round_to<Weight>(random.next_float(step < 2 ? 100 : 118, 24));
        }
        optimizer.step(0x1.8p-2F);
        for (std::size_t part = 0; part < 2; ++part) {
            sum.add(optimizer.master_weights(part));
            sum.add(optimizer.row_means(part));
            sum.add(optimizer.column_means(part));
        }
    }
    to.add(name, sum);
}

template <class Weight>
void add_average(report& to, const std::string& name) {
    generator random(82);
    std::vector<Weight> weights(1003);
    std::vector<float> gradient(weights.size());
    for (Weight& w : weights) w = mp::round_to<Weight>(random.next_float(115, 14));
    mp::sgd<Weight, float> optimizer(mp::cpu{1, mp::instruction_set::portable}, {{"", weights, gradient}},
                                     {.learning_rate = 0.1});
    checksum sum;
    for (const bool warmup : {false, true}) {
        mp::weight_average average(optimizer, {.decay = 0.99, .warmup = warmup},
                                   mp::cpu{1, mp::instruction_set::portable});
        for (int step = 0; step < 5; ++step) {
            for (float& g : gradient) g = random.next_float(110, 14);
            optimizer.step();
            average.update();
            sum.add(average.values());
        }
        const auto applied = average.apply();
        sum.add(weights);
    }
    to.add(name, sum);
}

template <class Schedule>
void add_schedule(report& to, const std::string& name, const Schedule& schedule) {
    checksum sum;
    for (std::uint64_t step = 0; step < 130; step += step < 12 ? 1 : 7) sum.add(schedule.at(step));
    to.add("schedule." + name, sum);
}

void add_schedules(report& to) {
    const mp::linear_warmup warmup{.steps = 11, .first_factor = 0.05};
    const mp::cosine_decay cosine{.steps = 100, .final_factor = 0.1};
    add_schedule(to, "linear_warmup", warmup);
    add_schedule(to, "cosine_decay", cosine);
    add_schedule(to, "polynomial_decay",
                 mp::polynomial_decay{.steps = 110, .power = 3, .final_factor = 0.01});
    add_schedule(to, "step_decay", mp::step_decay{.every = 5, .factor = 0.7});
    add_schedule(to, "milestone_decay", mp::milestone_decay{.milestones = {70, 3, 20}, .factor = 0.3});
    add_schedule(to, "one_cycle", mp::one_cycle{.steps = 100});
    add_schedule(to, "warmup_then", mp::warmup_then{warmup, cosine});
    checksum sum;
    for (const auto& group : mp::layerwise_groups(mp::sgd_options{.learning_rate = 0.1}, 12, 0.65)) {
        sum.add(group.learning_rate);
    }
    to.add("schedule.layerwise_groups", sum);
}

template <class Weight>
void add_initial_weights(report& to, const std::string& name) {
    std::vector<Weight> weights(1003);
    const auto add = [&](const char* kind, const mp::initializer& how) {
        checksum sum;
        sum.add(how.scale);
        for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{1} << 40}) {
            mp::initialize(std::span<Weight>(weights), how, 83, first);
            sum.add(weights);
        }
        to.add(name + ".initialize_" + kind, sum);
    };
    add("normal", mp::initializers::kaiming_normal(37));
    add("uniform", mp::initializers::xavier_uniform(37, 41));
    add("fan_in_uniform", mp::initializers::fan_in_uniform(37));
}

}  // namespace

void add_optimizer_checksums(report& to) {
    using mp::bfloat16;
    using mp::half;
    const mp::sgd_options momentum{.learning_rate = 0.1, .momentum = 0.9, .weight_decay = 0.01};
    [[maybe_unused]] const mp::sgd_options nesterov{
        .learning_rate = 0.1, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true};
    const mp::adamw_options adamw{.learning_rate = 0.01, .weight_decay = 0.1};
    const mp::lion_options lion{.learning_rate = 0.01, .weight_decay = 0.3};
    add_training<mp::sgd<float>>(to, "sgd.float", momentum);
    add_training<mp::adamw<bfloat16>>(to, "adamw.bfloat16", adamw);
#if !defined(MP_FEW_CHECKSUMS)
    add_training<mp::sgd<half>>(to, "sgd.half", nesterov);
    add_training<mp::sgd<bfloat16>>(to, "sgd.bfloat16", momentum);
    add_training<mp::sgd<float, half>>(to, "sgd.float_half", nesterov);
    add_training<mp::adamw<float>>(to, "adamw.float", adamw);
    add_training<mp::adamw<half>>(to, "adamw.half", adamw);
#endif
    add_training<mp::lion<bfloat16>>(to, "lion.bfloat16", lion);
    add_average<float>(to, "weight_average.float");
    add_average<half>(to, "weight_average.half");
    add_schedules(to);
    add_initial_weights<float>(to, "float");
    add_initial_weights<bfloat16>(to, "bfloat16");
#if !defined(MP_FEW_CHECKSUMS)
    add_training<mp::lion<float>>(to, "lion.float", lion);
    add_training<mp::lion<half>>(to, "lion.half", lion);
    add_initial_weights<half>(to, "half");
#endif
    for (const auto how :
         {mp::weight_update::nearest, mp::weight_update::stochastic, mp::weight_update::kahan}) {
        const std::string name(mp::name_of(how));
        add_training<mp::sgd<bfloat16, bfloat16, bfloat16, float>>(
            to, "sgd.bfloat16_without_masters." + name,
            mp::sgd_options{.learning_rate = 0.1, .momentum = 0.9, .low_precision_update = how, .seed = 5});
        add_training<mp::lion<bfloat16, bfloat16, bfloat16>>(
            to, "lion.bfloat16_without_masters." + name,
            mp::lion_options{.learning_rate = 0.01, .low_precision_update = how, .seed = 7});
#if !defined(MP_FEW_CHECKSUMS)
        add_training<mp::adamw<half, half, half, float>>(
            to, "adamw.half_without_masters." + name,
            mp::adamw_options{.learning_rate = 0.01, .low_precision_update = how, .seed = 6});
#endif
    }
    add_training<mp::adamw<bfloat16, bfloat16, bfloat16, float>>(
        to, "adamw.bfloat16_without_masters.split",
        mp::adamw_options{.learning_rate = 0.01, .low_precision_update = mp::weight_update::split});
    add_training<mp::adamw<bfloat16, bfloat16, bfloat16, bfloat16>>(
        to, "adamw.bfloat16_means",
        mp::adamw_options{.learning_rate = 0.01, .low_precision_update = mp::weight_update::kahan});
    add_adafactor<bfloat16>(to, "adafactor.bfloat16", {});
    add_adafactor<float>(to, "adafactor.float",
                         {.relative_step = false, .clip_threshold = 0.5, .weight_decay = 0.01});
    add_training<mp::lars<bfloat16>>(to, "lars.bfloat16", mp::lars_options{.weight_decay = 0.01});
    add_training<mp::lamb<float>>(to, "lamb.float", mp::lamb_options{.learning_rate = 0.01});
#if !defined(MP_FEW_CHECKSUMS)
    add_training<mp::lars<half, half, half>>(
        to, "lars.half_without_masters",
        mp::lars_options{.nesterov = true,
                         .trust_coefficient = 0.02,
                         .clip = true,
                         .low_precision_update = mp::weight_update::kahan});
    add_training<mp::lamb<half>>(
        to, "lamb.half",
        mp::lamb_options{
            .weight_decay = 0.0, .bias_correction = false, .grad_averaging = false, .use_nvlamb = true});
#endif
    add_training<mp::adamw<bfloat16, bfloat16, float, mp::block_moment>>(to, "adamw.bfloat16_block_moments",
                                                                         adamw);
}

}  // namespace portability
