// SPDX-License-Identifier: MIT
// Random sequences of everything that writes weights, compared after every action with weights, masters and products
// that are computed from scratch: by a few lines of float arithmetic, and by layers that are made anew.
#pragma once

#include <mp/bfloat16.hpp>
#include <mp/half.hpp>
#include <mp/loss_scaling.hpp>
#include <mp/nn/optim/weight_update.hpp>
#include <mp/optim.hpp>
#include <mp/parallel.hpp>
#include <mp/training.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace life_of_weights {

namespace layers = mp::layers;
using mp::bfloat16;
using mp::half;

/// How the weights of a run are kept and used.
template <class Weight, class Policy = mp::autocast::by_region, class Master = float>
struct recipe {
    using weight = Weight;
    using policy = Policy;
    using master = Master;
    mp::weight_update how = mp::weight_update::nearest;
    mp::precision region = mp::precision::off;
};

inline constexpr std::ptrdiff_t width = 8, rows = 4;
inline constexpr float rate = 0x1p-7F, decay = 0x1p-6F;  // whose products are exact

template <class Weight, class Policy>
struct model {
    mp::parameter_store<Weight, float> store;
    layers::linear<Weight, Weight, Policy, float> first{store, "first", width, width, options};
    layers::linear<Weight, Weight, Policy, float> second{store, "second", width, width, options};
    explicit model(std::uint64_t seed) { store.build(seed); }
    /// The last product, as bits.
    std::vector<std::uint8_t> run(const mp::tensor<Weight>& x, bool both) {
        const mp::cpu exec{};
        mp::matrix_view<const Weight> y = first.forward(exec, x.view());
        if (both) y = second.forward(exec, y);
        std::vector<std::uint8_t> bytes(static_cast<std::size_t>(rows * width) * sizeof(Weight));
        std::memcpy(bytes.data(), y.data, bytes.size());
        return bytes;
    }
    template <class Visitor>
    void visit_state(Visitor& visitor) {
        visitor("first", first);
        visitor("second", second);
    }

private:
    static constexpr layers::linear_options options{.float8 = {.amax_history_length = 2}};
};

/// Copies what layers keep besides weights, in memory.
class state_copy {
    std::vector<std::vector<std::byte>> arrays_;
    std::size_t next_ = 0;

    template <class Self, bool Loads>
    struct visitor {
        static constexpr bool loads = Loads;
        Self& self;
        template <class Function>
        void when_loaded(Function function) {
            function();
        }
        template <class Value>
        void expect(std::string_view, Value) {}
        template <class Thing>
        void operator()(std::string_view, Thing&& thing) {
            using bare = std::remove_cvref_t<Thing>;
            if constexpr (std::is_arithmetic_v<bare>) {
                move(std::as_writable_bytes(std::span(&thing, 1)));
            } else if constexpr (requires { thing.visit_state(*this); }) {
                thing.visit_state(*this);
            } else if constexpr (requires { bare::visit(thing, *this); }) {
                bare::visit(thing, *this);
            } else {
                move(std::as_writable_bytes(std::span(thing)));
            }
        }
        void move(std::span<std::byte> bytes) {
            if constexpr (Loads) {
                std::ranges::copy(self.arrays_[self.next_++], bytes.begin());
            } else {
                self.arrays_.emplace_back(bytes.begin(), bytes.end());
            }
        }
    };

public:
    template <class Thing>
    void save(Thing& from) {
        visitor<state_copy, false> visit{*this};
        from.visit_state(visit);
    }
    template <class Thing>
    void load(Thing& to) {
        next_ = 0;
        visitor<state_copy, true> visit{*this};
        to.visit_state(visit);
    }
};

/// The weights of a run and what belongs to them, by the definition.
template <class Recipe>
struct definition {
    using weight = typename Recipe::weight;
    static constexpr bool has_masters = !std::is_same_v<weight, typename Recipe::master>;

    mp::weight_update how;
    std::vector<weight> w;
    std::vector<float> exact;  ///< masters; under kahan the compensations

    static bool same(weight a, weight b) { return std::memcmp(&a, &b, sizeof a) == 0; }
    [[nodiscard]] bool compensates() const { return !has_masters && how == mp::weight_update::kahan; }
    [[nodiscard]] bool splits() const { return !has_masters && how == mp::weight_update::split; }

    // What is written is followed when masters are used the next time, however often it was written until then.
    void written() { written_ = true; }
    void replaced() { written_ = replaced_ = true; }
    void begin() {
        replaced();
        follow();
    }
    void follow() {
        if (replaced_) {
            for (std::size_t i = 0; i < w.size(); ++i) {
                exact[i] = compensates() ? 0.0F : static_cast<float>(w[i]);
            }
        } else if (written_) {
            follow_written();
        }
        written_ = replaced_ = false;
    }
    void step(std::size_t first, std::span<const float> gradient, float inverse_scale) {
        for (std::size_t j = 0; j < gradient.size(); ++j) {
            const std::size_t i = first + j;
            float trained = has_masters || splits() ? exact[i] : static_cast<float>(w[i]);
            if (compensates()) trained = trained + exact[i];
            trained = trained - rate * (gradient[j] * inverse_scale + decay * trained);
            exact[i] = trained;
            if (splits()) {
                set_bits(w[i], mp::split_master(trained).high);
                continue;
            }
            w[i] = weight(trained);
            if (has_masters) continue;
            exact[i] = static_cast<float>(w[i]);
            if (compensates()) exact[i] = static_cast<float>(weight(trained - exact[i]));
        }
    }

private:
    void follow_written() {
        for (std::size_t i = 0; i < w.size(); ++i) {
            const float as_float = static_cast<float>(w[i]);
            if (compensates()) {
                if (!same(weight(as_float + exact[i] / 2), w[i])) exact[i] = 0;
            } else if (splits()) {
                // The float with this lower half that rounds to the weight, ties away from zero, if there is one.
                const std::uint32_t low = std::bit_cast<std::uint32_t>(exact[i]) & 0xffffU;
                const std::uint32_t code =
                    (std::uint32_t{bits(w[i])} << 16) + low - (low >= 0x8000U ? 0x10000U : 0);
                const bool crosses_zero = low >= 0x8000U && (bits(w[i]) & 0x7fffU) == 0;
                exact[i] = crosses_zero ? as_float : std::bit_cast<float>(code);
            } else if (!same(weight(exact[i]), w[i])) {
                exact[i] = as_float;
            }
        }
    }

    static std::uint16_t bits(weight value) {
        std::uint16_t code = 0;
        std::memcpy(&code, &value, sizeof code);
        return code;
    }
    static void set_bits([[maybe_unused]] weight& value, [[maybe_unused]] std::uint16_t code) {
        if constexpr (!std::is_same_v<weight, float>) value = weight::from_bits(code);
    }

    bool written_ = false, replaced_ = false;
};

/// A run under a recipe, and its actions.
template <class Recipe>
class run {
    using weight = typename Recipe::weight;
    using policy = typename Recipe::policy;
    using optimizer_type = mp::sgd<weight, float, typename Recipe::master>;
    using model_type = model<weight, policy>;

public:
    run(const Recipe& how, std::uint64_t seed, std::string file)
        : how_(how), random_(seed), file_(std::move(file)), region_(how.region) {
        begin(seed);
        expected_.how = how.how;
        take_weights();
        expected_.begin();
        check("begin");
    }

    /// Empty as long as nothing has differed; else the actions up to there.
    [[nodiscard]] const std::string& difference() const { return difference_; }

    void act() {
        switch (random_() % 16) {
            case 0:
            case 1:
            case 2:
                return train("step", true, false);
            case 3:
                return train("step of the first", false, false);
            case 4:
                return train("skip", true, true);
            case 5:
                return evaluate();
            case 6:
            case 7:
                return write_some();
            case 8:
                return replace_all();
            case 9:
                return broadcast();
            case 10:
                return update_average();
            case 11:
            case 12:
                return apply_average();
            case 13:
                return freeze();
            case 14:
                return random_() % 4 == 0 ? resume() : evaluate();
            default:
                return load_weights();
        }
    }

private:
    void begin(std::uint64_t seed) {
        it_ = std::make_unique<model_type>(seed);
        make_optimizer();
    }
    void make_optimizer() {
        average_.reset();
        auto parameters = it_->store.parameters();
        for (std::size_t i = 2; frozen_ && i < parameters.size(); ++i) parameters[i].gradient = {};
        mp::sgd_options options{.learning_rate = rate, .weight_decay = decay};
        options.low_precision_update = how_.how;
        optimizer_ = std::make_unique<optimizer_type>(std::move(parameters), options);
        average_ = std::make_unique<average_type>(*optimizer_, mp::weight_average_options{.decay = 0.5});
    }
    void fill(mp::tensor<weight>& values) {
        for (weight& value : values.values())
            value = weight(static_cast<float>(random_() % 512) / 256.0F - 1.0F);
    }
    void backward(bool both, float scale) {
        const mp::cpu exec{};
        fill(x_);
        fill(dy_);
        for (weight& value : dy_.values()) value = weight(static_cast<float>(value) * scale);
        const auto h = it_->first.forward(exec, x_.view());
        if (both) {
            it_->second.forward(exec, h);
            it_->second.backward(exec, dy_.view(), dx_.view(), false);
            it_->first.backward(exec, std::as_const(dx_).view(), mp::ops::absent, false);
        } else {
            it_->first.backward(exec, dy_.view(), mp::ops::absent, false);
        }
    }
    void train(const char* name, bool both, bool skips) {
        if (!skips) expected_.follow();
        mp::training_iteration iteration(scaler_, *optimizer_);
        backward(both, iteration.current_scale());
        const auto parameters = it_->store.parameters();
        if (skips) parameters[0].gradient[3] = std::numeric_limits<float>::infinity();
        std::size_t first = 0;
        for (std::size_t i = 0; i < parameters.size(); ++i) {
            const bool used = i < 2 || (both && !frozen_);
            if (used && !skips)
                expected_.step(first, parameters[i].gradient, 1.0F / iteration.current_scale());
            first += parameters[i].weights.size();
        }
        static_cast<void>(iteration.finish());
        check(name);
    }
    void evaluate() { check("forward"); }
    void write_some() {
        const auto target = random_() % 2 == 0 ? it_->first.weight() : it_->second.bias();
        const std::span<weight> values = target.mutable_values();
        for (int i = 0; i < 3; ++i) {
            values[random_() % values.size()] = weight(static_cast<float>(random_() % 64) / 32.0F - 1.0F);
        }
        take_weights();
        expected_.written();
        check("write");
    }
    void replace_all() {
        for (weight& value : it_->store.replace_weights()) value = weight(0.5F * static_cast<float>(value));
        take_weights();
        expected_.replaced();
        check("replace");
    }
    void broadcast() {
        mp::single_rank alone;
        mp::broadcast_weights(alone, it_->store);
        expected_.replaced();
        check("broadcast");
    }
    void update_average() {
        expected_.follow();
        average_->update();
        check("average");
    }
    void apply_average() {
        expected_.follow();
        {
            const auto applied = average_->apply();
            const auto parameters = it_->store.parameters();
            for (std::size_t i = 0; i < parameters.size(); ++i) {
                const auto values = average_->values(i);
                for (std::size_t j = 0; j < values.size(); ++j) {
                    require(definition<Recipe>::same(parameters[i].weights[j], weight(values[j])),
                            "apply: weights");
                }
            }
            check_products("apply");
            // Is given up.
            if (random_() % 2 == 0) it_->first.weight().mutable_values()[0] = weight(7.0F);
            if (random_() % 4 == 0) it_->store.replace_weights()[0] = weight(7.0F);
            check_products("apply and write");
        }
        check("restore");
    }
    void freeze() {
        frozen_ = !frozen_;
        std::ranges::fill(it_->store.gradients(), 0.0F);  // of frozen parameters no optimizer has zeroed them
        make_optimizer();
        expected_.begin();
        check("freeze");
    }
    auto everything(bool store_first) {
        return [this, store_first](auto& visit) {
            if (store_first) visit("store", it_->store);
            visit("optimizer", *optimizer_);
            visit("average", *average_);
            visit("layers", *it_);
            visit("scaler", scaler_);
            if (!store_first) visit("store", it_->store);
        };
    }
    void resume() {
        const bool store_first = random_() % 2 == 0;
        expected_.follow();
        mp::save_checkpoint(file_, everything(store_first));
        average_.reset();
        optimizer_.reset();
        begin(random_());
        mp::load_checkpoint(file_, everything(store_first));
        check("resume");
    }
    void load_weights() {
        const auto store = [this](auto& visit) { visit("store", it_->store); };
        if (random_() % 4 != 0) return evaluate();
        mp::save_checkpoint(file_, store);
        const std::vector<weight> saved = expected_.w;
        train("step before loading", true, false);
        mp::load_checkpoint(file_, store);
        expected_.w = saved;
        expected_.written();
        check("load");
    }

    void take_weights() {
        expected_.w.clear();
        for (const auto& it : it_->store.parameters()) {
            expected_.w.insert(expected_.w.end(), it.weights.begin(), it.weights.end());
        }
        expected_.exact.resize(expected_.w.size());
    }
    void require(bool right, const std::string& what) {
        if (!right && difference_.empty()) difference_ = done_ + what;
    }
    /// What the layers of the run give is what new layers give, which keep nothing, and have the same weights.
    void check_products(const std::string& action) {
        const bool both = random_() % 4 != 0;
        fill(x_);
        const auto found = it_->run(x_, both);
        model_type other(1);
        std::ranges::copy(std::as_const(it_->store).weights(), other.store.mutable_weights().begin());
        state_copy state;
        state.save(*it_);
        state.load(other);
        const mp::autocast_region uncached({.cpu = how_.region, .keep_casts = false});
        require(found == other.run(x_, both), action + ": products");
    }
    void check_masters(const std::string& action, std::size_t index, std::span<const float> expected) {
        std::vector<float> found(expected.size());
        optimizer_->copy_master_weights(index, 0, found);
        if (expected_.compensates()) {
            const auto kept = optimizer_->weight_compensation(index);
            for (std::size_t j = 0; j < found.size(); ++j) found[j] = static_cast<float>(kept[j]);
        }
        // Zeros may have either sign.
        require(std::ranges::equal(found, expected),
                action + ": masters of parameter " + std::to_string(index));
    }
    void check(const std::string& action) {
        const auto parameters = it_->store.parameters();
        const bool masters = random_() % 2 == 0;  // reading them brings them up to date
        if (masters) expected_.follow();
        std::size_t first = 0;
        for (std::size_t i = 0; i < parameters.size(); ++i) {
            const std::span<weight> weights = parameters[i].weights;
            for (std::size_t j = 0; j < weights.size(); ++j) {
                require(definition<Recipe>::same(weights[j], expected_.w[first + j]), action + ": weights");
            }
            if (masters) check_masters(action, i, std::span(expected_.exact).subspan(first, weights.size()));
            first += weights.size();
        }
        check_products(action);
        done_ += action + ", ";
    }

    using average_type = decltype(mp::weight_average(std::declval<optimizer_type&>()));

    Recipe how_;
    std::mt19937_64 random_;
    std::string file_;
    std::unique_ptr<model_type> it_;
    std::unique_ptr<optimizer_type> optimizer_;
    std::unique_ptr<average_type> average_;
    mp::loss_scaler<mp::static_policy> scaler_{mp::static_policy{.initial_scale = 8.0F}};
    mp::tensor<weight> x_{rows, width}, dy_{rows, width}, dx_{rows, width};
    mp::autocast_region region_;
    definition<Recipe> expected_{};
    bool frozen_ = false;
    std::string done_;
    std::string difference_;
};

/// Runs sequence `number` of some of all recipes; returns what was done until something differed, or nothing.
template <class Recipe>
std::string difference_of(const Recipe& how, std::uint64_t number, const std::string& file) {
    run<Recipe> it(how, number, file);
    for (std::uint64_t i = 0, count = 4 + number % 9; i < count && it.difference().empty(); ++i) it.act();
    return it.difference();
}
inline std::string difference_of_sequence(std::uint64_t number, const std::string& file) {
    using mp::precision;
    using mp::weight_update;
    using alone = recipe<bfloat16, mp::autocast::by_region, bfloat16>;
    switch (number % 12) {
        case 0:
            return difference_of(recipe<float>{.region = precision::bf16}, number, file);
        case 1:
            return difference_of(recipe<float>{.region = precision::fp16}, number, file);
        case 2:
            return difference_of(recipe<float>{}, number, file);
        case 3:
            return difference_of(recipe<bfloat16>{}, number, file);
        case 4:
            return difference_of(recipe<half>{.region = precision::fp16}, number, file);
        case 5:
            return difference_of(alone{.how = weight_update::kahan}, number, file);
        case 6:
            return difference_of(alone{.how = weight_update::split}, number, file);
        case 7:
            return difference_of(alone{}, number, file);
        case 8:
            return difference_of(recipe<bfloat16, layers::float8_delayed_scaling>{}, number, file);
        case 9:
            return difference_of(recipe<bfloat16, layers::float8_current_scaling>{}, number, file);
        case 10:
            return difference_of(recipe<bfloat16, layers::mxfp8_block_scaling>{}, number, file);
        default:
            return difference_of(recipe<float, layers::float8_delayed_scaling>{}, number, file);
    }
}

}  // namespace life_of_weights
