// SPDX-License-Identifier: MIT
/// \file
/// An exponential average of the weights of a run, which is often better than the last ones.
#pragma once

#include <mp/arrays/array/row_type.hpp>
#include <mp/config.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/nn/optim/optimizer_base.hpp>
#include <mp/nn/optim/parameter.hpp>
#include <mp/nn/scaling/unscale.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>
#include <mp/numbers/simd/processor.hpp>

#if MP_CORE_BODIES
#include <mp/numbers/rules/elementwise.hpp>
#include <mp/numbers/simd/select_target.hpp>
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// Moves averages, each the sum of high[i] and low[i], toward x[i] by the fraction `taken` = 1 - `left` of the
/// distance.
MP_CORE_FUNCTION void average_floats(instruction_set isa, std::size_t count, float* high, float* low,
                                     const float* x, float taken, float left);

#if MP_CORE_BODIES
MP_CORE_FUNCTION void average_floats(instruction_set isa, std::size_t count, float* high, float* low,
                                     const float* x, float taken, float left) {
    const auto kernel = MP_SELECT_TARGET(isa, &portable_vectors::average_arrays, average_arrays);
    kernel(count, high, low, x, taken, left);
}
#endif

}}  // namespace mp::detail

namespace mp {

struct weight_average_options {
    double decay = 0.999;  ///< in [0, 1): what is left of the average in an update
    /// Lets the first weights, which are far from good, go sooner: at update t the decay is at most
    /// (1 + t) / (10 + t), as in TensorFlow's ExponentialMovingAverage.
    bool warmup = false;

    friend constexpr bool operator==(const weight_average_options&, const weight_average_options&) = default;
};

}  // namespace mp

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Exponential average of the master weights of an optimizer: average += (1 - decay) (weights - average),
/// starting at the weights as they are.
///
/// The average is kept in two floats, 48 bits: a single one stops short of the weights once
/// (1 - decay) (weights - average) is below half of its last place, for decay = 0.9999 at 1.99907 instead
/// of 2. values() is the average rounded to float.
///
///     mp::weight_average average(optimizer, {.decay = 0.999});
///     if (scaler.step(optimizer)) average.update();
///     {
///         const auto applied = average.apply();   // the weights are the average's, rounded once
///         validate();
///     }                                           // and their own again
///
/// The optimizer must outlive it. Not synchronised; the same bits for any number of threads. After the first
/// apply() nothing allocates.
template <class Weight, class Gradient, class Master, class State>
class weight_average {
    using optimizer_type = optimizer_memory<Weight, Gradient, Master, State>;

public:
    /// \throws argument_error  decay is out of range
    explicit weight_average(optimizer_type& optimizer, const weight_average_options& options = {},
                            cpu exec = {})
        : exec_(exec), optimizer_(optimizer), options_(options) {
        detail::check_threads("mp::weight_average", exec);
        static_cast<void>(detail::isa_of("mp::weight_average", exec));  // throws
        detail::require_fraction("mp::weight_average", "decay", options.decay);
        for (const auto& it : optimizer.parameters()) layout_.add(it.weights.size());
        values_.resize(layout_.total());
        remainders_.resize(layout_.total());
        optimizer.require_lasting_weights("mp::weight_average");
        optimizer.follow_weights();
        for_each_block([&](std::size_t i, std::size_t first, std::size_t count, float* to) {
            optimizer_.copy_master_weights(i, first, {to, count});
        });
    }
    weight_average(const weight_average&) = delete;
    weight_average& operator=(const weight_average&) = delete;

    /// After a step that was applied.
    void update() {
        optimizer_.require_lasting_weights("mp::weight_average::update");
        optimizer_.follow_weights();
        const detail::default_floating_point_modes modes;
        double decay = options_.decay;
        if (options_.warmup) {
            const auto t = static_cast<double>(updates_);
            decay = (std::min)(decay, detail::double_divide(1.0 + t, 10.0 + t));
        }
        const auto taken = static_cast<float>(detail::double_subtract(1.0, decay));
        const auto left = static_cast<float>(decay);
        const instruction_set isa = detail::isa_of("mp::weight_average", exec_);
        for_each_block([&](std::size_t i, std::size_t first, std::size_t count, float* to) {
            float room[block];
            const float* const weights = masters(i, first, count, room);
            detail::average_floats(isa, count, to, remainders_.data() + (to - values_.data()), weights, taken,
                                   left);
        });
        ++updates_;
    }

    /// The average of a parameter. Throws argument_error if there is no such parameter.
    [[nodiscard]] std::span<const float> values(std::size_t index) const {
        const std::size_t offset = layout_.offset(checked(index));  // before size(), which takes any index
        return std::span<const float>(values_).subspan(offset, size(index));
    }
    [[nodiscard]] const weight_average_options& options() const noexcept { return options_; }
    [[nodiscard]] std::uint64_t update_count() const noexcept { return updates_; }

    /// Continues a run: sets values(), remainders() and the number of updates. Without remainders the averages
    /// are the values.
    ///
    /// \throws argument_error  the number of values or remainders is another; nothing has changed
    void restore(std::span<const float> values, std::span<const float> remainders, std::uint64_t updates) {
        require_size("values.size()", values.size());
        if (!remainders.empty()) require_size("remainders.size()", remainders.size());
        std::copy(values.begin(), values.end(), values_.begin());
        const auto end = std::copy(remainders.begin(), remainders.end(), remainders_.begin());
        std::fill(end, remainders_.end(), 0.0F);
        updates_ = updates;
    }
    void restore(std::span<const float> values, std::uint64_t updates) { restore(values, {}, updates); }
    /// The averages of all parameters, one after the other, rounded to float.
    [[nodiscard]] std::span<const float> values() const noexcept { return values_; }
    /// The averages minus values(), rounded to float.
    [[nodiscard]] std::span<const float> remainders() const noexcept { return remainders_; }

    /// For mp::save_checkpoint and mp::load_checkpoint. Checkpoints before version 3 have no remainders.
    ///
    /// \throws state_error  the average is applied
    template <class Visitor>
    void visit_state(Visitor& visitor) {
        if (is_applied_) {
            detail::throw_joined<state_error>(
                {Visitor::loads ? "mp::load_checkpoint" : "mp::save_checkpoint",
                 ": the average is applied; save and load when its scope has ended"});
        }
        visitor("values", values_);
        visitor("updates", updates_);
        if constexpr (Visitor::loads && requires { visitor.version(); }) {
            if (visitor.version() < 3) {
                visitor.when_loaded([this] { std::fill(remainders_.begin(), remainders_.end(), 0.0F); });
                return;
            }
        }
        visitor("remainders", remainders_);
    }

    /// While it lives, the weights are the average's: they are neither trained nor saved in a checkpoint meanwhile,
    /// which throws state_error. mp::save_safetensors of a parameter_store writes the average.
    class [[nodiscard]] applied {
    public:
        ~applied() { average_.take_back(); }
        applied(const applied&) = delete;
        applied& operator=(const applied&) = delete;

    private:
        friend class weight_average;
        explicit applied(weight_average& average) : average_(average) { average_.put(); }
        weight_average& average_;
    };
    /// \throws state_error  this average, or another one of these weights, is applied already
    applied apply() {
        optimizer_.require_lasting_weights("mp::weight_average::apply");
        return applied(*this);
    }

private:
    static constexpr std::size_t block = 256;

    void require_size(std::string_view name, std::size_t size) const {
        if (size == values_.size()) return;
        detail::throw_argument(
            "mp::weight_average::restore", name, size,
            "must be the number of weights, which is " + detail::error_text(values_.size()));
    }
    [[nodiscard]] std::size_t size(std::size_t index) const {
        return optimizer_.parameters()[index].weights.size();
    }
    [[nodiscard]] std::size_t checked(std::size_t index) const {
        static_cast<void>(optimizer_.parameter_name(index));  // throws
        return index;
    }
    /// The masters where they lie if they are floats, else in `room`.
    [[nodiscard]] const float* masters(std::size_t i, std::size_t first, std::size_t count,
                                       float* room) const {
        if constexpr (std::is_same_v<Master, float>) {
            return optimizer_.master_weights(i).data() + first;
        } else {
            optimizer_.copy_master_weights(i, first, {room, count});
            return room;
        }
    }

    /// Calls f(parameter, first, count, averages) on blocks that cover all weights.
    template <class Function>
    void for_each_block(Function f) {
        layout_.for_each_chunk(
            exec_, detail::unscale_grain, [&](std::size_t i, std::size_t first, std::size_t last) {
                const detail::default_floating_point_modes modes;
                for (std::size_t at = first; at < last; at += block) {
                    f(i, at, (std::min)(block, last - at), values_.data() + layout_.offset(i) + at);
                }
            });
    }

    void put() {
        own_.resize(layout_.total());
        optimizer_.follow_weights();
        is_applied_ = true;
        for_each_block([&](std::size_t i, std::size_t first, std::size_t count, const float* from) {
            Weight* const weights = optimizer_.parameters()[i].weights.data() + first;
            std::memcpy(own_.data() + layout_.offset(i) + first, weights, count * sizeof(Weight));
            detail::row_record<Weight>::record.narrow(detail::isa_of("mp::weight_average", exec_), from,
                                                      weights, count);
        });
        advance_versions(true);
    }
    void take_back() noexcept {
        for (std::size_t i = 0; i < optimizer_.parameters().size(); ++i) {
            const std::span<Weight> weights = optimizer_.parameters()[i].weights;
            if (!weights.empty()) {
                std::memcpy(weights.data(), own_.data() + layout_.offset(i), weights.size_bytes());
            }
        }
        is_applied_ = false;
        advance_versions(false);
        optimizer_.adopt_weight_versions();  // the weights are those of the masters again
    }
    void advance_versions(bool temporary) noexcept {
        for (const auto& it : optimizer_.parameters()) {
            it.version.set_temporary(temporary);
            it.version.changed();
        }
    }

    cpu exec_;
    optimizer_type& optimizer_;
    weight_average_options options_;
    detail::parameter_layout layout_;
    std::vector<float> values_;
    std::vector<float> remainders_;
    std::vector<Weight> own_;  // while the average is applied
    std::uint64_t updates_ = 0;
    bool is_applied_ = false;
};

template <class Weight, class Gradient, class Master, class State>
weight_average(optimizer_memory<Weight, Gradient, Master, State>&, const weight_average_options& = {},
               cpu = {}) -> weight_average<Weight, Gradient, Master, State>;

}}  // namespace mp
