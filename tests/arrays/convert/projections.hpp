// SPDX-License-Identifier: MIT
/// \file
/// The projections that conversions are tested with.
#pragma once

#include <mp/convert.hpp>

#include <vector>

namespace convert_test {

/// Every rounding that takes no random bits, with every saturation, and with other ways of NaN.
inline std::vector<mp::projection> deterministic_projections() {
    std::vector<mp::projection> result;
    for (const mp::rounding round :
         {mp::rounding::nearest_even, mp::rounding::nearest_away, mp::rounding::toward_zero,
          mp::rounding::upward, mp::rounding::downward, mp::rounding::to_odd}) {
        for (const mp::saturation saturate :
             {mp::saturation::none, mp::saturation::finite, mp::saturation::propagate}) {
            result.push_back({round, saturate});
        }
        mp::projection other_nans{round, mp::saturation::none};
        other_nans.nan = mp::nan_propagation::canonical;
        other_nans.without_nan = mp::nan_substitute::zero;
        result.push_back(other_nans);
    }
    return result;
}

}  // namespace convert_test
