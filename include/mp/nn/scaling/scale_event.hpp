// SPDX-License-Identifier: MIT
/// \file
/// What one iteration did, in one plain struct: for logs, listeners and devices.
#pragma once

#include <mp/config.hpp>
#include <mp/nn/scaling/policy.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// In the order of the enumeration.
inline constexpr std::array<std::string_view, 13> scale_change_names{
    "unchanged", "grown",    "growth_refused", "backed_off", "vanished", "replaced", "no_gradients",
    "absorbed",  "nan_kept", "at_floor",       "at_ceiling", "disabled", "failed"};
static_assert(static_cast<std::size_t>(scale_change_kind::failed) + 1 == scale_change_names.size());

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// The name of the enumerator, such as "backed_off". A value that is none of them gives "unknown".
[[nodiscard]] constexpr std::string_view to_string(scale_change_kind kind) noexcept {
    const auto index = static_cast<std::size_t>(kind);
    return index < detail::scale_change_names.size() ? detail::scale_change_names[index] : "unknown";
}

/// The kind with that name; nothing if there is none.
[[nodiscard]] constexpr std::optional<scale_change_kind> scale_change_kind_named(
    std::string_view name) noexcept {
    for (std::size_t i = 0; i < detail::scale_change_names.size(); ++i) {
        if (detail::scale_change_names[i] == name) return static_cast<scale_change_kind>(i);
    }
    return std::nullopt;
}

}}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The name in words, for sentences: "backed off".
inline std::string scale_change_words(scale_change_kind kind) {
    if (kind == scale_change_kind::nan_kept) return "kept in spite of NaN";
    std::string words(to_string(kind));
    for (char& c : words) {
        if (c == '_') c = ' ';
    }
    return words;
}

}}  // namespace mp::detail

namespace mp {

/// Text of up to 47 bytes in place; longer text keeps its end, which tells parameters apart. Device code can
/// copy it and look at its bytes; only the host makes one from a text.
class short_name {
public:
    static constexpr std::size_t capacity = 47;

    short_name() = default;
    constexpr explicit short_name(std::string_view text) noexcept {
        if (text.size() > capacity) text.remove_prefix(text.size() - capacity);
        for (std::size_t i = 0; i < text.size(); ++i) text_[i] = text[i];
        size_ = static_cast<unsigned char>(text.size());
    }
    [[nodiscard]] constexpr std::string_view view() const noexcept { return {text_, size_}; }
    /// The bytes, without a zero behind them.
    [[nodiscard]] MP_HOST_DEVICE constexpr const char* data() const noexcept { return text_; }
    [[nodiscard]] MP_HOST_DEVICE constexpr std::size_t size() const noexcept { return size_; }
    [[nodiscard]] MP_HOST_DEVICE constexpr bool empty() const noexcept { return size_ == 0; }

    friend constexpr bool operator==(const short_name&, const short_name&) = default;

private:
    char text_[capacity] = {};  // the functions of std::array are not for devices
    unsigned char size_ = 0;
};

/// One iteration of a loss scaler, from one update to the next.
struct scale_event {
    std::uint64_t iteration = 0;     ///< updates before this one
    scale_change change = {};        ///< the scale before and after, and why
    gradient_observation seen = {};  ///< what was found in all gradients
    std::uint32_t applied = 0;       ///< optimizers that stepped
    /// Optimizers that did not, because of infinities or NaNs; where `seen` has none, because of finite gradients
    /// that are too large, see step_status::skipped_too_large.
    std::uint32_t skipped = 0;
    std::uint64_t parameter = ~0ULL;  ///< the first parameter with a bad value, or all ones
    std::uint64_t element = ~0ULL;    ///< the first bad element in it, or all ones
    short_name parameter_name = {};   ///< its name, if it has one

    friend constexpr bool operator==(const scale_event&, const scale_event&) = default;
};
static_assert(std::is_trivially_copyable_v<scale_event>);

namespace detail { inline namespace MP_ISA_NAMESPACE {

/// Something that takes events, by reference; may be empty.
class listener_reference {
public:
    listener_reference() = default;
    template <class Listener>
    explicit listener_reference(Listener& listener)
        : listener_(&listener),
          call_([](void* it, const scale_event& event) { (*static_cast<Listener*>(it))(event); }) {}

    explicit operator bool() const noexcept { return listener_ != nullptr; }
    void operator()(const scale_event& event) const { call_(listener_, event); }

private:
    void* listener_ = nullptr;
    void (*call_)(void*, const scale_event&) = nullptr;
};

}}  // namespace detail
}  // namespace mp
