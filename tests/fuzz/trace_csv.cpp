// SPDX-License-Identifier: MIT
// Fuzzes the reader of traces: a table is refused with mp::error, or gives a trace that is valid, is written
// as a table that gives it back, and can be replayed.
#include <mp/frontends/report/replay.hpp>
#include <mp/loss_scaling.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "require.hpp"

namespace {

using fuzzing::require;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    std::vector<mp::trace_step> trace;
    try {
        trace = mp::read_trace_csv(text);
    } catch (const mp::error&) {
        return 0;
    }
    mp::validate_trace(trace);
    for (const mp::trace_step& step : trace) {
        require(step.largest >= 0.0 && step.largest <= std::numeric_limits<double>::max());
        for (std::size_t i = 1; i < step.exponents.size(); ++i) {
            require(step.exponents[i - 1].exponent < step.exponents[i].exponent);
        }
    }
    require(mp::read_trace_csv(mp::write_trace_csv(trace)) == trace);
    const mp::replay_result result = mp::replay(trace, mp::pytorch_policy{}, "pytorch");
    require(result.totals.iterations <= trace.size());
    require(result.mean_underflow >= 0.0 && result.mean_underflow <= 1.0);
    require(result.largest_underflow >= 0.0 && result.largest_underflow <= 1.0);
    return 0;
}
