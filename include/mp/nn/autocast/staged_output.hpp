// SPDX-License-Identifier: MIT
/// \file
/// Outputs of an op: cast back to the type of the caller, or added to what is there.
#pragma once

#include <mp/arrays/array/staging_buffer.hpp>
#include <mp/nn/autocast/adaptation.hpp>
#include <mp/nn/autocast/operand.hpp>

#include <concepts>
#include <cstddef>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

template <class Target, class Quantised, class Observer, class Executor, class View, bool ReadsOldValues>
class argument_adaptor<adaptation::unwrap, Target, Quantised, Observer, Executor,
                       autocast::output_operand<View, ReadsOldValues>> {
    using operand = autocast::output_operand<View, ReadsOldValues>;

public:
    constexpr argument_adaptor(const Executor& exec, const Observer& observer, std::size_t index,
                               const operand& output)
        : exec_(exec), observer_(observer), index_(index), output_(output) {
        if constexpr (ReadsOldValues) report_read(observer, index, exec, output.view);
    }
    constexpr auto get() const { return output_.view; }
    constexpr void finish() const {
        look_at(observer_, index_, exec_, output_.view, autocast::value_origin::kernel);
    }

private:
    const Executor& exec_;
    const Observer& observer_;
    std::size_t index_;
    const operand& output_;
};

template <class Target, class Quantised, class Observer, class Executor, class View, bool ReadsOldValues>
class argument_adaptor<adaptation::stage_output, Target, Quantised, Observer, Executor,
                       autocast::output_operand<View, ReadsOldValues>> {
    using traits = operand_of<View>;
    using element = typename traits::element;

public:
    argument_adaptor(const Executor& exec, const Observer& observer, std::size_t index,
                     const autocast::output_operand<View, ReadsOldValues>& output)
        : exec_(exec),
          observer_(observer),
          index_(index),
          view_(output.view),
          buffer_(exec, traits::size(output.view)) {
        if constexpr (ReadsOldValues) {
            watched_copy(autocast::cast_direction::input, traits::as_input(view_), get());
            report_input<void>(observer, index, exec, view_, buffer_.elements());
        }
    }
    auto get() const { return traits::template dense<Target>(buffer_.data(), view_); }
    void finish() const {
        watched_copy(autocast::cast_direction::output,
                     traits::template dense<const Target>(buffer_.data(), view_), view_);
        if constexpr (Observer::enabled) {
            if (!observer_.records()) return;
            report_cast<Target, element>(observer_, index_, autocast::cast_direction::output,
                                         floats_on_host(exec_, buffer_.elements()).elements(),
                                         observed_copy(exec_, view_).elements());
        }
    }

private:
    template <class From, class To>
    void watched_copy(autocast::cast_direction direction, const From& from, const To& to) const {
        const typename Observer::watched_cast watched(observer_, index_, direction, traits::size(view_));
        traits::copy(exec_, from, to);
    }

    const Executor& exec_;
    const Observer& observer_;
    std::size_t index_;
    View view_;
    staging_buffer<Target> buffer_;
};

/// A sum that the kernel adds to.
template <class Target, class Quantised, class Observer, class Executor, class View>
class argument_adaptor<adaptation::add_in_kernel, Target, Quantised, Observer, Executor,
                       autocast::sum_operand<View>> {
public:
    constexpr argument_adaptor(const Executor& exec, const Observer& observer, std::size_t index,
                               const autocast::sum_operand<View>& sum)
        : exec_(exec), observer_(observer), index_(index), sum_(sum) {}
    constexpr const autocast::sum_operand<View>& get() const { return sum_; }
    constexpr void finish() const {
        look_at(observer_, index_, exec_, sum_.view, autocast::value_origin::kernel);
    }

private:
    const Executor& exec_;
    const Observer& observer_;
    std::size_t index_;
    const autocast::sum_operand<View>& sum_;
};

/// A sum that the kernel knows nothing of: it writes elements of type Target elsewhere, or to the sum where
/// that is of this type and nothing is to be added.
template <class Target, class Quantised, class Observer, class Executor, class View>
class argument_adaptor<adaptation::add, Target, Quantised, Observer, Executor, autocast::sum_operand<View>> {
    using traits = operand_of<View>;
    static constexpr bool same_type = std::same_as<Target, typename traits::element>;

public:
    argument_adaptor(const Executor& exec, const Observer& observer, std::size_t index,
                     const autocast::sum_operand<View>& sum)
        : exec_(exec), observer_(observer), index_(index), sum_(sum) {
        if (!same_type || sum.adds) buffer_ = staging_buffer<Target>(exec, traits::size(sum.view));
    }
    auto get() const {
        if constexpr (same_type) {
            if (!sum_.adds) return sum_.view;
        }
        return traits::template dense<Target>(buffer_.data(), sum_.view);
    }
    void finish() const {
        const auto result = traits::template dense<const Target>(buffer_.data(), sum_.view);
        if (sum_.adds) {
            traits::add(exec_, result, sum_.view);
        } else if constexpr (!same_type) {
            const typename Observer::watched_cast watched(observer_, index_, autocast::cast_direction::output,
                                                          traits::size(sum_.view));
            traits::copy(exec_, result, sum_.view);
        }
        look_at(observer_, index_, exec_, sum_.view, autocast::value_origin::kernel);
    }

private:
    const Executor& exec_;
    const Observer& observer_;
    std::size_t index_;
    const autocast::sum_operand<View>& sum_;
    staging_buffer<Target> buffer_;
};

}}  // namespace mp::detail
