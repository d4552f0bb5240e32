// SPDX-License-Identifier: MIT
/// \file
/// The record that a loss scaler keeps of an iteration under way.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/nn/scaling/optimizer_protocol.hpp>
#include <mp/nn/scaling/reducer.hpp>
#include <mp/nn/scaling/scale_event.hpp>
#include <mp/nn/scaling/unscale.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// How far an optimizer has come; those that are not on record are ready.
enum class optimizer_stage : unsigned char { unscaled, stepped };

/// An optimizer that is no longer ready, of any type.
struct optimizer_check {
    using forget_function = void (*)(void* optimizer);
    using name_function = std::string_view (*)(const void* optimizer, std::size_t parameter);

    void* optimizer;
    forget_function forget;
    name_function name;  ///< null if the optimizer gives no names
    optimizer_stage reached;
    gradient_report report;

    template <scalable_optimizer Optimizer>
    optimizer_check(Optimizer& it, optimizer_stage stage, const gradient_report& found)
        : optimizer(&it),
          forget([](void* self) { static_cast<Optimizer*>(self)->skip_step(); }),
          name(nullptr),
          reached(stage),
          report(found) {
        if constexpr (named_optimizer<Optimizer>) {
            name = [](const void* self, std::size_t parameter) -> std::string_view {
                return static_cast<const Optimizer*>(self)->parameter_name(parameter);
            };
        }
    }

    /// The name of the first parameter with a bad value; empty if there is none.
    [[nodiscard]] std::string_view parameter_name() const {
        if (name == nullptr || report.first_parameter == no_index) return {};
        return name(optimizer, report.first_parameter);
    }
};

/// All ranks learn what any of them found.
inline void agree(gradient_report& report, const reducer_reference& reducer) {
    if (!reducer) return;
    std::array<std::uint64_t, 4> all{report.infinities, report.nans, report.checked, report.too_large};
    reducer.sum(all);
    report.infinities_elsewhere = all[0] - report.infinities;
    report.nans_elsewhere = all[1] - report.nans;
    report.checked_elsewhere = all[2] - report.checked;
    report.too_large_elsewhere = all[3] - report.too_large;
}

/// Measurements of this rank, over all ranks.
inline gradient_observation over_all_ranks(const gradient_observation& measured,
                                           const reducer_reference& reducer) {
    if (!reducer) return measured;
    std::array<std::uint64_t, 6> sums{measured.values,     measured.zeros,     measured.flushed,
                                      measured.subnormals, measured.overflows, measured.large};
    reducer.sum(sums);
    // The order of doubles that are not negative is that of their bits.
    std::array<std::uint64_t, 1> largest{bit_cast<std::uint64_t>(measured.largest)};
    (reducer.max)(largest);
    return {measured.infinities,         measured.nans, sums[0], sums[1], sums[2], sums[3], sums[4], sums[5],
            bit_cast<double>(largest[0])};
}

/// Everything that was found in an iteration under way. Optimizers are told apart by their address.
class iteration_record {
public:
    iteration_record() { checks_.reserve(8); }  // more than one loop drives, so that no iteration allocates

    /// Whether the ranks agree on everything on record. False once a reducer has thrown: what other ranks
    /// have found is not known then, nor whether they know.
    [[nodiscard]] bool agreed() const noexcept { return agreed_; }
    /// All ranks learn what any of them found.
    void agree(gradient_report& report, const reducer_reference& reducer) {
        agreed_ = false;
        detail::agree(report, reducer);
        agreed_ = true;
    }

    /// Whether nothing has been checked yet.
    [[nodiscard]] bool empty() const noexcept { return checks_.empty() && recordings_ == 0; }
    [[nodiscard]] optimizer_check& last() noexcept { return checks_.back(); }

    [[nodiscard]] optimizer_check* find(const void* optimizer) noexcept {
        const auto found = std::find_if(checks_.begin(), checks_.end(), [=](const optimizer_check& check) {
            return check.optimizer == optimizer;
        });
        return found == checks_.end() ? nullptr : &*found;
    }

    /// Makes the next add safe from exceptions, so that an optimizer that was changed is on record.
    void make_room() {
        if (checks_.size() == checks_.capacity()) checks_.reserve(2 * checks_.capacity() + 1);
    }
    void add(const optimizer_check& check) { checks_.push_back(check); }

    /// Gradients that no optimizer of the protocol holds.
    void add(const gradient_report& report, bool applied) noexcept {
        ++recordings_;
        recorded_ += report.observation();
        if (!report.any_gradients()) return;
        recorded_gradients_ = true;
        ++(applied ? recorded_applied_ : recorded_skipped_);
    }

    /// Adds to what was measured; infinities and NaNs are counted where gradients are checked.
    void observe(gradient_observation measured) noexcept {
        measured.infinities = 0;
        measured.nans = 0;
        measured_ += measured;
    }
    [[nodiscard]] const gradient_observation& measured() const noexcept { return measured_; }

    /// Whether there were any gradients, on any rank.
    [[nodiscard]] bool any_gradients() const {
        return recorded_gradients_ ||
               std::any_of(checks_.begin(), checks_.end(),
                           [](const optimizer_check& it) { return it.report.any_gradients(); });
    }

    /// What all gradients of this rank looked like, with `check` in place of the entry of its optimizer.
    [[nodiscard]] gradient_observation seen_with(const optimizer_check& check) const {
        gradient_observation seen = measured_;
        seen += recorded_;
        seen += check.report.observation();
        for (const optimizer_check& other : checks_) {
            if (other.optimizer != check.optimizer) seen += other.report.observation();
        }
        return seen;
    }

    /// The event of the iteration so far, except for its number and the change of the scale.
    /// `applies(report)` says whether a step by such gradients is applied.
    template <class Applies>
    [[nodiscard]] scale_event summary(const reducer_reference& reducer, Applies applies) {
        scale_event event;
        const bool before = agreed_;
        agreed_ = false;
        event.seen = over_all_ranks(measured_, reducer);
        agreed_ = before;
        event.seen += recorded_;
        event.applied = recorded_applied_;
        event.skipped = recorded_skipped_;
        for (const optimizer_check& check : checks_) {
            const gradient_report& report = check.report;
            event.seen += report.observation();
            if (check.reached == optimizer_stage::stepped && report.any_gradients()) {
                ++(applies(report) ? event.applied : event.skipped);
            }
            if (event.parameter == ~0ULL && report.first_parameter != no_index) {
                event.parameter = report.first_parameter;
                event.element = report.first_element;
                event.parameter_name = short_name(check.parameter_name());
            }
        }
        return event;
    }

    /// All optimizers are ready again; those that were unscaled and then never stepped drop their unscaled
    /// gradients.
    void end_iteration() {
        for (const optimizer_check& check : checks_) {
            if (check.reached == optimizer_stage::unscaled) check.forget(check.optimizer);
        }
        clear();
    }
    /// As end_iteration(), and no optimizer is told.
    void clear() noexcept {
        checks_.clear();
        measured_ = {};
        recorded_ = {};
        recordings_ = 0;
        recorded_applied_ = 0;
        recorded_skipped_ = 0;
        recorded_gradients_ = false;
        agreed_ = true;
    }

private:
    std::vector<optimizer_check> checks_;
    gradient_observation measured_;
    gradient_observation recorded_;
    std::uint32_t recordings_ = 0;
    std::uint32_t recorded_applied_ = 0;
    std::uint32_t recorded_skipped_ = 0;
    bool recorded_gradients_ = false;
    bool agreed_ = true;
};

}}  // namespace mp::detail
