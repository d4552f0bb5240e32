// SPDX-License-Identifier: MIT
/// \file
/// Autocast at run time: a region of code, on one thread, in which ops run in a low precision.
#pragma once

#include <mp/error.hpp>

#include <cstdlib>
#include <string>
#include <string_view>

namespace mp {

/// The precision of an autocast region.
enum class precision : unsigned char {
    off,   ///< no autocast: ops run in the formats of their arguments
    fp16,  ///< the policy mp::autocast::fp16
    bf16   ///< the policy mp::autocast::bf16
};

namespace detail {

/// The only mutable state outside of objects in the library. Threads start with autocast off.
inline constinit thread_local precision autocast_state = precision::off;

}  // namespace detail

/// The precision of the innermost region that the calling thread is in; precision::off outside of all.
inline precision autocast_precision() noexcept {
    return detail::autocast_state;
}

/// Whether ops that the calling thread dispatches now are cast.
inline bool autocast_active() noexcept {
    return detail::autocast_state != precision::off;
}

/// The autocast state of a thread, to be carried to another thread. A default-constructed token is "off".
class autocast_token {
public:
    constexpr autocast_token() = default;

    /// The precision that a region made from this token has.
    constexpr precision value() const noexcept { return value_; }

    friend constexpr bool operator==(autocast_token, autocast_token) = default;

private:
    constexpr explicit autocast_token(precision value) noexcept : value_(value) {}
    friend autocast_token capture_autocast() noexcept;

    precision value_ = precision::off;
};

/// Takes the calling thread's autocast state along. New threads start with autocast off; a worker that should
/// run like its creator opens a region from the creator's token:
///
///     const auto token = mp::capture_autocast();
///     std::thread worker([token] { mp::autocast_region region(token); forward(); });
inline autocast_token capture_autocast() noexcept {
    return autocast_token(autocast_precision());
}

/// While the object lives, ops that its thread dispatches run in the given precision. Regions nest: the
/// innermost one decides, and leaving it, also by an exception, restores the one around it.
///
///     mp::autocast_region region(mp::precision::fp16);
///     mp::ops::linear(exec, x, w, b, y);                          // in half
///     {
///         mp::autocast_region exact(mp::precision::fp16, false);  // the same as mp::precision::off
///         mp::ops::linear(exec, x, w, b, y);                      // in the formats of x and w
///     }
///
/// Arrays keep their formats: what was written inside a region is not cast back when the region ends. An
/// object must be destroyed on the thread that made it, in the reverse order of construction, as automatic
/// variables are.
class [[nodiscard]] autocast_region {
public:
    /// Enters a region of this precision, or one without autocast where `enabled` is false. Throws
    /// argument_error for a value that is no enumerator of mp::precision.
    explicit autocast_region(precision value, bool enabled = true) : outer_(detail::autocast_state) {
        if (value > precision::bf16) {
            detail::throw_argument("mp::autocast_region", "value", static_cast<unsigned>(value),
                                   "must be an enumerator of mp::precision");
        }
        detail::autocast_state = enabled ? value : precision::off;
    }

    /// Enters a region with the state that the token has captured.
    explicit autocast_region(autocast_token token) noexcept : outer_(detail::autocast_state) {
        detail::autocast_state = token.value();
    }

    ~autocast_region() { detail::autocast_state = outer_; }

    autocast_region(const autocast_region&) = delete;
    autocast_region& operator=(const autocast_region&) = delete;

private:
    precision outer_;
};

/// The word by which users choose a precision: "off", "fp16" or "bf16".
constexpr std::string_view name_of(precision value) noexcept {
    switch (value) {
        case precision::off:
            return "off";
        case precision::fp16:
            return "fp16";
        case precision::bf16:
            return "bf16";
    }
    return "unknown";
}

/// The precision that a word means: "fp16", "bf16" or "off", in lower case. Throws argument_error for any
/// other text; `source`, where the text came from, begins the message.
inline precision precision_from_string(std::string_view text, std::string_view source = "text") {
    for (const precision value : {precision::off, precision::fp16, precision::bf16}) {
        if (text == name_of(value)) return value;
    }
    detail::throw_argument("mp::precision_from_string", source, std::string(text),
                           "must be one of fp16, bf16, off");
}

/// The precision that the environment variable `variable` asks for: fp16, bf16 or off; off where it is not
/// set or empty. Nothing reads the environment unless this function is called. Throws argument_error for any
/// other value. As with std::getenv, no other thread may change the environment meanwhile.
///
///     mp::autocast_region region(mp::precision_from_environment());
inline precision precision_from_environment(const char* variable = "MP_AUTOCAST") {
    const char* text = std::getenv(variable);
    if (text == nullptr || *text == '\0') return precision::off;
    return precision_from_string(text, variable);
}

}  // namespace mp
