// SPDX-License-Identifier: MIT
/// \file
/// A number that runs an algorithm twice: in double, and in a format of the run beside it.
#pragma once

#include <mp/arrays/analysis/error_histogram.hpp>
#include <mp/arrays/analysis/runtime_arithmetic.hpp>

#include <cmath>
#include <compare>
#include <cstdint>
#include <string>

namespace mp { inline namespace MP_ISA_NAMESPACE {

template <class Reference>
class tracked;

/// What the numbers of an algorithm share: the format that they are rounded to, and the errors that were seen. It has to
/// outlive them, and belongs to one thread.
///
///     mp::error_tracker tracker({.precision = 8, .emin = -126, .emax = 127});
///     mp::tracked<double> sum = tracker(0.0);
///     for (double x : values) sum += tracker(x) * 0.1;
///     double wrong_by = sum.relative_error();
///     std::puts(to_string(tracker).c_str());
class error_tracker {
public:
    /// \throws argument_error  as runtime_arithmetic
    explicit error_tracker(const runtime_format& format, std::uint64_t seed = 0)
        : arithmetic_(format), seed_(seed), is_random_(detail::is_stochastic(format.round)) {}

    /// A number of the algorithm; what it loses by being rounded is not counted as the error of an operation.
    [[nodiscard]] tracked<double> operator()(double x);

    [[nodiscard]] const runtime_arithmetic& arithmetic() const noexcept { return arithmetic_; }
    /// Of every result of an operation against that in double: |value - reference| / |reference|.
    [[nodiscard]] const error_histogram& relative_errors() const noexcept { return errors_; }
    [[nodiscard]] std::uint64_t operations() const noexcept { return errors_.count(); }
    /// Results that are infinite, zero, or NaN, where the reference is not.
    [[nodiscard]] std::uint64_t overflows() const noexcept { return overflows_; }
    [[nodiscard]] std::uint64_t underflows() const noexcept { return underflows_; }
    [[nodiscard]] std::uint64_t nans() const noexcept { return nans_; }
    void reset() {
        errors_ = {};
        overflows_ = underflows_ = nans_ = 0;
    }

    /// The random bits of the next operation; 0 unless the format rounds by them.
    std::uint32_t next_random() noexcept { return is_random_ ? random_bits(seed_, drawn_++) : 0; }
    void record(double value, double reference) {
        const auto magnitude = [](double x) { return detail::bit_cast<std::uint64_t>(x) << 1; };
        constexpr std::uint64_t infinity = std::uint64_t{0x7ff} << 53;
        if (magnitude(reference) < infinity) {
            overflows_ += magnitude(value) == infinity ? 1U : 0U;
            nans_ += magnitude(value) > infinity ? 1U : 0U;
            underflows_ += magnitude(value) == 0 && magnitude(reference) != 0 ? 1U : 0U;
        }
        errors_.add(relative_error(value, reference));
    }
    /// 0 where both are the same, infinite where the reference is zero or not finite and they are not.
    [[nodiscard]] static double relative_error(double value, double reference) noexcept {
        const std::uint64_t a = detail::bit_cast<std::uint64_t>(value);
        const std::uint64_t b = detail::bit_cast<std::uint64_t>(reference);
        constexpr std::uint64_t infinity = std::uint64_t{0x7ff} << 53;
        const bool both_nan = (a << 1) > infinity && (b << 1) > infinity;
        if (a == b || both_nan || ((a | b) << 1) == 0) return 0;
        if ((b << 1) == 0 || (b << 1) >= infinity || (a << 1) >= infinity)
            return detail::bit_cast<double>(infinity >> 1);
        return std::abs(detail::double_divide(detail::double_subtract(value, reference), reference));
    }

private:
    runtime_arithmetic arithmetic_;
    error_histogram errors_;
    std::uint64_t seed_;
    std::uint64_t drawn_ = 0;
    std::uint64_t overflows_ = 0;
    std::uint64_t underflows_ = 0;
    std::uint64_t nans_ = 0;
    bool is_random_;
};

/// A double and beside it the number that the same operations give in the format of a tracker. Takes the place of double in
/// templates: constants that are mixed in are rounded to the format first, comparisons look at the rounded number, as the
/// program in that format would.
template <>
class tracked<double> {
public:
    tracked() = default;
    /// A constant. It has no tracker, and is the same in both.
    tracked(double constant) noexcept
        : value_(constant), reference_(constant) {}  // NOLINT(google-explicit-constructor)
    tracked(double value, double reference, error_tracker* tracker) noexcept
        : value_(value), reference_(reference), tracker_(tracker) {}

    [[nodiscard]] double value() const noexcept { return value_; }
    [[nodiscard]] double reference() const noexcept { return reference_; }
    [[nodiscard]] error_tracker* tracker() const noexcept { return tracker_; }
    [[nodiscard]] double relative_error() const noexcept {
        return error_tracker::relative_error(value_, reference_);
    }
    [[nodiscard]] explicit operator double() const noexcept { return value_; }

    friend tracked operator+(const tracked& a, const tracked& b) {
        return binary(a, b, &runtime_arithmetic::add,
                      [](double x, double y) { return detail::double_add(x, y); });
    }
    friend tracked operator-(const tracked& a, const tracked& b) {
        return binary(a, b, &runtime_arithmetic::subtract,
                      [](double x, double y) { return detail::double_subtract(x, y); });
    }
    friend tracked operator*(const tracked& a, const tracked& b) {
        return binary(a, b, &runtime_arithmetic::multiply,
                      [](double x, double y) { return detail::double_multiply(x, y); });
    }
    friend tracked operator/(const tracked& a, const tracked& b) {
        return binary(a, b, &runtime_arithmetic::divide,
                      [](double x, double y) { return detail::double_divide(x, y); });
    }
    friend tracked operator-(const tracked& a) noexcept { return {-a.value_, -a.reference_, a.tracker_}; }
    friend tracked operator+(const tracked& a) noexcept { return a; }
    tracked& operator+=(const tracked& other) { return *this = *this + other; }
    tracked& operator-=(const tracked& other) { return *this = *this - other; }
    tracked& operator*=(const tracked& other) { return *this = *this * other; }
    tracked& operator/=(const tracked& other) { return *this = *this / other; }

    friend bool operator==(const tracked& a, const tracked& b) noexcept {
        return (a <=> b) == std::partial_ordering::equivalent;
    }
    friend std::partial_ordering operator<=>(const tracked& a, const tracked& b) noexcept {
        return a.value_ <=> b.value_;
    }

    friend tracked abs(const tracked& x) noexcept {
        return {std::abs(x.value_), std::abs(x.reference_), x.tracker_};
    }
    friend tracked fabs(const tracked& x) noexcept { return abs(x); }
    friend tracked sqrt(const tracked& x) {
        const double reference = detail::double_sqrt(x.reference_);
        if (x.tracker_ == nullptr) return {reference, reference, nullptr};
        return x.recorded(x.tracker_->arithmetic().sqrt(x.value_, x.tracker_->next_random()), reference);
    }
    /// a b + c, rounded once.
    friend tracked fma(const tracked& a, const tracked& b, const tracked& c) {
        error_tracker* const tracker = a.tracker_ != nullptr   ? a.tracker_
                                       : b.tracker_ != nullptr ? b.tracker_
                                                               : c.tracker_;
        const double reference = std::fma(a.reference_, b.reference_, c.reference_);
        if (tracker == nullptr) return {reference, reference, nullptr};
        const double value = tracker->arithmetic().fma(a.operand(*tracker), b.operand(*tracker),
                                                       c.operand(*tracker), tracker->next_random());
        return tracked(0.0, 0.0, tracker).recorded(value, reference);
    }
    /// Any other function, of the C library for example: its double of the value, rounded to the format. That is rounding
    /// twice, which shows only within 2^-53 of a place where the direction changes.
    template <class Function>
    [[nodiscard]] tracked mapped(Function function) const {
        const double reference = function(reference_);
        if (tracker_ == nullptr) return {reference, reference, nullptr};
        return recorded(tracker_->arithmetic().round(function(value_), tracker_->next_random()), reference);
    }
    friend tracked exp(const tracked& x) {
        return x.mapped([](double it) { return std::exp(it); });
    }
    friend tracked log(const tracked& x) {
        return x.mapped([](double it) { return std::log(it); });
    }
    friend tracked sin(const tracked& x) {
        return x.mapped([](double it) { return std::sin(it); });
    }
    friend tracked cos(const tracked& x) {
        return x.mapped([](double it) { return std::cos(it); });
    }
    friend tracked tanh(const tracked& x) {
        return x.mapped([](double it) { return std::tanh(it); });
    }

private:
    /// As a number of the tracker's format; a constant is rounded to it.
    [[nodiscard]] double operand(error_tracker& tracker) const {
        return tracker_ != nullptr ? value_ : tracker.arithmetic().round(value_, tracker.next_random());
    }
    [[nodiscard]] tracked recorded(double value, double reference) const {
        tracker_->record(value, reference);
        return {value, reference, tracker_};
    }
    using operation = double (runtime_arithmetic::*)(double, double, std::uint32_t) const noexcept;
    // No pointer to the function in double: it is inlined always, which compilers refuse for an indirect call.
    template <class InDouble>
    static tracked binary(const tracked& a, const tracked& b, operation in_format, InDouble in_double) {
        const double reference = in_double(a.reference_, b.reference_);
        error_tracker* const tracker = a.tracker_ != nullptr ? a.tracker_ : b.tracker_;
        if (tracker == nullptr) return {in_double(a.value_, b.value_), reference, nullptr};
        const double x = a.operand(*tracker);
        const double y = b.operand(*tracker);
        const double value = (tracker->arithmetic().*in_format)(x, y, tracker->next_random());
        tracker->record(value, reference);
        return {value, reference, tracker};
    }

    double value_ = 0;
    double reference_ = 0;
    error_tracker* tracker_ = nullptr;
};

inline tracked<double> error_tracker::operator()(double x) {
    return {arithmetic_.round(x, next_random()), x, this};
}

/// Counts and quantiles in a line.
[[nodiscard]] inline std::string to_string(const error_tracker& tracker) {
    return detail::error_text(tracker.operations()) + " operations, " +
           detail::error_text(tracker.overflows()) + " overflows, " +
           detail::error_text(tracker.underflows()) + " underflows, " + detail::error_text(tracker.nans()) +
           " NaN; relative errors: " + to_string(tracker.relative_errors());
}

}}  // namespace mp
