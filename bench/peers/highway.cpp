// SPDX-License-Identifier: MIT
// The loops of highway.hpp. Compiled once for each instruction set by including itself. Always built as most
// programs are: Highway picks the instructions when the program runs, and its version 1.0 refuses to compile
// for a processor that is newer than itself.
#include "highway.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "peers/highway.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include <hwy/targets.h>

HWY_BEFORE_NAMESPACE();
namespace bench::highway::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Counts are multiples of 64, and so of the length of every vector.

template <class Reduced>
void narrow(const float* HWY_RESTRICT from, Reduced* HWY_RESTRICT to, std::size_t count) {
    const hn::ScalableTag<float> wide;
    const hn::Rebind<Reduced, decltype(wide)> reduced;
    for (std::size_t i = 0; i < count; i += hn::Lanes(wide)) {
        hn::StoreU(hn::DemoteTo(reduced, hn::LoadU(wide, from + i)), reduced, to + i);
    }
}

template <class Reduced>
void widen(const Reduced* HWY_RESTRICT from, float* HWY_RESTRICT to, std::size_t count) {
    const hn::ScalableTag<float> wide;
    const hn::Rebind<Reduced, decltype(wide)> reduced;
    for (std::size_t i = 0; i < count; i += hn::Lanes(wide)) {
        hn::StoreU(hn::PromoteTo(wide, hn::LoadU(reduced, from + i)), wide, to + i);
    }
}

void float_to_half(const float* from, std::uint16_t* to, std::size_t count) {
    narrow(from, reinterpret_cast<hwy::float16_t*>(to), count);
}

void half_to_float(const std::uint16_t* from, float* to, std::size_t count) {
    widen(reinterpret_cast<const hwy::float16_t*>(from), to, count);
}

void float_to_bfloat16(const float* from, std::uint16_t* to, std::size_t count) {
    narrow(from, reinterpret_cast<hwy::bfloat16_t*>(to), count);
}

void bfloat16_to_float(const std::uint16_t* from, float* to, std::size_t count) {
    widen(reinterpret_cast<const hwy::bfloat16_t*>(from), to, count);
}

void double_to_half(const double* HWY_RESTRICT from, std::uint16_t* HWY_RESTRICT to, std::size_t count) {
    const hn::ScalableTag<double> wide;
    const hn::Rebind<float, decltype(wide)> middle;
    const hn::Rebind<hwy::float16_t, decltype(wide)> reduced;
    auto* const codes = reinterpret_cast<hwy::float16_t*>(to);
    for (std::size_t i = 0; i < count; i += hn::Lanes(wide)) {
        const auto single = hn::DemoteTo(middle, hn::LoadU(wide, from + i));
        hn::StoreU(hn::DemoteTo(reduced, single), reduced, codes + i);
    }
}

}  // namespace bench::highway::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace bench::highway {

HWY_EXPORT(float_to_half);
HWY_EXPORT(half_to_float);
HWY_EXPORT(float_to_bfloat16);
HWY_EXPORT(bfloat16_to_float);
HWY_EXPORT(double_to_half);

void float_to_half(const float* from, std::uint16_t* to, std::size_t count) {
    HWY_DYNAMIC_DISPATCH(float_to_half)(from, to, count);
}
void half_to_float(const std::uint16_t* from, float* to, std::size_t count) {
    HWY_DYNAMIC_DISPATCH(half_to_float)(from, to, count);
}
void float_to_bfloat16(const float* from, std::uint16_t* to, std::size_t count) {
    HWY_DYNAMIC_DISPATCH(float_to_bfloat16)(from, to, count);
}
void bfloat16_to_float(const std::uint16_t* from, float* to, std::size_t count) {
    HWY_DYNAMIC_DISPATCH(bfloat16_to_float)(from, to, count);
}
void double_to_half(const double* from, std::uint16_t* to, std::size_t count) {
    HWY_DYNAMIC_DISPATCH(double_to_half)(from, to, count);
}

std::string description() {
    const std::string version =
        std::to_string(HWY_MAJOR) + "." + std::to_string(HWY_MINOR) + "." + std::to_string(HWY_PATCH);
    // The bit of the best target is the lowest.
    const auto supported = hwy::SupportedTargets() & HWY_TARGETS;
    return version + ", " + hwy::TargetName(supported & -supported);
}

}  // namespace bench::highway

#endif
