// SPDX-License-Identifier: MIT
/// \file
/// Selects the tensor-core model of a device by its compute capability.
#pragma once

#include <mp/linalg/tensor_core/arch.hpp>

#include "device.hpp"

namespace bench::gpu {

/// Calls f.operator()<Arch>() with the latest modelled architecture that is not newer than `capability`. The simulated
/// GPU has one capability, so that only its model is compiled.
template <class Function>
void with_architecture([[maybe_unused]] int capability, Function f) {
    using mp::arch;
    if constexpr (!device::is_simulated) {
        if (capability >= 120) return f.template operator()<arch::sm_120>();
        if (capability >= 100) return f.template operator()<arch::sm_100>();
        if (capability < 80) return f.template operator()<arch::sm_75>();
        if (capability < 86) return f.template operator()<arch::sm_80>();
        if (capability < 89) return f.template operator()<arch::sm_86>();
        if (capability < 90) return f.template operator()<arch::sm_89>();
    }
    f.template operator()<arch::sm_90>();
}

}  // namespace bench::gpu
