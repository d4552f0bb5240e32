// SPDX-License-Identifier: MIT
/// \file
/// Names of options in other systems: the compiler's first error says what they are called here.
#pragma once

#include <initializer_list>

/// Declares a member that refuses a name of another system with the sentence of `mp::detail::words::type`.
///
/// Such members have no bytes of their own, so that an aggregate is as large as without them, and come last:
/// options may still be listed by position, and the sentence is the first error whatever is named after it.
///
/// With nvcc there are none, since it gives such members bytes where a kernel takes the aggregate by value.
#if defined(__CUDACC__)
#define MP_OTHER_NAME(type, name) static_assert(true)
#else
#define MP_OTHER_NAME(type, name) [[no_unique_address]] mp::detail::words::type name = {}
#endif

namespace mp::detail {

/// False, but only once a template is instantiated.
template <class...>
inline constexpr bool not_an_option = false;

/// An empty member of an aggregate of options, named as another system names an option. Giving it a value does
/// not compile: `{.lr = 1e-3}` says that lr is called learning_rate.
///
/// \tparam Word  the member's type; two members of one type would need two addresses
template <class Word>
struct other_name {
    friend constexpr bool operator==(const other_name&, const other_name&) = default;
};

}  // namespace mp::detail

/// A word of another system is a type here. Its name is the word's, or tells apart two meanings of it.
namespace mp::detail::words {

// Of optimizers: torch.optim, Keras, DeepSpeed.

struct lr : other_name<lr> {
    constexpr lr() = default;
    template <class T>
    constexpr lr(const T& /*value*/) {
        static_assert(not_an_option<T>, "lr is called learning_rate here");
    }
};
struct betas : other_name<betas> {
    constexpr betas() = default;
    template <class T>
    constexpr betas(const T& /*value*/) {
        static_assert(not_an_option<T>, "betas are two options here, beta1 and beta2");
    }
    template <class T>
    constexpr betas(std::initializer_list<T> /*values*/) {
        static_assert(not_an_option<T>, "betas are two options here, beta1 and beta2");
    }
};
struct beta_1 : other_name<beta_1> {
    constexpr beta_1() = default;
    template <class T>
    constexpr beta_1(const T& /*value*/) {
        static_assert(not_an_option<T>, "beta_1 is called beta1 here");
    }
};
struct beta_2 : other_name<beta_2> {
    constexpr beta_2() = default;
    template <class T>
    constexpr beta_2(const T& /*value*/) {
        static_assert(not_an_option<T>, "beta_2 is called beta2 here");
    }
};
struct eps : other_name<eps> {
    constexpr eps() = default;
    template <class T>
    constexpr eps(const T& /*value*/) {
        static_assert(not_an_option<T>, "eps is called epsilon here");
    }
};

// Of Adafactor: torch.optim, Keras, transformers.

struct eps_pair : other_name<eps_pair> {
    constexpr eps_pair() = default;
    template <class T>
    constexpr eps_pair(const T& /*value*/) {
        static_assert(not_an_option<T>, "eps are two options here, epsilon1 and epsilon2");
    }
    template <class T>
    constexpr eps_pair(std::initializer_list<T> /*values*/) {
        static_assert(not_an_option<T>, "eps are two options here, epsilon1 and epsilon2");
    }
};
struct epsilon_1 : other_name<epsilon_1> {
    constexpr epsilon_1() = default;
    template <class T>
    constexpr epsilon_1(const T& /*value*/) {
        static_assert(not_an_option<T>, "epsilon_1 is called epsilon1 here");
    }
};
struct epsilon_2 : other_name<epsilon_2> {
    constexpr epsilon_2() = default;
    template <class T>
    constexpr epsilon_2(const T& /*value*/) {
        static_assert(not_an_option<T>, "epsilon_2 is called epsilon2 here");
    }
};
struct d : other_name<d> {
    constexpr d() = default;
    template <class T>
    constexpr d(const T& /*value*/) {
        static_assert(not_an_option<T>, "d is called clip_threshold here");
    }
};
struct scale_parameter : other_name<scale_parameter> {
    constexpr scale_parameter() = default;
    template <class T>
    constexpr scale_parameter(const T& /*value*/) {
        static_assert(not_an_option<T>, "scale_parameter is called scale_by_weights here");
    }
};
struct decay_rate : other_name<decay_rate> {
    constexpr decay_rate() = default;
    template <class T>
    constexpr decay_rate(const T& /*value*/) {
        static_assert(not_an_option<T>, "decay_rate is called beta2_decay here, and is positive");
    }
};
struct beta_2_decay : other_name<beta_2_decay> {
    constexpr beta_2_decay() = default;
    template <class T>
    constexpr beta_2_decay(const T& /*value*/) {
        static_assert(not_an_option<T>, "beta_2_decay is called beta2_decay here, and is positive");
    }
};

// Of schedules: torch.optim.lr_scheduler, Keras.

struct total_iters : other_name<total_iters> {
    constexpr total_iters() = default;
    template <class T>
    constexpr total_iters(const T& /*value*/) {
        static_assert(not_an_option<T>, "total_iters is called steps here");
    }
};
struct start_factor : other_name<start_factor> {
    constexpr start_factor() = default;
    template <class T>
    constexpr start_factor(const T& /*value*/) {
        static_assert(not_an_option<T>, "start_factor is called first_factor here");
    }
};
// NOLINTNEXTLINE(readability-identifier-naming): as torch has it
struct T_max : other_name<T_max> {
    constexpr T_max() = default;
    template <class T>
    constexpr T_max(const T& /*value*/) {
        static_assert(not_an_option<T>, "T_max is called steps here");
    }
};
struct eta_min : other_name<eta_min> {
    constexpr eta_min() = default;
    template <class T>
    constexpr eta_min(const T& /*value*/) {
        static_assert(not_an_option<T>, "eta_min is final_factor here, a fraction of the learning rate");
    }
};
struct decay_steps : other_name<decay_steps> {
    constexpr decay_steps() = default;
    template <class T>
    constexpr decay_steps(const T& /*value*/) {
        static_assert(not_an_option<T>, "decay_steps is called steps here");
    }
};
struct alpha : other_name<alpha> {
    constexpr alpha() = default;
    template <class T>
    constexpr alpha(const T& /*value*/) {
        static_assert(not_an_option<T>, "alpha is called final_factor here");
    }
};
struct step_size : other_name<step_size> {
    constexpr step_size() = default;
    template <class T>
    constexpr step_size(const T& /*value*/) {
        static_assert(not_an_option<T>, "step_size is called every here");
    }
};
struct gamma : other_name<gamma> {
    constexpr gamma() = default;
    template <class T>
    constexpr gamma(const T& /*value*/) {
        static_assert(not_an_option<T>, "gamma is called factor here");
    }
};
struct total_steps : other_name<total_steps> {
    constexpr total_steps() = default;
    template <class T>
    constexpr total_steps(const T& /*value*/) {
        static_assert(not_an_option<T>, "total_steps is called steps here");
    }
};
struct pct_start : other_name<pct_start> {
    constexpr pct_start() = default;
    template <class T>
    constexpr pct_start(const T& /*value*/) {
        static_assert(not_an_option<T>, "pct_start is called warmup_fraction here");
    }
};
struct div_factor : other_name<div_factor> {
    constexpr div_factor() = default;
    template <class T>
    constexpr div_factor(const T& /*value*/) {
        static_assert(not_an_option<T>, "div_factor is called initial_divisor here");
    }
};
struct final_div_factor : other_name<final_div_factor> {
    constexpr final_div_factor() = default;
    template <class T>
    constexpr final_div_factor(const T& /*value*/) {
        static_assert(not_an_option<T>, "final_div_factor is called final_divisor here");
    }
};

// Of loss scalers: torch.amp.GradScaler, and DeepSpeed's DynamicLossScaler and configuration.

struct init_scale : other_name<init_scale> {
    constexpr init_scale() = default;
    template <class T>
    constexpr init_scale(const T& /*value*/) {
        static_assert(not_an_option<T>, "init_scale is called initial_scale here");
    }
};
struct initial_scale_power : other_name<initial_scale_power> {
    constexpr initial_scale_power() = default;
    template <class T>
    constexpr initial_scale_power(const T& /*value*/) {
        static_assert(not_an_option<T>, "initial_scale_power is initial_scale here, 2 to that power");
    }
};
struct scale_window : other_name<scale_window> {
    constexpr scale_window() = default;
    template <class T>
    constexpr scale_window(const T& /*value*/) {
        static_assert(not_an_option<T>,
                      "scale_window is called loss_scale_window here, as in the configuration file");
    }
};
struct min_scale : other_name<min_scale> {
    constexpr min_scale() = default;
    template <class T>
    constexpr min_scale(const T& /*value*/) {
        static_assert(not_an_option<T>,
                      "min_scale is called min_loss_scale here, as in the configuration file");
    }
};
struct delayed_shift : other_name<delayed_shift> {
    constexpr delayed_shift() = default;
    template <class T>
    constexpr delayed_shift(const T& /*value*/) {
        static_assert(not_an_option<T>,
                      "delayed_shift is called hysteresis here, as in the configuration file");
    }
};

// Of layers: torch.nn and torch.nn.functional.

struct p : other_name<p> {
    constexpr p() = default;
    template <class T>
    constexpr p(const T& /*value*/) {
        static_assert(not_an_option<T>, "p is called probability here");
    }
};
struct padding_idx : other_name<padding_idx> {
    constexpr padding_idx() = default;
    template <class T>
    constexpr padding_idx(const T& /*value*/) {
        static_assert(not_an_option<T>, "padding_idx is called padding_index here");
    }
};
struct num_heads : other_name<num_heads> {
    constexpr num_heads() = default;
    template <class T>
    constexpr num_heads(const T& /*value*/) {
        static_assert(not_an_option<T>, "num_heads is called heads here");
    }
};
struct is_causal : other_name<is_causal> {
    constexpr is_causal() = default;
    template <class T>
    constexpr is_causal(const T& /*value*/) {
        static_assert(not_an_option<T>, "is_causal is called causal here");
    }
};
struct dropout_p : other_name<dropout_p> {
    constexpr dropout_p() = default;
    template <class T>
    constexpr dropout_p(const T& /*value*/) {
        static_assert(not_an_option<T>, "dropout_p is dropout here: .dropout = {.probability = ...}");
    }
};

}  // namespace mp::detail::words
