// SPDX-License-Identifier: MIT
/// \file
/// Several measurements of one number.
#pragma once

#include <mp/numbers/format/operations.hpp>

#include <algorithm>
#include <string>
#include <vector>

#include "text.hpp"

namespace examples {

/// A number for each training, in short.
struct spread {
    double mean = 0.0;
    double lowest = 0.0;
    double highest = 0.0;
};

/// NaNs count as larger than any number, so that a training that broke shows.
inline spread spread_of(const std::vector<double>& values) {
    if (values.empty()) return {};
    const auto less = [](double a, double b) { return !mp::isnan(a) && (mp::isnan(b) || a < b); };
    const auto [lowest, highest] = std::minmax_element(values.begin(), values.end(), less);
    spread result{0.0, *lowest, *highest};
    for (const double value : values) result.mean += value / static_cast<double>(values.size());
    return result;
}

/// Where a number lies, and if so asked from where to where it ranges.
inline std::string spread_text(const std::string& value, const std::string& low, const std::string& high,
                               bool ranges) {
    return !ranges || low == high ? value : value + " (" + low + ".." + high + ")";
}

/// A loss with two significant digits, and its range if so asked.
inline std::string loss_spread(const spread& it, bool ranges) {
    return spread_text(loss_text(it.mean), loss_text(it.lowest), loss_text(it.highest), ranges);
}

}  // namespace examples
