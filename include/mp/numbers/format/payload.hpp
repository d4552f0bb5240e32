// SPDX-License-Identifier: MIT
/// \file
/// Payloads of NaN: C23's getpayload, setpayload, setpayloadsig and canonicalize.
#pragma once

#include <mp/numbers/format/manipulation.hpp>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Whether NaN has bits below the quiet bit, or is one code.
template <class Format>
inline constexpr bool has_payload = layout_of<Format>::has_nan && layout_of<Format>::quiet_bit != 0;

template <class Format>
MP_HOST_DEVICE constexpr int set_payload(basic_float<Format>* result, basic_float<Format> payload,
                                         bool signaling) {
    using value = basic_float<Format>;
    using layout = layout_of<Format>;
    *result = value::from_bits(pack_zero<Format>(false, projection{}));
    if constexpr (layout::has_nan) {
        std::uint64_t whole = 0;
        const category kind = categorize<Format>(payload.bits());
        if (kind == category::nan || kind == category::infinite || signbit(payload)) return 1;
        if (kind == category::finite) {
            const exact_value x = unpack<Format>(payload.bits());
            const split_value split = split_at(x, 0);
            if (x.exponent >= 32 || !split.is_exact()) return 1;
            whole = split.truncated;
        }
        const std::uint64_t limit = has_payload<Format> ? std::uint64_t{layout::quiet_bit} : 1;
        if (whole >= limit || (signaling && (whole == 0 || !has_payload<Format>))) return 1;
        std::uint64_t code = layout::nan_code | whole;
        if (signaling) code &= ~std::uint64_t{layout::quiet_bit};
        *result = value::from_bits(static_cast<storage_of<Format>>(code));
        return 0;
    }
    return 1;
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// The payload of a NaN, the bits below its quiet bit as an integer; -1 for what is no NaN.
template <class Format>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> getpayload(const basic_float<Format>* x) noexcept {
    using layout = layout_of<Format>;
    if (!isnan(*x)) return basic_float<Format>(-1);
    if constexpr (detail::has_payload<Format>) {
        return basic_float<Format>(static_cast<std::uint32_t>(x->bits() & (layout::quiet_bit - 1u)));
    }
    return basic_float<Format>(0);
}
/// Makes *result the positive quiet NaN with this payload and returns 0; or makes it zero and returns 1,
/// where the payload is no integer that fits, or the format has no NaN.
template <class Format>
MP_HOST_DEVICE constexpr int setpayload(basic_float<Format>* result, basic_float<Format> payload) noexcept {
    return detail::set_payload(result, payload, false);
}
/// As setpayload(), for a signalling NaN, which has no payload of zero.
template <class Format>
MP_HOST_DEVICE constexpr int setpayloadsig(basic_float<Format>* result,
                                           basic_float<Format> payload) noexcept {
    return detail::set_payload(result, payload, true);
}
/// Makes *result the value of *x, a signalling NaN quiet, and returns 0.
template <class Format>
MP_HOST_DEVICE constexpr int canonicalize(basic_float<Format>* result,
                                          const basic_float<Format>* x) noexcept {
    *result = isnan(*x) ? basic_float<Format>::from_bits(detail::convert_nan<Format, Format>(x->bits())) : *x;
    return 0;
}

}}  // namespace mp
