// SPDX-License-Identifier: MIT
/// \file
/// Delayed scaling of 8-bit tensors: the scale of this iteration follows from the largest magnitudes that a
/// window of earlier iterations has seen, so that a tensor is measured and converted in one pass.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/config.hpp>
#include <mp/error.hpp>
#include <mp/nn/scaling/scale_checks.hpp>
#include <mp/numbers/format/basic_float.hpp>
#include <mp/numbers/format/convert_scalar.hpp>
#include <mp/numbers/format/exact_arithmetic.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/format/named_formats.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// The largest finite number of a format as a float: 448 for float8_e4m3fn, 57344 for float8_e5m2.
template <reduced Number>
inline constexpr float largest_finite =
    detail::to_float<typename Number::format>(layout_of<typename Number::format>::max_finite_code);

}}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Throws unless `value` can be the largest number of a format.
constexpr void require_format_max(std::string_view function, float value) {
    if (is_non_finite(value) || !(value >= 1.0F)) {
        throw_argument(function, "format_max", value, "must be finite and at least 1");
    }
}

/// Throws unless a scale is finite and greater than 0. Looks at bits, for a processor that flushes subnormal
/// numbers says that none is greater than 0.
constexpr void require_tensor_scale(std::string_view function, std::string_view argument, float scale) {
    const auto bits = bit_cast<std::uint32_t>(scale);
    if (bits == 0 || bits >= 0x7f800000U) {
        throw_argument(function, argument, scale, "must be finite and greater than 0");
    }
}

/// numerator / amax rounded once to nearest even, and the largest float where that is too large. By integers,
/// so that a compiler that may multiply by the inverse instead (-ffast-math) gives the same bits, and
/// subnormal numbers count whatever the environment flushes. Both are finite and greater than 0.
MP_HOST_DEVICE constexpr float quotient_as_scale(float numerator, float amax) {
    using single = formats::binary32;
    return bit_cast<float>(divide_bits<single>(bit_cast<std::uint32_t>(numerator),
                                               bit_cast<std::uint32_t>(amax),
                                               projection{rounding::nearest_even, saturation::finite}));
}

/// The bits of the larger of two magnitudes, the first as bits; NaN is left out.
MP_HOST_DEVICE constexpr std::uint32_t larger_amax(std::uint32_t largest, float amax) {
    const auto bits = bit_cast<std::uint32_t>(amax);
    return bits > largest && bits <= 0x7f800000U ? bits : largest;
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Choice of the amax in the window.
enum class amax_algorithm : unsigned char {
    max,         ///< the largest of the window, NaNs left out; the one about to fall out still counts
    most_recent  ///< the newest
};

/// How a delayed scale follows from an amax.
enum class delayed_rule : unsigned char {
    /// (format_max * 2^-margin) / amax, rounded once to float; the largest float where that is infinite.
    /// Without a newest amax (it is 0: the module did not run) nothing changes. An infinite or NaN amax
    /// enters the window like any other, and the scale stays as long as the algorithm picks it.
    transformer_engine,
    /// 2^(floor(log2(format_max / amax)) - margin), within 2^-126 and 2^127; 2^127 where the quotient is not
    /// a finite float. An infinite or NaN newest amax enters the window as 0, so that the scale follows from
    /// the rest of it, and warming up begins anew. An amax of 0 enters as well.
    ms_amp
};

/// Result of an update of a delayed scale.
enum class amax_update_kind : unsigned char {
    scaled,      ///< the scale follows from an amax of the window; it may be the same as before
    unused,      ///< the newest amax is 0: the module did not run, and nothing changed
    zero,        ///< the amax that was picked is 0, and the scale stays
    non_finite,  ///< the amax that decides is infinite or NaN, and the scale stays; for ms_amp the newest is,
                 ///< and the scale follows from the rest of the window
};

/// The outcome of an update.
struct amax_update {
    float before = 1.0F;  ///< the scale of this iteration
    float after = 1.0F;   ///< the scale of the next one
    float amax = 0.0F;    ///< the amax that decided
    amax_update_kind kind = amax_update_kind::scaled;

    friend constexpr bool operator==(const amax_update&, const amax_update&) = default;
};

/// The amax values of a window, as a user's algorithm sees them: [0] is the newest, [1] the oldest, and the
/// last one the second newest.
struct amax_window {
    const float* data = nullptr;
    std::int32_t length = 0;

    [[nodiscard]] MP_HOST_DEVICE constexpr float operator[](std::int32_t i) const { return data[i]; }
    [[nodiscard]] MP_HOST_DEVICE constexpr std::int32_t size() const { return length; }
    [[nodiscard]] MP_HOST_DEVICE constexpr const float* begin() const { return data; }
    [[nodiscard]] MP_HOST_DEVICE constexpr const float* end() const { return data + length; }
};

/// The state of one delayed scale wherever it lies: in a fixed_amax_history, an amax_history, or in arrays
/// of a device that hold those of many tensors. Refers; does not own.
struct amax_history_view {
    float* history = nullptr;  ///< `length` values; slot 0 collects the newest amax
    std::int32_t length = 0;   ///< at least 1
    float* scale = nullptr;
    std::int32_t* updates = nullptr;  ///< updates since the start, or since the last non-finite amax

    /// Takes the amax of a tensor into slot 0, where the largest of an iteration is kept: modules that run
    /// several times in an iteration record each time. Signs are dropped; an infinity or a NaN stays.
    MP_HOST_DEVICE constexpr void record(float amax) const {
        // Floats without sign order like their bits, and NaN is above infinity.
        const std::uint32_t magnitude = detail::bit_cast<std::uint32_t>(amax) & 0x7fffffffU;
        if (magnitude > detail::bit_cast<std::uint32_t>(history[0])) {
            history[0] = detail::bit_cast<float>(magnitude);
        }
    }
};

/// How a delayed scale moves. Values are to be multiplied by the scale before they are converted.
///
/// An update looks at slot 0, the newest amax (to be reduced over ranks before, see reduce_amax), picks an
/// amax, rolls the window so that the newest becomes the last and slot 0 is 0 again, and sets the scale for
/// the next iteration. A length of 1 remembers nothing else than the newest.
///
/// Sources: transformer_engine/common/recipe/delayed_scaling.cu, the update of many tensors at once, and
/// msamp/common/tensor/meta.py with _update_scaling_factors of msamp/optim/optimizer.py at commit 9746ea85 (its
/// first versions kept the scale after an amax that is not finite). There log2 is rounded to float, so
/// that a quotient a few units in the last place below a power of two can have that power's logarithm; here
/// the logarithm is exact.
///
///     constexpr mp::delayed_scaling policy{.format_max = mp::largest_finite<mp::float8_e5m2>, .margin = 1};
///     mp::amax_history history;                                        // 1024 iterations
///     history.record(mp::amax(mp::cpu{}, gradients));
///     mp::quantize_with_scale(mp::cpu{}, gradients, codes, history.scale());
///     history.update(policy);                                          // once an iteration
struct delayed_scaling {
    float format_max = 448.0F;  ///< the largest number of the format; finite, at least 1. 448 is E4M3's
    std::int32_t margin = 0;    ///< the scale is lowered by 2^margin; in [0, 64]
    amax_algorithm algorithm = amax_algorithm::max;
    delayed_rule rule = delayed_rule::transformer_engine;

    friend constexpr bool operator==(const delayed_scaling&, const delayed_scaling&) = default;

    /// Throws mp::argument_error, naming parameter and value, if one makes no sense.
    constexpr void validate() const {
        constexpr std::string_view function = "mp::delayed_scaling";
        detail::require_format_max(function, format_max);
        if (margin < 0 || margin > 64) {
            detail::throw_argument(function, "margin", margin, "must be at least 0 and at most 64");
        }
    }
    /// Throws mp::argument_error unless the state is one that a run can continue from.
    constexpr void validate(const amax_history_view& state) const {
        constexpr std::string_view function = "mp::delayed_scaling";
        detail::require_counter(function, "state.length", state.length, 1);
        detail::require_tensor_scale(function, "state.scale", *state.scale);
        detail::require_counter(function, "state.updates", *state.updates, 0);
        for (std::int32_t i = 0; i < state.length; ++i) {
            if ((detail::bit_cast<std::uint32_t>(state.history[i]) >> 31) != 0) {
                detail::throw_argument(function, "state.history[" + detail::error_text(i) + "]",
                                       state.history[i], "must not be negative");
            }
        }
    }

    /// The scale that follows from an amax, or `kept` if the amax is not finite and greater than 0.
    [[nodiscard]] MP_HOST_DEVICE constexpr float scale_for(float amax, float kept) const {
        if (detail::is_non_finite(amax) || (detail::bit_cast<std::uint32_t>(amax) << 1) == 0) return kept;
        if (rule == delayed_rule::ms_amp) return power_of_two_scale(amax);
        return detail::quotient_as_scale(format_max * detail::power_of_two<float>(-margin), amax);
    }

    /// One iteration by an algorithm of the user's, a function from an amax_window to the amax that decides:
    /// to be MP_HOST_DEVICE if a device runs it. `state` must be valid.
    MP_ANY_EXECUTION_SPACE
    template <class Algorithm>
    MP_HOST_DEVICE constexpr amax_update update(const amax_history_view& state,
                                                const Algorithm& choose) const {
        const float before = *state.scale;
        const bool filters = rule == delayed_rule::ms_amp;
        const float newest = state.history[0];
        if (!filters && detail::bit_cast<std::uint32_t>(newest) == 0) {
            return {before, before, newest, amax_update_kind::unused};
        }
        const bool bad = detail::is_non_finite(newest);
        if (bad && filters) state.history[0] = 0.0F;
        const auto decides = static_cast<float>(choose(amax_window{state.history, state.length}));
        roll(state);
        count(*state.updates, bad);
        *state.scale = scale_for(decides, before);
        const bool zero = (detail::bit_cast<std::uint32_t>(decides) << 1) == 0;
        return {before, *state.scale, decides,
                (bad && filters) || detail::is_non_finite(decides) ? amax_update_kind::non_finite
                : zero                                             ? amax_update_kind::zero
                                                                   : amax_update_kind::scaled};
    }

    /// One iteration. `state` must be valid.
    MP_HOST_DEVICE constexpr amax_update update(const amax_history_view& state) const {
        return update(state, picks_by_algorithm{algorithm});
    }

    template <class Self, class Visitor>
    static constexpr void visit(Self& self, Visitor&& visitor) {
        visitor("format_max", self.format_max);
        visitor("margin", self.margin);
        visitor("amax_algorithm", self.algorithm);
        visitor("delayed_rule", self.rule);
    }

private:
    struct picks_by_algorithm {
        amax_algorithm algorithm;

        MP_HOST_DEVICE constexpr float operator()(const amax_window& window) const {
            if (algorithm == amax_algorithm::most_recent) return window[0];
            std::uint32_t largest = 0;
            for (const float amax : window) largest = detail::larger_amax(largest, amax);
            return detail::bit_cast<float>(largest);
        }
    };

    /// The newest becomes the last, the oldest in slot 1 is lost, and slot 0 is free.
    MP_HOST_DEVICE static constexpr void roll(const amax_history_view& state) {
        const float newest = state.history[0];
        for (std::int32_t i = 1; i < state.length - 1; ++i) state.history[i] = state.history[i + 1];
        if (state.length > 1) state.history[state.length - 1] = newest;
        state.history[0] = 0.0F;
    }
    MP_HOST_DEVICE static constexpr void count(std::int32_t& updates, bool bad) {
        updates = bad ? 0 : updates + (updates < detail::largest_tracker ? 1 : 0);
    }
    MP_HOST_DEVICE constexpr float power_of_two_scale(float amax) const {
        // The exponent field of the quotient is the floor of its logarithm. A subnormal quotient, of an amax
        // near the largest float, has the field 0, and the limit below is the answer; an infinite one stays
        // so whatever is subtracted.
        using single = formats::binary32;
        const auto quotient = detail::divide_bits<single>(
            detail::bit_cast<std::uint32_t>(format_max), detail::bit_cast<std::uint32_t>(amax), projection{});
        const int field = static_cast<int>(quotient >> 23);
        const int exponent = field == 255 ? 127 : field - 127 - margin;
        return detail::power_of_two<float>(exponent < -126 ? -126 : exponent > 127 ? 127 : exponent);
    }
};

}}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Calls visitor(name, member) for everything in a delayed state. The names of the window's values are
/// amax_history_0, amax_history_1 ...; their text lives as long as the call.
template <class Scale, class Updates, class Value, class Visitor>
constexpr void visit_history(Scale& scale, Updates& updates, Value* history, std::int32_t length,
                             Visitor&& visitor) {
    visitor("scale", scale);
    visitor("updates", updates);
    constexpr std::string_view prefix = "amax_history_";
    for (std::int32_t i = 0; i < length; ++i) {
        char text[prefix.size() + 10] = {};
        for (std::size_t k = 0; k < prefix.size(); ++k) text[k] = prefix[k];
        std::size_t digits = 1;
        for (std::int32_t rest = i; rest >= 10; rest /= 10) ++digits;
        std::int32_t rest = i;
        for (std::size_t k = digits; k-- > 0; rest /= 10) {
            text[prefix.size() + k] = static_cast<char>('0' + rest % 10);
        }
        visitor(std::string_view(text, prefix.size() + digits), history[i]);
    }
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// The state of a delayed scale with a window of constant length: trivially copyable, so that an array of
/// them can live in device memory, where a kernel calls policy.update(state.view()).
///
/// \tparam Length  iterations of the window, at least 1
template <std::int32_t Length = 1024>
struct fixed_amax_history {
    static_assert(Length >= 1, "mp::fixed_amax_history: an amax history has a length of at least 1");

    float scale = 1.0F;        ///< what values are multiplied by before they are converted
    std::int32_t updates = 0;  ///< updates since the start, or since the last non-finite amax
    float history[std::size_t{Length}] = {};

    friend constexpr bool operator==(const fixed_amax_history&, const fixed_amax_history&) = default;

    [[nodiscard]] MP_HOST_DEVICE constexpr amax_history_view view() {
        return {history, Length, &scale, &updates};
    }
    /// As amax_history: record() in an iteration, update() at its end.
    MP_HOST_DEVICE constexpr void record(float amax) { view().record(amax); }
    MP_HOST_DEVICE constexpr amax_update update(const delayed_scaling& policy) {
        return policy.update(view());
    }
    /// True until the window is full of finite amax values. MS-AMP's "in-time" scaling: as long as this
    /// holds, and always with a length of 1, it scales each tensor by its own amax (policy.scale_for).
    [[nodiscard]] MP_HOST_DEVICE constexpr bool warming_up() const { return updates < Length; }

    template <class Self, class Visitor>
    static constexpr void visit(Self& self, Visitor&& visitor) {
        detail::visit_history(self.scale, self.updates, self.history, Length, visitor);
    }
    /// For mp::save_checkpoint and mp::load_checkpoint.
    template <class Visitor>
    void visit_state(Visitor& visitor) {
        visitor("scale", scale);
        visitor("updates", updates);
        visitor("window", history);
    }
};

/// The same with a length that is known at run time only. Allocates when it is constructed and copied, and
/// not after. Not safe to be changed by several threads at once.
class amax_history {
public:
    /// \throws argument_error  the length is less than 1, or the scale not finite and greater than 0
    explicit amax_history(std::int32_t length = 1024, float initial_scale = 1.0F)
        : history_(checked_length(length)), scale_(initial_scale) {
        detail::require_tensor_scale("mp::amax_history", "initial_scale", initial_scale);
    }
    // A history has a window at all times, also one that was moved from.
    amax_history(const amax_history&) = default;
    amax_history& operator=(const amax_history&) = default;
    ~amax_history() = default;

    [[nodiscard]] float scale() const noexcept { return scale_; }
    [[nodiscard]] std::int32_t length() const noexcept { return static_cast<std::int32_t>(history_.size()); }
    /// The newest amax: what this rank has recorded, to be reduced over ranks before the update.
    [[nodiscard]] float& newest() noexcept { return history_.front(); }
    [[nodiscard]] amax_window window() const noexcept { return {history_.data(), length()}; }
    [[nodiscard]] amax_history_view view() noexcept {
        return {history_.data(), length(), &scale_, &updates_};
    }
    [[nodiscard]] bool warming_up() const noexcept { return updates_ < length(); }

    /// record() takes the largest magnitude of this iteration along, once or often; update() finds the scale of the next one,
    /// by the policy's algorithm or by `choose`.
    void record(float amax) noexcept { view().record(amax); }
    amax_update update(const delayed_scaling& policy) { return policy.update(view()); }
    template <class Algorithm>
    amax_update update(const delayed_scaling& policy, const Algorithm& choose) {
        return policy.update(view(), choose);
    }
    /// Forgets the window, for example because new weights were loaded; the scale becomes `scale`.
    ///
    /// \throws argument_error  the scale is not finite and greater than 0
    void reset(float scale = 1.0F) {
        detail::require_tensor_scale("mp::amax_history::reset", "scale", scale);
        for (float& amax : history_) amax = 0.0F;
        scale_ = scale;
        updates_ = 0;
    }

    friend bool operator==(const amax_history&, const amax_history&) = default;

    template <class Self, class Visitor>
    static void visit(Self& self, Visitor&& visitor) {
        detail::visit_history(self.scale_, self.updates_, self.history_.data(), self.length(), visitor);
    }

    /// For mp::save_checkpoint and mp::load_checkpoint.
    template <class Visitor>
    void visit_state(Visitor& visitor) {
        visitor("scale", scale_);
        visitor("updates", updates_);
        visitor("window", history_);
    }

private:
    static std::size_t checked_length(std::int32_t length) {
        detail::require_counter("mp::amax_history", "length", length, 1);
        return static_cast<std::size_t>(length);
    }

    std::vector<float> history_;
    float scale_ = 1.0F;
    std::int32_t updates_ = 0;
};

}}  // namespace mp

namespace mp {

/// The scaling state of one tensor in device memory: the scale and update count of an amax_history, without its
/// window, and the amax and scale of the last quantization. The host makes it and may copy it back; in between nothing but kernels looks
/// at it, so that steps wait for nothing and can be captured.
struct device_tensor_scale {
    /// Parts of a tensor that are measured side by side.
    static constexpr int most_parts = 256;

    float scale = 1.0F;  ///< of delayed scaling: the one of this iteration
    std::int32_t updates =
        0;              ///< of delayed scaling: see amax_history_view; 0 where there is nothing to go by
    float used = 1.0F;  ///< codes are values times this
    std::uint32_t amax_bits = 0;  ///< of the largest magnitude of the tensor that they were made of
    float product_factor = 1.0F;  ///< what a product whose first operand this is has been multiplied by
    std::uint32_t parts[most_parts] = {};  ///< largest magnitudes of parts, while a tensor is measured
};

/// A delayed scale with its window and its policy, all in one: what update_scales and record_amax take a list of.
struct device_amax_history {
    device_tensor_scale* scale = nullptr;  ///< in device memory
    float* window = nullptr;               ///< `length` floats in device memory; [0] collects the newest amax
    std::int32_t length = 0;               ///< at least 1
    delayed_scaling policy = {};
};

}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// What a product of codes is multiplied by: 1 / (a b), rounded to double and then to float.
MP_HOST_DEVICE inline float inverse_of_scales(float a, float b) {
    return float_from_double(double_divide(1.0, double_multiply(double_from_float(a), double_from_float(b))));
}

}}  // namespace mp::detail
