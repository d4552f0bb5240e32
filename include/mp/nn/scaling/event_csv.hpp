// SPDX-License-Identifier: MIT
/// \file
/// Events of a scaler as a table in text, and back. One line an event:
///
///     iteration,scale_before,scale_after,kind,infinities,nans,values,zeros,flushed,subnormals,overflows,large,
///     largest,applied,skipped,parameter,element,parameter_name
///
/// in one line, which comes first. Cells are the members of scale_event by their names, kinds by to_string;
/// `parameter` and `element` are empty where there is none.
#pragma once

#include <mp/config.hpp>
#include <mp/nn/scaling/scale_event.hpp>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#if MP_CORE_BODIES
#include <mp/arrays/io/csv.hpp>
#include <mp/nn/scaling/scale_change_names.hpp>

#include <array>
#include <cstddef>
#endif

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// Returns the table of events, those of `older` first.
[[nodiscard]] MP_CORE_FUNCTION std::string event_csv(std::span<const scale_event> older,
                                                     std::span<const scale_event> newer);

/// Reads a table. Throws argument_error in the name of `function`.
[[nodiscard]] MP_CORE_FUNCTION std::vector<scale_event> read_event_csv(std::string_view function,
                                                                       std::string_view text);

}}  // namespace mp::detail

#if MP_CORE_BODIES
namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

inline constexpr std::array<std::string_view, 18> event_columns{
    "iteration", "scale_before", "scale_after", "kind",       "infinities", "nans",
    "values",    "zeros",        "flushed",     "subnormals", "overflows",  "large",
    "largest",   "applied",      "skipped",     "parameter",  "element",    "parameter_name"};

/// Calls visitor(column, member) for the members that are whole numbers.
template <class Event, class Visitor>
void visit_event_counts(Event& event, Visitor&& visitor) {
    visitor(0, event.iteration);
    visitor(4, event.seen.infinities);
    visitor(5, event.seen.nans);
    visitor(6, event.seen.values);
    visitor(7, event.seen.zeros);
    visitor(8, event.seen.flushed);
    visitor(9, event.seen.subnormals);
    visitor(10, event.seen.overflows);
    visitor(11, event.seen.large);
    visitor(13, event.applied);
    visitor(14, event.skipped);
    visitor(15, event.parameter);
    visitor(16, event.element);
}

inline std::string event_csv_header() {
    std::string line;
    for (const std::string_view name : event_columns) line.append(line.empty() ? "" : ",").append(name);
    return line + "\n";
}

inline void append_event_csv(std::string& to, const scale_event& event) {
    std::array<std::string, event_columns.size()> cells;
    visit_event_counts(event, [&](std::size_t column, const auto& member) {
        const bool may_be_absent = column == 15 || column == 16;
        if (!may_be_absent || member != ~0ULL) append_csv_number(cells[column], member);
    });
    append_csv_number(cells[1], event.change.before);
    append_csv_number(cells[2], event.change.after);
    cells[3] = to_string(event.change.kind);
    append_csv_number(cells[12], event.seen.largest);
    append_csv_text(cells[17], event.parameter_name.view());
    for (std::size_t i = 0; i < cells.size(); ++i) to.append(i == 0 ? "" : ",").append(cells[i]);
    to += '\n';
}

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

MP_CORE_FUNCTION std::string event_csv(std::span<const scale_event> older,
                                       std::span<const scale_event> newer) {
    std::string text = event_csv_header();
    for (const scale_event& event : older) append_event_csv(text, event);
    for (const scale_event& event : newer) append_event_csv(text, event);
    return text;
}

MP_CORE_FUNCTION std::vector<scale_event> read_event_csv(std::string_view function, std::string_view text) {
    csv_reader reader(function, text);
    reader.read_header();
    for (std::size_t i = 0; i < event_columns.size(); ++i) {
        if (i >= reader.names().size() || reader.names()[i] != event_columns[i] ||
            reader.names().size() > event_columns.size()) {
            throw_argument(
                function, "line 1", printable(text.substr(0, text.find('\n'))),
                "must name the columns of an event log: " + event_csv_header().substr(0, 40) + "...");
        }
    }
    std::vector<scale_event> events;
    while (reader.next()) {
        scale_event event;
        visit_event_counts(event, [&]<class Member>(std::size_t column, Member& member) {
            const bool may_be_absent = column == 15 || column == 16;
            if (may_be_absent && reader.cell(column).empty()) return;
            member = reader.number<Member>(column, sizeof(Member) == 8
                                                       ? "must be a whole number from 0 to 2^64 - 1"
                                                       : "must be a whole number from 0 to 2^32 - 1");
        });
        event.change.before = reader.number<float>(1, "must be a number within the range of float");
        event.change.after = reader.number<float>(2, "must be a number within the range of float");
        const auto kind = scale_change_kind_named(reader.cell(3));
        if (!kind) reader.refuse(3, "must be the name of a kind of change, such as backed_off");
        event.change.kind = *kind;
        event.seen.largest = reader.number<double>(12, "must be a number within the range of double");
        if (reader.cell(17).size() > short_name::capacity) {
            reader.refuse(17, "must have at most " + error_text(short_name::capacity) + " bytes");
        }
        event.parameter_name = short_name(reader.cell(17));
        events.push_back(event);
    }
    return events;
}

}}  // namespace mp::detail
#endif
