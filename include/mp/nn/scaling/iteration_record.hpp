// SPDX-License-Identifier: MIT
/// \file
/// The record that a loss scaler keeps of an iteration under way, and all of a scaler that does not depend on its policy.
#pragma once

#include <mp/config.hpp>
#include <mp/nn/scaling/optimizer_protocol.hpp>
#include <mp/nn/scaling/policy.hpp>
#include <mp/nn/scaling/reducer.hpp>
#include <mp/nn/scaling/scale_event.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#if MP_CORE_BODIES
#include <mp/base/bits.hpp>
#include <mp/error.hpp>

#include <algorithm>
#include <array>
#endif

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// How far an optimizer has come; those that are not on record are ready.
enum class optimizer_stage : unsigned char { unscaled, stepped };

/// An optimizer that is no longer ready, of any type.
struct optimizer_check {
    void* optimizer;
    void (*forget)(void* optimizer);
    std::string_view (*name)(const void* optimizer, std::size_t parameter);  ///< null if it gives no names
    optimizer_stage reached;
    gradient_report report;
};

/// The decisions of a scaler's policy, which change nothing.
struct scaler_rules {
    const void* scaler;
    /// Whether gradients like these are skipped.
    bool (*skips)(const void* scaler, const gradient_observation& seen);
    /// The change that update would make if this had been seen.
    scale_change (*foresee)(const void* scaler, const gradient_observation& seen);
};

/// Findings of the current iteration, and the stage of each optimizer, which is identified by its address.
class iteration_record {
public:
    iteration_record();
    ~iteration_record();
    iteration_record(const iteration_record& other);
    iteration_record(iteration_record&& other) noexcept;
    iteration_record& operator=(const iteration_record& other);
    iteration_record& operator=(iteration_record&& other) noexcept;

    // The functions that begin a stage throw state_error if the protocol does not permit it now.
    void begin_unscale(const void* optimizer);
    /// \returns the check of the optimizer, null if it is ready
    optimizer_check* begin_step(const void* optimizer);
    void begin_update() const;
    void open_scope();
    MP_ALWAYS_INLINE void close_scope() noexcept { scope_open_ = false; }
    void require_agreed(std::string_view function) const;
    void require_no_scope(std::string_view function) const;

    MP_ALWAYS_INLINE void set_reducer(const reducer_functions& reducer) noexcept { reducer_ = reducer; }
    [[nodiscard]] MP_ALWAYS_INLINE const reducer_functions& reducer() const noexcept { return reducer_; }

    /// All ranks learn what any of them found. Once a reducer has thrown, what other ranks have found is not known, nor
    /// whether they know: require_agreed() throws until the iteration ends.
    void agree(gradient_report& report);

    /// Adds an optimizer after its step. begin_step() has reserved the memory, so that this cannot fail.
    MP_ALWAYS_INLINE void add_stepped(const optimizer_check& check) noexcept { add(check); }
    /// Adds an optimizer whose gradients have been unscaled, then agrees with the other ranks. If the reducer throws, the
    /// optimizer stays on record, and all functions throw until the iteration is abandoned.
    const gradient_report& add_unscaled(const optimizer_check& check);
    /// Adds gradients that no optimizer of the protocol holds; returns whether a step by them is to be applied.
    bool add(std::size_t values, const non_finite_report& found, const scaler_rules& rules);
    /// Replaces the values that were too large when they were unscaled by those that still are.
    void replace_too_large(gradient_report& report, const gradient_report& now);

    /// Adds to what was measured; infinities and NaNs are counted where gradients are checked.
    void observe(gradient_observation measured) noexcept;

    /// Whether there were any gradients, on any rank.
    [[nodiscard]] bool any_gradients() const noexcept;
    /// Whether a step by such gradients is applied.
    [[nodiscard]] static bool applies(const gradient_report& report, const scaler_rules& rules);
    /// The result of a step at this scale.
    [[nodiscard]] step_result describe(const optimizer_check& check, float scale,
                                       const scaler_rules& rules) const;
    /// The event of the iteration so far, except for the change of the scale.
    [[nodiscard]] scale_event summary(const scaler_rules& rules);

    /// All optimizers are ready again; those that were unscaled and then never stepped drop their unscaled
    /// gradients.
    void end_iteration();
    /// The same after an update, whose event is kept.
    void end_iteration(const scale_event& event);
    /// As end_iteration(), and no optimizer is told.
    void clear() noexcept;

    [[nodiscard]] MP_ALWAYS_INLINE const scale_event& last_event() const noexcept { return last_; }
    [[nodiscard]] MP_ALWAYS_INLINE std::uint64_t iterations() const noexcept { return iterations_; }

private:
    [[nodiscard]] optimizer_check* find(const void* optimizer) noexcept;
    /// Whether nothing has been checked yet.
    [[nodiscard]] MP_ALWAYS_INLINE bool empty() const noexcept { return checks_.empty() && recordings_ == 0; }
    void make_room();
    void add(const optimizer_check& check) noexcept;
    [[nodiscard]] gradient_observation measured_on_all_ranks();

    std::vector<optimizer_check> checks_;
    gradient_observation measured_;
    gradient_observation recorded_;
    std::uint32_t recordings_ = 0;
    std::uint32_t recorded_applied_ = 0;
    std::uint32_t recorded_skipped_ = 0;
    bool recorded_gradients_ = false;
    bool agreed_ = true;
    bool scope_open_ = false;
    reducer_functions reducer_;
    scale_event last_;
    std::uint64_t iterations_ = 0;
};

/// Throws state_error: gradients cannot carry a scale that nothing has asked for.
[[noreturn]] MP_CORE_FUNCTION void throw_not_asked(std::string_view function, float scale);
/// Throws scale_error: the policy refuses to go on.
[[noreturn]] MP_CORE_FUNCTION void throw_refused(float scale, const gradient_observation& seen);

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

template <scalable_optimizer Optimizer>
optimizer_check check_of(Optimizer& optimizer, optimizer_stage stage, const gradient_report& found) {
    optimizer_check check{&optimizer, [](void* self) { static_cast<Optimizer*>(self)->skip_step(); }, nullptr,
                          stage, found};
    if constexpr (named_optimizer<Optimizer>) {
        check.name = [](const void* self, std::size_t parameter) -> std::string_view {
            return static_cast<const Optimizer*>(self)->parameter_name(parameter);
        };
    }
    return check;
}

}}  // namespace mp::detail

#if MP_CORE_BODIES
namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

// More than one loop drives, so that no iteration allocates.
MP_CORE_FUNCTION iteration_record::iteration_record() {
    checks_.reserve(8);
}
MP_CORE_FUNCTION iteration_record::~iteration_record() = default;
MP_CORE_FUNCTION iteration_record::iteration_record(const iteration_record& other) = default;
MP_CORE_FUNCTION iteration_record::iteration_record(iteration_record&& other) noexcept = default;
MP_CORE_FUNCTION iteration_record& iteration_record::operator=(const iteration_record& other) = default;
MP_CORE_FUNCTION iteration_record& iteration_record::operator=(iteration_record&& other) noexcept = default;

MP_CORE_FUNCTION optimizer_check* iteration_record::find(const void* optimizer) noexcept {
    for (optimizer_check& check : checks_) {
        if (check.optimizer == optimizer) return &check;
    }
    return nullptr;
}

MP_CORE_FUNCTION void iteration_record::make_room() {
    if (checks_.size() == checks_.capacity()) checks_.reserve(2 * checks_.capacity() + 1);
}

MP_CORE_FUNCTION void iteration_record::add(const optimizer_check& check) noexcept {
    checks_.push_back(check);
}

MP_CORE_FUNCTION void iteration_record::require_agreed(std::string_view function) const {
    if (agreed_) return;
    throw_joined<state_error>({function,
                               ": the reducer threw, so the ranks do not agree on this iteration; call "
                               "abandon_iteration on all of them, and run the batch again or end"});
}

MP_CORE_FUNCTION void iteration_record::require_no_scope(std::string_view function) const {
    if (!scope_open_) return;
    throw_joined<state_error>(
        {function,
         ": a training_iteration of this scaler is open, and the scale must not change in it; "
         "its finish() calls update"});
}

MP_CORE_FUNCTION void iteration_record::begin_unscale(const void* optimizer) {
    require_agreed("mp::loss_scaler::unscale");
    if (const optimizer_check* check = find(optimizer)) {
        throw_error(
            state_error(check->reached == optimizer_stage::unscaled
                            ? "mp::loss_scaler::unscale: the gradients of this optimizer are already "
                              "unscaled; unscale them once between two calls of update"
                            : "mp::loss_scaler::unscale: this optimizer has already stepped since the "
                              "last update; unscale comes before step, and update ends the iteration"));
    }
    make_room();
}

MP_CORE_FUNCTION optimizer_check* iteration_record::begin_step(const void* optimizer) {
    require_agreed("mp::loss_scaler::step");
    optimizer_check* const check = find(optimizer);
    if (check == nullptr) {
        make_room();
    } else if (check->reached == optimizer_stage::stepped) {
        throw_error(state_error(
            "mp::loss_scaler::step: this optimizer has already stepped since the last update; call "
            "update once an iteration, after every optimizer has stepped"));
    }
    return check;
}

MP_CORE_FUNCTION void iteration_record::begin_update() const {
    require_no_scope("mp::loss_scaler::update");
    require_agreed("mp::loss_scaler::update");
    if (empty()) {
        throw_error(state_error(
            "mp::loss_scaler::update: no optimizer was unscaled or stepped since the last update, so "
            "there is nothing to judge the scale by"));
    }
}

MP_CORE_FUNCTION void iteration_record::open_scope() {
    if (scope_open_) {
        throw_error(
            state_error("mp::loss_scaler::open_iteration: another training_iteration of this scaler is open; "
                        "finish or abandon it first"));
    }
    if (!empty()) {
        throw_error(
            state_error("mp::loss_scaler::open_iteration: optimizers were unscaled or stepped since the last "
                        "update; call update or abandon_iteration first"));
    }
    require_agreed("mp::loss_scaler::open_iteration");
    scope_open_ = true;
}

MP_CORE_FUNCTION void iteration_record::agree(gradient_report& report) {
    if (!reducer_) return;
    agreed_ = false;
    std::array<std::uint64_t, 4> all{report.infinities, report.nans, report.checked, report.too_large};
    reducer_.sum(all);
    report.infinities_elsewhere = all[0] - report.infinities;
    report.nans_elsewhere = all[1] - report.nans;
    report.checked_elsewhere = all[2] - report.checked;
    report.too_large_elsewhere = all[3] - report.too_large;
    agreed_ = true;
}

MP_CORE_FUNCTION const gradient_report& iteration_record::add_unscaled(const optimizer_check& check) {
    add(check);
    agree(checks_.back().report);
    return checks_.back().report;
}

MP_CORE_FUNCTION bool iteration_record::add(std::size_t values, const non_finite_report& found,
                                            const scaler_rules& rules) {
    require_agreed("mp::loss_scaler::record");
    gradient_report report;
    report.add(0, values, found);
    agree(report);
    const bool applied = applies(report, rules);
    ++recordings_;
    recorded_ += report.observation();
    if (report.any_gradients()) {
        recorded_gradients_ = true;
        ++(applied ? recorded_applied_ : recorded_skipped_);
    }
    return applied;
}

MP_CORE_FUNCTION void iteration_record::replace_too_large(gradient_report& report,
                                                          const gradient_report& now) {
    report.too_large = now.too_large;
    report.too_large_elsewhere = now.too_large_elsewhere;
    report.first_parameter = now.too_large == 0 ? no_index : now.first_parameter;
    report.first_element = now.too_large == 0 ? no_index : now.first_element;
    agree(report);
}

MP_CORE_FUNCTION void iteration_record::observe(gradient_observation measured) noexcept {
    measured.infinities = 0;
    measured.nans = 0;
    measured_ += measured;
}

MP_CORE_FUNCTION bool iteration_record::any_gradients() const noexcept {
    return recorded_gradients_ || std::any_of(checks_.begin(), checks_.end(), [](const optimizer_check& it) {
               return it.report.any_gradients();
           });
}

MP_CORE_FUNCTION bool iteration_record::applies(const gradient_report& report, const scaler_rules& rules) {
    return report.any_gradients() && !rules.skips(rules.scaler, report.observation()) &&
           !report.exceeds_limit();
}

/// The name of the first parameter with a bad value; empty if there is none.
inline std::string_view name_of_parameter(const optimizer_check& check) {
    if (check.name == nullptr || check.report.first_parameter == no_index) return {};
    return check.name(check.optimizer, check.report.first_parameter);
}

MP_CORE_FUNCTION step_result iteration_record::describe(const optimizer_check& check, float scale,
                                                        const scaler_rules& rules) const {
    const gradient_report& report = check.report;
    step_result result;
    result.scale = scale;
    result.scale_after = scale;
    result.infinities = report.infinities;
    result.nans = report.nans;
    result.flushed = measured_.flushed;
    result.subnormals = measured_.subnormals;
    result.overflows = measured_.overflows;
    result.too_large = report.too_large;
    result.found_elsewhere = report.found_elsewhere() || report.too_large_elsewhere != 0;
    result.parameter_index = report.first_parameter;
    result.parameter_name = name_of_parameter(check);
    result.element_index = report.first_element;
    if (!report.any_gradients()) {
        result.status = step_status::no_gradients;
        return result;
    }
    gradient_observation seen = measured_;
    seen += recorded_;
    seen += report.observation();
    for (const optimizer_check& other : checks_) {
        if (other.optimizer != check.optimizer) seen += other.report.observation();
    }
    const scale_change next = rules.foresee(rules.scaler, seen);
    result.scale_after = next.after;
    if (applies(report, rules)) return result;
    const bool stuck = next.kind == scale_change_kind::failed ||
                       (next.kind == scale_change_kind::at_floor && !(next.after < next.before));
    result.status = !rules.skips(rules.scaler, report.observation()) ? step_status::skipped_too_large
                    : stuck                                          ? step_status::skipped_at_floor
                    : report.observation().infinities != 0           ? step_status::skipped_infinity
                                                                     : step_status::skipped_nan;
    return result;
}

/// What was measured, over all ranks.
MP_CORE_FUNCTION gradient_observation iteration_record::measured_on_all_ranks() {
    if (!reducer_) return measured_;
    const bool before = agreed_;
    agreed_ = false;
    std::array<std::uint64_t, 6> sums{measured_.values,     measured_.zeros,     measured_.flushed,
                                      measured_.subnormals, measured_.overflows, measured_.large};
    reducer_.sum(sums);
    // The order of doubles that are not negative is that of their bits.
    std::array<std::uint64_t, 1> largest{bit_cast<std::uint64_t>(measured_.largest)};
    (reducer_.max)(largest);
    agreed_ = before;
    return {measured_.infinities,        measured_.nans, sums[0], sums[1], sums[2], sums[3], sums[4], sums[5],
            bit_cast<double>(largest[0])};
}

MP_CORE_FUNCTION scale_event iteration_record::summary(const scaler_rules& rules) {
    scale_event event;
    event.iteration = iterations_;
    event.seen = measured_on_all_ranks();
    event.seen += recorded_;
    event.applied = recorded_applied_;
    event.skipped = recorded_skipped_;
    for (const optimizer_check& check : checks_) {
        const gradient_report& report = check.report;
        event.seen += report.observation();
        if (check.reached == optimizer_stage::stepped && report.any_gradients()) {
            ++(applies(report, rules) ? event.applied : event.skipped);
        }
        if (event.parameter == ~0ULL && report.first_parameter != no_index) {
            event.parameter = report.first_parameter;
            event.element = report.first_element;
            event.parameter_name = short_name(name_of_parameter(check));
        }
    }
    return event;
}

MP_CORE_FUNCTION void iteration_record::end_iteration() {
    for (const optimizer_check& check : checks_) {
        if (check.reached == optimizer_stage::unscaled) check.forget(check.optimizer);
    }
    clear();
}

MP_CORE_FUNCTION void iteration_record::end_iteration(const scale_event& event) {
    end_iteration();
    last_ = event;
    ++iterations_;
}

MP_CORE_FUNCTION void iteration_record::clear() noexcept {
    checks_.clear();
    measured_ = {};
    recorded_ = {};
    recordings_ = 0;
    recorded_applied_ = 0;
    recorded_skipped_ = 0;
    recorded_gradients_ = false;
    agreed_ = true;
}

[[noreturn]] MP_CORE_FUNCTION void throw_not_asked(std::string_view function, float scale) {
    throw_joined<state_error>({function, ": the scale is ", error_text(scale),
                               ", and nothing has asked for it; multiply the loss, or the gradient "
                               "that the backward pass begins with, by "
                               "scale(loss) or current_scale()"});
}

[[noreturn]] MP_CORE_FUNCTION void throw_refused(float scale, const gradient_observation& seen) {
    throw_joined<scale_error>({"mp::loss_scaler::update: the policy refuses to go on at scale ",
                               error_text(scale), ", with ", error_text(seen.infinities), " infinities and ",
                               error_text(seen.nans),
                               " NaNs in the gradients; look for what makes them, or set a scale with "
                               "update(new_scale)"});
}

}}  // namespace mp::detail
#endif
