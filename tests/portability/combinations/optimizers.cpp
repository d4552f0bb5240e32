// SPDX-License-Identifier: MIT
// Steps of every optimizer, with weights, gradients and masters of different types, and several options.
#include <mp/optim.hpp>

#include "combinations.hpp"

#include <algorithm>

namespace portability {

namespace {

constexpr std::size_t sizes[] = {1, 77, 1003};

template <class Optimizer, class Options>
void add_steps(combinations& to, const std::string& name, const Options& options) {
    using weight = typename Optimizer::weight_type;
    using gradient_value = typename Optimizer::gradient_type;
    for (const int threads : {1, 3}) {
        std::vector<weight> weights[3];
        std::vector<gradient_value> gradients[3];
        for (std::size_t part = 0; part < 3; ++part) {
            weights[part] = numbers<weight>(sizes[part], part);
            gradients[part] = numbers<gradient_value>(sizes[part], part + 10);
        }
        const auto isa = threads == 1 ? mp::instruction_set::best : mp::instruction_set::portable;
        Optimizer optimizer(mp::cpu{threads, isa},
                            {{"a", weights[0], gradients[0]},
                             {"b", weights[1], gradients[1]},
                             {"c", weights[2], gradients[2]}},
                            options);
        for (std::size_t step = 0; step < 4; ++step) {
            for (std::size_t part = 0; part < 3; ++part) {
                std::ranges::copy(numbers<gradient_value>(sizes[part], step * 7 + part),
                                  gradients[part].begin());
            }
            if (step == 2) {
                optimizer.unscale_gradients(0x1p-2F);
                to.add(name, optimizer.clip_gradient_norm(0.5));
                optimizer.step();
            } else {
                optimizer.step(step == 1 ? 0x1p-10F : 0x1.8p-2F);
            }
            for (std::size_t part = 0; part < 3; ++part) {
                to.add(name, weights[part], optimizer.master_weights(part));
                if constexpr (requires { optimizer.momentum(part); }) {
                    to.add(name, optimizer.momentum(part));
                } else {
                    to.add(name, optimizer.gradient_mean(part), optimizer.gradient_mean_square(part));
                }
            }
        }
    }
}

template <class Weight, class Gradient>
void add_adafactor(combinations& to) {
    for (const mp::adafactor_options& options :
         {mp::adafactor_options{},
          mp::adafactor_options{.relative_step = false, .clip_threshold = 0.5, .weight_decay = 0.01}}) {
        std::vector<Weight> weights[2] = {numbers<Weight>(21 * 60, 1), numbers<Weight>(77, 2)};
        std::vector<Gradient> gradients[2] = {numbers<Gradient>(21 * 60, 3), numbers<Gradient>(77, 4)};
        mp::adafactor<Weight, Gradient> optimizer(
            mp::cpu{},
            {{.weights = weights[0], .gradient = gradients[0], .rows = 21},
             {.weights = weights[1], .gradient = gradients[1]}},
            options);
        for (std::size_t step = 0; step < 3; ++step) {
            std::ranges::copy(numbers<Gradient>(21 * 60, step + 5), gradients[0].begin());
            std::ranges::copy(numbers<Gradient>(77, step + 9), gradients[1].begin());
            optimizer.step(0x1.8p-2F);
            for (std::size_t part = 0; part < 2; ++part) {
                to.add("optimizers.adafactor." + type_names<Weight, Gradient>(), weights[part],
                       optimizer.master_weights(part), optimizer.row_means(part),
                       optimizer.column_means(part));
            }
        }
    }
}

template <class... T>
void add_sgd(combinations& to) {
    for (const bool nesterov : {false, true}) {
        add_steps<mp::sgd<T...>>(
            to, "optimizers.sgd." + type_names<T...>(),
            mp::sgd_options{
                .learning_rate = 0.1, .momentum = 0.9, .weight_decay = 0.01, .nesterov = nesterov});
    }
    add_steps<mp::sgd<T...>>(to, "optimizers.sgd." + type_names<T...>(),
                             mp::sgd_options{.learning_rate = 0.3});
}

template <class... T>
void add_adamw(combinations& to) {
    for (const bool coupled : {false, true}) {
        add_steps<mp::adamw<T...>>(
            to, "optimizers.adamw." + type_names<T...>(),
            mp::adamw_options{.learning_rate = 0.01, .weight_decay = 0.1, .coupled_decay = coupled});
    }
}

template <class... T>
void add_layerwise(combinations& to) {
    add_steps<mp::lamb<T...>>(to, "optimizers.lamb." + type_names<T...>(),
                              mp::lamb_options{.learning_rate = 0.01});
    add_steps<mp::lars<T...>>(to, "optimizers.lars." + type_names<T...>(),
                              mp::lars_options{.weight_decay = 0.01});
}

/// Low-precision weights without a master copy.
template <class T>
void add_without_masters(combinations& to) {
    for (const auto how :
         {mp::weight_update::nearest, mp::weight_update::stochastic, mp::weight_update::kahan}) {
        const std::string end = "." + type_name<T>() + "_" + std::string(mp::name_of(how));
        add_steps<mp::sgd<T, T, T, float>>(
            to, "optimizers.sgd" + end,
            mp::sgd_options{.learning_rate = 0.1, .momentum = 0.9, .low_precision_update = how, .seed = 5});
        add_steps<mp::adamw<T, T, T, float>>(
            to, "optimizers.adamw" + end,
            mp::adamw_options{.learning_rate = 0.01, .low_precision_update = how, .seed = 6});
    }
}

}  // namespace

void add_optimizer_combinations(combinations& to) {
    using mp::bfloat16, mp::half;
    add_sgd<float, float>(to);
    add_sgd<float, half>(to);
    add_sgd<half, half>(to);
    add_sgd<half, float>(to);
    add_sgd<bfloat16, bfloat16>(to);
    add_sgd<bfloat16, half>(to);
    add_adamw<float, float>(to);
    add_adamw<float, bfloat16>(to);
    add_adamw<half, half>(to);
    add_adamw<half, bfloat16>(to);
    add_adamw<bfloat16, bfloat16>(to);
    add_adamw<bfloat16, float>(to);
    add_layerwise<float, float>(to);
    add_layerwise<half, float>(to);
    add_layerwise<bfloat16, bfloat16>(to);
    add_adafactor<float, float>(to);
    add_adafactor<half, half>(to);
    add_adafactor<bfloat16, float>(to);
    add_without_masters<half>(to);
    add_without_masters<bfloat16>(to);
}

}  // namespace portability
