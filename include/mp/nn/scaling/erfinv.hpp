// SPDX-License-Identifier: MIT
/// \file
/// The inverse of the error function in double, from which adaptive loss scaling has the scale that a share
/// of underflows allows.
#pragma once

#include <mp/numbers/rules/elementary.hpp>
#include <mp/numbers/rules/rounded_doubles.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>

#include <limits>

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// The x with erf(x) = y: within 4 units in the last place for |y| up to 1 - 2^-53, the last double below
/// one, and the same bits everywhere. Infinite for 1 and -1, and NaN for what is beyond or NaN.
///
/// x / y is a smooth function of w = -log(1 - y^2) near zero, and of its root far away (M. Giles,
/// "Approximating the erfinv function", 2010): here by polynomials through the Chebyshev nodes of three
/// intervals, with errors below 2^-53.
[[nodiscard]] inline double erfinv(double y) noexcept {
    using number = detail::rounded_doubles<1>;
    const detail::default_floating_point_modes modes;
    y = modes.held(y);
    constexpr double infinity = std::numeric_limits<double>::infinity();
    constexpr double half_root_pi = 0.88622692545275801365;
    const double magnitude = y < 0.0 ? -y : y;
    if (!(magnitude <= 1.0)) return std::numeric_limits<double>::quiet_NaN();
    if (magnitude >= 1.0) return y < 0.0 ? -infinity : infinity;
    // The next term is pi / 12 y^2 of it.
    if (magnitude < 1e-9) return modes.held((number(half_root_pi) * y).value());
    const number below_one = number(1.0) - magnitude;  // exact where it matters, from 1/2 on
    const double w = -detail::double_log((below_one * (number(1.0) + magnitude)).value());
    number quotient = 0.0;
    if (w < 6.25) {
        quotient = detail::polynomial_of(
            number(w) - 3.125, 0x1.a755e7c99ae86p+0, 0x1.ebd80d9b13df9p-3, -0x1.8b6c33114eeaep-8,
            -0x1.84576948353e1p-11, 0x1.879c2a20da432p-13, -0x1.d1d1f7ca4030fp-17, -0x1.6e8a53f106129p-20,
            0x1.c6b4f890935ddp-22, -0x1.f36ce4ae847fdp-26, -0x1.1a9eb1bc8f0f0p-28, 0x1.20f4e6bf074cfp-30,
            -0x1.dc3ee8b6c53ccp-35, -0x1.c89564c5d1004p-37, 0x1.723527b7cff86p-39, -0x1.6d9ec5e3ec6afp-44,
            -0x1.686642b67610ap-45, 0x1.db523eb040288p-48, -0x1.73898c37dc54ap-55, -0x1.2c266176e7096p-53,
            0x1.1f4ba5de5dc3fp-56, 0x1.536d397f9b9b1p-60, -0x1.9d290dd3bcb70p-62, -0x1.5087a244b0f6cp-70,
            0x1.e9b8ae7230c25p-69);
    } else if (w < 16.0) {
        quotient = detail::polynomial_of(
            number(detail::double_sqrt(w)) - 3.25, 0x1.8abcc380d5a48p+1, 0x1.0158a6d641d54p+0,
            0x1.5ffcfe5b71831p-8, -0x1.ebadabb9fd945p-9, 0x1.468eeca71fc73p-9, -0x1.ba9240d9b7431p-10,
            0x1.f3cc552091e2bp-11, -0x1.7448bc8217f18p-12, 0x1.932d7684a6a52p-16, 0x1.1e6ab36be6c27p-14,
            -0x1.8cf0bea0971c6p-15, 0x1.a242f876789c6p-17, 0x1.88af4a1d56a98p-19, -0x1.0b8068913d37bp-18,
            0x1.924ec74d8058bp-20, -0x1.cfedcff902170p-26, -0x1.235ac6aaf025ep-22, 0x1.1969ef2a93940p-23,
            0x1.7f235c757454ep-31, -0x1.03765b5ec5c93p-26);
    } else {
        quotient = detail::polynomial_of(
            number(detail::double_sqrt(w)) - 5.005, 0x1.36b7a1573eaf2p+2, 0x1.02a2f594aca20p+0,
            -0x1.29a7e9552a60ap-13, -0x1.bfc60f1cccf6ap-13, 0x1.3cb0cc3a27ce9p-14, -0x1.47ef9dcb80373p-16,
            0x1.2d6aa1edd8dc7p-18, -0x1.081efcf6c8fc1p-20, 0x1.e56cfd0023c1bp-23, -0x1.1c027d2af6f07p-24,
            0x1.e4663ddaa9f97p-26, -0x1.fc437123e0c77p-27, 0x1.04e4feb9c3c3ep-27, -0x1.d092bea95aba3p-29,
            0x1.625a134c8c8f2p-30, -0x1.db0e15a5414cdp-32, 0x1.34001e0171ae4p-34, 0x1.699dcca0a93f2p-35,
            -0x1.5a60cd00c0f4dp-36);
    }
    return modes.held((number(y) * quotient).value());
}

}}  // namespace mp
