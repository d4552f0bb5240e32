// SPDX-License-Identifier: MIT
// <mp/mp.hpp> alone has what the shortest programs of its users need.
#include <mp/mp.hpp>

#include <string>

static_assert(MP_VERSION == MP_VERSION_MAJOR * 10000 + MP_VERSION_MINOR * 100 + MP_VERSION_PATCH &&
              MP_VERSION >= 200);

int main() {
    // 65504 is the largest finite binary16 number; the sum with 16 is a tie that rounds to infinity.
    const mp::half largest(65504.0f);
    const bool rounds = mp::isfinite(largest) && mp::isinf(largest + mp::half(16.0f));
    const mp::autocast_region region(mp::autocast::presets::pytorch_cuda);
    const mp::dynamic_loss_scaler scaler;
    const std::string saved = mp::save_state(scaler.state());
    return rounds && !saved.empty() ? 0 : 1;
}
