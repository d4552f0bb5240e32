// SPDX-License-Identifier: MIT
// The largest error of many results.
#pragma once

namespace tests {

/// The larger of two errors; NaN where either is, which std::max would lose.
template <class Number>
[[nodiscard]] Number larger_error(const Number& worst, const Number& error) {
    return error > worst || !(error == error) ? error : worst;
}

}  // namespace tests
