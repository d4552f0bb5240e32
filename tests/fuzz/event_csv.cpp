// SPDX-License-Identifier: MIT
// Fuzzes the reader of event logs: a table is refused with mp::error, or its events are written as a table
// that gives them back.
#include <mp/nn/scaling/event_log.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "require.hpp"

namespace {

using fuzzing::require;

mp::scale_event_log logged(const std::vector<mp::scale_event>& events) {
    mp::scale_event_log log(events.empty() ? 1 : events.size());
    for (const mp::scale_event& event : events) log(event);
    return log;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    std::vector<mp::scale_event> events;
    try {
        events = mp::scale_event_log::read_csv(text);
    } catch (const mp::error&) {
        return 0;
    }
    // As text, because NaNs are not equal.
    const mp::scale_event_log log = logged(events);
    const std::string again = log.to_csv();
    const std::vector<mp::scale_event> same = mp::scale_event_log::read_csv(again);
    require(same.size() == events.size());
    require(logged(same).to_csv() == again);
    for (std::size_t i = 0; i < events.size(); ++i) {
        require(same[i].parameter_name == events[i].parameter_name &&
                same[i].seen.values == events[i].seen.values);
    }
    require(log.totals().iterations == events.size());
    static_cast<void>(log.to_text());
    return 0;
}
