// SPDX-License-Identifier: MIT
/// \file
/// A cast ledger as a table for a terminal, and as comma-separated values for programs.
#pragma once

#include <mp/arrays/io/csv.hpp>
#include <mp/base/number_text.hpp>
#include <mp/error.hpp>
#include <mp/frontends/report/ledger_text.hpp>
#include <mp/frontends/report/text_table.hpp>
#include <mp/nn/autocast/cast_ledger.hpp>
#include <mp/nn/autocast/ledger_contents.hpp>
#include <mp/numbers/format/operations.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// A number of elements in at most eight characters.
inline std::string count_text(std::uint64_t count) {
    if (count < 10'000'000) return error_text(count);
    constexpr std::array<std::string_view, 5> units = {" k", " M", " G", " T", " P"};
    double value = static_cast<double>(count) / 1000.0;
    std::size_t unit = 0;
    for (; value >= 9999.5 && unit + 1 < units.size(); ++unit) value /= 1000.0;
    return fixed_text(value, value < 1000.0 ? 1 : 0).append(units[unit]);
}

/// Text within `width` columns where its words allow it, every line ended.
inline std::string wrapped(std::string_view text, std::size_t width) {
    std::string result;
    while (text.size() > width) {
        std::size_t end = text.rfind(' ', width);
        if (end == std::string_view::npos) end = text.find(' ');
        if (end == std::string_view::npos) break;
        result.append(text.substr(0, end)).append("\n");
        text.remove_prefix(end + 1);
    }
    return result.append(text).append("\n");
}

/// A table whose lines come in groups under the name of an op, which has a line of its own.
class grouped_table {
public:
    /// \param headings  the first lines
    explicit grouped_table(std::vector<std::vector<std::string>> headings)
        : lines_(std::move(headings)), groups_(lines_.size()) {}

    void begin_group(std::string_view name) { next_group_ = printable(name) + "\n"; }
    void add(std::vector<std::string> line) {
        lines_.push_back(std::move(line));
        groups_.push_back(std::exchange(next_group_, {}));
    }

    /// As aligned_text().
    template <class IsText>
    [[nodiscard]] std::string text(IsText is_text) const {
        const std::string table = aligned_text(lines_, is_text);
        std::string result;
        std::size_t line = 0;
        for (std::size_t at = 0; at < table.size(); ++line) {
            const std::size_t end = table.find('\n', at) + 1;
            result.append(groups_[line]).append(table, at, end - at);
            at = end;
        }
        return result;
    }

private:
    std::vector<std::vector<std::string>> lines_;
    std::vector<std::string> groups_;  ///< the op of a line, where it begins a group
    std::string next_group_;
};

inline std::string casts_table(const autocast::ledger_contents& contents) {
    if (contents.casts.empty()) return "No casts.\n";
    grouped_table table({{"", "", "casts", "", "over-", "", "sub-", "", ""},
                         {" argument", "from -> to", "(reused)", "elements", "flowed", "flushed", "normal",
                          "inexact", "magnitudes"}});
    for (const std::string& op : op_names_in(contents)) {
        table.begin_group(op);
        for (const autocast::cast_record& it : records_of(contents.casts, op)) {
            std::string casts = error_text(it.casts);
            if (it.reused != 0) casts.append(" (").append(error_text(it.reused)).append(")");
            const auto share = [&](std::uint64_t count) { return fraction_text(count, it.losses); };
            table.add({" " + printable(it.argument), printable(it.from) + " -> " + printable(it.to), casts,
                       count_text(it.losses.elements), share(it.losses.overflowed), share(it.losses.flushed),
                       share(it.losses.subnormal), share(it.losses.inexact),
                       magnitudes_text(it.losses.smallest, it.losses.largest, "..")});
        }
    }
    return table.text([](std::size_t column) { return column < 2; });
}

inline std::string ops_table(const autocast::ledger_contents& contents) {
    grouped_table table({{" calls", "category", "computes in", "region", "rule"}});
    for (const std::string& op : op_names_in(contents)) {
        table.begin_group(op);
        for (const autocast::op_record& it : records_of(contents.ops, op)) {
            table.add({" " + error_text(it.calls), std::string(name_of(it.category)),
                       printable(it.compute_type), std::string(name_of(it.active)), printable(it.rule)});
        }
    }
    return table.text([](std::size_t column) { return column != 0; });
}

inline std::string products_table(const std::vector<autocast::product_record>& products) {
    std::vector<std::vector<std::string>> lines{{"matrix product", "factors", "m", "n", "k", "calls"}};
    for (const autocast::product_record& it : products) {
        lines.push_back({printable(it.op), printable(it.type), error_text(it.m), error_text(it.n),
                         error_text(it.k), error_text(it.calls)});
    }
    return aligned_text(lines, [](std::size_t column) { return column < 2; });
}

inline constexpr std::array<std::string_view, 17> ledger_columns{
    "op",       "argument",   "direction", "from",      "to",      "scaled", "casts",   "reused",  "bytes",
    "elements", "overflowed", "flushed",   "subnormal", "inexact", "zeros",  "largest", "smallest"};

/// Calls visitor(column, member) for the members that are whole numbers.
template <class Record, class Visitor>
void visit_cast_counts(Record& record, Visitor&& visitor) {
    visitor(6, record.casts);
    visitor(7, record.reused);
    visitor(8, record.bytes);
    visitor(9, record.losses.elements);
    visitor(10, record.losses.overflowed);
    visitor(11, record.losses.flushed);
    visitor(12, record.losses.subnormal);
    visitor(13, record.losses.inexact);
    visitor(14, record.losses.zeros);
}

inline std::string ledger_csv_header() {
    std::string line;
    for (const std::string_view name : ledger_columns) line.append(line.empty() ? "" : ",").append(name);
    return line + "\n";
}

inline autocast::cast_record read_ledger_record(const csv_reader& reader) {
    autocast::cast_record record;
    record.op = reader.cell(0);
    record.argument = reader.cell(1);
    record.from = reader.cell(3);
    record.to = reader.cell(4);
    if (reader.cell(2) == "output") {
        record.direction = autocast::cast_direction::output;
    } else if (reader.cell(2) != "input") {
        reader.refuse(2, "must be input or output");
    }
    record.scaled = reader.cell(5) == "1";
    if (!record.scaled && reader.cell(5) != "0") reader.refuse(5, "must be 0 or 1");
    visit_cast_counts(record, [&](std::size_t column, std::uint64_t& member) {
        member = reader.number<std::uint64_t>(column, "must be a whole number from 0 to 2^64 - 1");
    });
    autocast::cast_losses& losses = record.losses;
    if (losses.zeros > losses.elements) reader.refuse(14, "must be at most the number of elements");
    visit_cast_counts(record, [&](std::size_t column, std::uint64_t member) {
        if (column >= 10 && column < 14 && member > nonzero_elements(losses)) {
            reader.refuse(column, "must be at most the number of elements that are not zero");
        }
    });
    constexpr std::string_view magnitude = "must be a finite float that is not negative";
    const auto is_magnitude = [](double value) {
        return value >= 0.0 && value <= static_cast<double>((std::numeric_limits<float>::max)());
    };
    losses.largest = reader.number<double>(15, magnitude);
    if (!isfinite(losses.largest) || !is_magnitude(losses.largest)) reader.refuse(15, magnitude);
    losses.smallest = reader.number<double>(16, magnitude);
    if (!isfinite(losses.smallest) || !is_magnitude(losses.smallest)) reader.refuse(16, magnitude);
    if (losses.smallest > losses.largest) reader.refuse(16, "must be at most the largest magnitude");
    return record;
}

}}  // namespace mp::detail

namespace mp::autocast { inline namespace MP_ISA_NAMESPACE {

/// The ledger as a table for a terminal, in lines of at most 110 characters unless names are long: for every
/// cast how many arrays were cast (and how many casts came from a cache), how many numbers, which share of
/// those other than zero overflowed, became zero, subnormal or inexact, and the magnitudes from the smallest
/// other than zero to the largest finite one; then the ops with what decided about them; the sizes of matrix
/// products; and in a sentence where the first infinity or NaN came from. Names are shown without control
/// characters, and cut off after 60 bytes.
///
///     std::fputs(mp::autocast::ledger_table(ledger).c_str(), stdout);
[[nodiscard]] inline std::string ledger_table(const ledger_contents& contents) {
    std::string text = detail::casts_table(contents);
    if (!contents.ops.empty()) text += "\n" + detail::ops_table(contents);
    if (!contents.products.empty()) text += "\n" + detail::products_table(contents.products);
    return text + "\n" + detail::wrapped(detail::non_finite_text(contents), 110);
}

/// Overload for a ledger; see contents_of().
[[nodiscard]] inline std::string ledger_table(const cast_ledger& ledger) {
    return ledger_table(contents_of(ledger));
}

/// The casts as comma-separated values after RFC 4180, a line for each cast_record after the line with the
/// names of the columns:
///
///     op,argument,direction,from,to,scaled,casts,reused,bytes,elements,overflowed,flushed,subnormal,inexact,
///     zeros,largest,smallest
///
/// in one line. `direction` is input or output, `scaled` 0 or 1, magnitudes are in the shortest form that
/// reads back the same. Calls, products and the first value that is not finite are not in it.
[[nodiscard]] inline std::string ledger_csv(const ledger_contents& contents) {
    std::string text = detail::ledger_csv_header();
    for (const cast_record& it : contents.casts) {
        std::array<std::string, detail::ledger_columns.size()> cells;
        detail::append_csv_text(cells[0], it.op);
        detail::append_csv_text(cells[1], it.argument);
        cells[2] = it.direction == cast_direction::input ? "input" : "output";
        detail::append_csv_text(cells[3], it.from);
        detail::append_csv_text(cells[4], it.to);
        cells[5] = it.scaled ? "1" : "0";
        detail::visit_cast_counts(it, [&](std::size_t column, std::uint64_t member) {
            detail::append_csv_number(cells[column], member);
        });
        detail::append_csv_number(cells[15], it.losses.largest);
        detail::append_csv_number(cells[16], it.losses.smallest);
        for (std::size_t i = 0; i < cells.size(); ++i) text.append(i == 0 ? "" : ",").append(cells[i]);
        text += '\n';
    }
    return text;
}

/// Overload for a ledger.
[[nodiscard]] inline std::string ledger_csv(const cast_ledger& ledger) {
    return ledger_csv(contents_of(ledger));
}

/// Reads what ledger_csv() has written, so that reports and advice can be had for another run:
///
///     const mp::autocast::ledger_contents contents = mp::autocast::read_ledger_csv(text);
///     std::fputs(mp::autocast::ledger_table(contents).c_str(), stdout);
///
/// Only `casts` is filled. Throws argument_error with line and column for a text that is no such table, for
/// numbers out of range, and for counts that contradict each other.
[[nodiscard]] inline ledger_contents read_ledger_csv(std::string_view text) {
    constexpr std::string_view function = "mp::autocast::read_ledger_csv";
    detail::csv_reader reader(function, text);
    reader.read_header();
    for (std::size_t i = 0; i < detail::ledger_columns.size() || i < reader.names().size(); ++i) {
        if (i < reader.names().size() && i < detail::ledger_columns.size() &&
            reader.names()[i] == detail::ledger_columns[i]) {
            continue;
        }
        detail::throw_argument(function, "line 1, column " + detail::error_text(i + 1),
                               i < reader.names().size() ? detail::printable(reader.names()[i]) : "",
                               i < detail::ledger_columns.size()
                                   ? "must be " + std::string(detail::ledger_columns[i])
                                   : "must not be there");
    }
    ledger_contents contents;
    while (reader.next()) contents.casts.push_back(detail::read_ledger_record(reader));
    return contents;
}

}}  // namespace mp::autocast
