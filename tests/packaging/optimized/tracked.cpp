// SPDX-License-Identifier: MIT
// Every operation of mp::tracked in a project that is compiled with -O1, where g++ rejects what it is to inline always and
// cannot, as a function that is called through its address. Without optimisation, as in -Og, it may not see that.
#include <mp/analysis.hpp>

int main() {
    mp::error_tracker tracker({.precision = 8, .emin = -126, .emax = 127});
    mp::tracked<double> x = tracker(2.0);
    x += 1.0;
    x -= tracker(0.5);
    x *= 3.0;
    x /= x + tracker(1.0);
    x = fma(x, x, tracker(1.0)) - sqrt(x);
    x = exp(x) + log(abs(x)) + sin(x) * cos(-x) / tanh(fabs(x));
    const bool is_counted = tracker.operations() > 10 && tracker.nans() == 0;
    return is_counted && x == x && x.relative_error() < 1.0 && !to_string(tracker).empty() ? 0 : 1;
}
