// SPDX-License-Identifier: MIT
/// \file
/// The record that a loss scaler keeps of the optimizers of an iteration under way.
#pragma once

#include <mp/scaling/optimizer_protocol.hpp>
#include <mp/scaling/reducer.hpp>
#include <mp/scaling/unscale.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace mp::detail {

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
    std::array<std::uint64_t, 3> found{report.infinities != 0, report.nans != 0, report.checked != 0};
    reducer.max(found);
    report.infinity_elsewhere = found[0] != 0 && report.infinities == 0;
    report.nan_elsewhere = found[1] != 0 && report.nans == 0;
    report.gradients_elsewhere = found[2] != 0 && report.checked == 0;
}

/// All of them. Optimizers are told apart by their address.
class optimizer_checks {
public:
    optimizer_checks() { checks_.reserve(8); }  // more than one loop drives, so that no iteration allocates

    [[nodiscard]] bool empty() const noexcept { return checks_.empty(); }
    [[nodiscard]] auto begin() const noexcept { return checks_.begin(); }
    [[nodiscard]] auto end() const noexcept { return checks_.end(); }
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

    /// Whether any of them has gradients, on any rank.
    [[nodiscard]] bool any_gradients() const {
        return std::any_of(checks_.begin(), checks_.end(),
                           [](const optimizer_check& check) { return check.report.any_gradients(); });
    }

    /// Those that were unscaled and then never stepped drop their unscaled gradients; all are ready again.
    void end_iteration() {
        for (const optimizer_check& check : checks_) {
            if (check.reached == optimizer_stage::unscaled) check.forget(check.optimizer);
        }
        checks_.clear();
    }
    /// All are ready again, and none is told.
    void clear() noexcept { checks_.clear(); }

private:
    std::vector<optimizer_check> checks_;
};

/// Measurements of this rank, over all ranks.
inline gradient_observation agreed(const gradient_observation& measured, const reducer_reference& reducer) {
    if (!reducer) return measured;
    std::array<std::uint64_t, 6> sums{measured.values,     measured.zeros,     measured.flushed,
                                      measured.subnormals, measured.overflows, measured.large};
    reducer.sum(sums);
    // The order of doubles that are not negative is that of their bits.
    std::array<std::uint64_t, 1> largest{bit_cast<std::uint64_t>(measured.largest)};
    reducer.max(largest);
    return {measured.infinities,         measured.nans, sums[0], sums[1], sums[2], sums[3], sums[4], sums[5],
            bit_cast<double>(largest[0])};
}

}  // namespace mp::detail
