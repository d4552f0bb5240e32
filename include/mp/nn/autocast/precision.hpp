// SPDX-License-Identifier: MIT
/// \file
/// The precisions that autocast chooses among at run time, their names, and which devices have them.
#pragma once

#include <mp/error.hpp>
#include <mp/executor.hpp>

#include <cstddef>
#include <cstdlib>
#include <string>
#include <string_view>

namespace mp {

/// The precision of an autocast region.
enum class precision : unsigned char {
    off,   ///< no autocast: ops run in the formats of their arguments
    fp16,  ///< the policy mp::autocast::fp16
    bf16,  ///< the policy mp::autocast::bf16
    fp8    ///< the policy mp::autocast::fp8_hybrid: e4m3 forward, e5m2 for gradients, results in bfloat16
};

}  // namespace mp

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// The word by which users choose a precision: "off", "fp16", "bf16" or "fp8".
constexpr std::string_view name_of(precision value) noexcept {
    switch (value) {
        case precision::off:
            return "off";
        case precision::fp16:
            return "fp16";
        case precision::bf16:
            return "bf16";
        case precision::fp8:
            return "fp8";
    }
    return "unknown";
}

/// The precision that a word means: "fp16", "bf16", "fp8" or "off", in lower case. Throws argument_error for
/// any other text; `source`, where the text came from, begins the message.
inline precision precision_from_string(std::string_view text, std::string_view source = "text") {
    for (const precision value : {precision::off, precision::fp16, precision::bf16, precision::fp8}) {
        if (text == name_of(value)) return value;
    }
    detail::throw_argument("mp::precision_from_string", source, std::string(text),
                           "must be one of fp16, bf16, fp8, off");
}

/// The precision that the environment variable `variable` asks for: fp16, bf16, fp8 or off; `otherwise` where
/// it is not set or empty. Nothing reads the environment unless this function is called. Throws
/// argument_error for any other value: another precision than the one that was meant would give other numbers
/// (MP_ISA, which chooses kernels, is only warned about). As with std::getenv, no other thread may change the
/// environment meanwhile.
///
///     mp::autocast_region region(mp::precision_from_environment());
inline precision precision_from_environment(const char* variable = "MP_AUTOCAST",
                                            precision otherwise = precision::off) {
    const char* text = std::getenv(variable);
    if (text == nullptr || *text == '\0') return otherwise;
    return precision_from_string(text, variable);
}

}}  // namespace mp

namespace mp {

/// The kinds of devices whose precisions a region sets separately.
enum class device_kind : unsigned char { cpu, cuda };

inline constexpr std::size_t device_kind_count = 2;

}  // namespace mp

namespace mp { inline namespace MP_ISA_NAMESPACE {

constexpr std::string_view name_of(device_kind kind) noexcept {
    return kind == device_kind::cpu ? "cpu" : kind == device_kind::cuda ? "cuda" : "unknown";
}

/// The device that an executor runs ops on: mp::simulated_gpu counts as the device that it simulates.
/// Specialise it for an executor of your own.
template <class Executor>
inline constexpr device_kind device_of = gpu_executor<Executor> ? device_kind::cuda : device_kind::cpu;

/// Whether ops can run in this precision. A CPU has all of them, if need be in software. On CUDA devices
/// `compute_capability` is 10 major + minor, such as 75; half needs 5.3, bfloat16 8.0 and float8 8.9 (CUDA
/// C++ Programming Guide, compute capabilities); 0 stands for a capability that is not known, which has all.
constexpr bool supports(device_kind kind, precision value, int compute_capability = 0) noexcept {
    if (kind != device_kind::cuda || compute_capability == 0) return true;
    switch (value) {
        case precision::off:
            return true;
        case precision::fp16:
            return compute_capability >= 53;
        case precision::bf16:
            return compute_capability >= 80;
        case precision::fp8:
            return compute_capability >= 89;
    }
    return false;
}

}}  // namespace mp
