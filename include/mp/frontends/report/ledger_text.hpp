// SPDX-License-Identifier: MIT
/// \file
/// What reports about a cast ledger have in common: ranges of formats, shares, and words.
#pragma once

#include <mp/base/number_text.hpp>
#include <mp/error.hpp>
#include <mp/nn/autocast/cast_ledger.hpp>
#include <mp/nn/autocast/ledger_contents.hpp>
#include <mp/nn/autocast/types.hpp>
#include <mp/numbers/format/binary_conversion.hpp>
#include <mp/numbers/format/named_formats.hpp>

#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The magnitudes that a format has.
struct format_range {
    std::string_view name;
    double smallest;  ///< above zero
    double smallest_normal;
    double largest;
};

template <format_descriptor Format>
constexpr format_range range_of() {
    using layout = layout_of<Format>;
    return {Format::name, to_double<Format>(layout::has_zero ? 1 : 0),
            to_double<Format>(layout::min_normal_code), to_double<Format>(layout::max_finite_code)};
}
template <class... Formats>
constexpr std::array<format_range, sizeof...(Formats)> ranges_of(formats::list<Formats...>) {
    return {range_of<Formats>()...};
}

/// The format of the library that has this name; nothing for a format of somebody else.
inline std::optional<format_range> range_named(std::string_view name) {
    static constexpr auto ranges = ranges_of(formats::all{});
    for (const format_range& it : ranges) {
        if (it.name == name) return it;
    }
    return std::nullopt;
}

/// The elements of casts that can be lost: those other than zero.
inline std::uint64_t nonzero_elements(const autocast::cast_losses& losses) {
    return losses.elements - losses.zeros;
}

/// `count` as a share of those elements.
inline double fraction_of(std::uint64_t count, const autocast::cast_losses& losses) {
    const std::uint64_t all = nonzero_elements(losses);
    return all == 0 ? 0.0 : static_cast<double>(count) / static_cast<double>(all);
}

/// A share in a table: 0 only where nothing is.
inline std::string fraction_text(std::uint64_t count, const autocast::cast_losses& losses) {
    return count == 0 ? std::string("0") : percent_text(fraction_of(count, losses));
}

/// A magnitude with up to three digits, or as a whole number of up to six.
inline std::string magnitude_text(double value) {
    if (value >= 1000.0 && value < 999999.5) return fixed_text(value, 0);
    char buffer[32];
    const std::to_chars_result end =
        std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::general, 3);
    return {buffer, end.ptr};
}

/// The extremes of what was cast.
inline std::string magnitudes_text(double smallest, double largest, std::string_view between = " to ") {
    if (!(largest > 0.0)) return "none";
    return magnitude_text(smallest).append(between) + magnitude_text(largest);
}

/// Records of a kind by the names of their ops.
template <class Record>
std::vector<Record> records_of(const std::vector<Record>& records, std::string_view op) {
    std::vector<Record> result;
    for (const Record& it : records) {
        if (it.op == op) result.push_back(it);
    }
    return result;
}

/// The names of the ops that have casts or calls, in the order in which they first occurred.
inline std::vector<std::string> op_names_in(const autocast::ledger_contents& contents) {
    std::vector<std::string> names;
    const auto add = [&](const auto& records) {
        for (const auto& it : records) {
            bool known = false;
            for (const std::string& name : names) known = known || name == it.op;
            if (!known) names.push_back(it.op);
        }
    };
    add(contents.ops);
    add(contents.casts);
    return names;
}

/// Meaning of the first value that is not finite.
inline std::string_view meaning_of(autocast::value_origin origin) {
    switch (origin) {
        case autocast::value_origin::argument:
            return "It was there before the op: look at what computed the argument, which this ledger has "
                   "not seen as an op's result.";
        case autocast::value_origin::cast:
            return "The cast of the argument made it from a finite number that is too large for the format: "
                   "run the op in full precision or in a format of a wider range, or scale the numbers down.";
        case autocast::value_origin::kernel:
            return "The op computed it from finite arguments: its result leaves the range of the format it "
                   "is "
                   "written in, or is undefined.";
        case autocast::value_origin::result:
            return "The op's result was finite, and the cast of it made this: it is too large for the format "
                   "that it was rounded to.";
    }
    return "Its origin is not known.";
}

/// Origin of the first value that is not finite.
inline std::string place_of(const autocast::non_finite_value& value) {
    std::string text(value.is_nan ? "NaN" : "infinity");
    text.append(" in '").append(value.argument).append("' of op '").append(value.op).append("', element ");
    text.append(error_text(value.index));
    if (!value.layer.empty()) text.append(", in layer '").append(value.layer).append("'");
    return text.append(", after ").append(counted(value.call, "call", "calls")).append(" of ops");
}

/// The same and what it means, as sentences.
inline std::string non_finite_text(const autocast::ledger_contents& contents) {
    if (!contents.first_non_finite) return "All values were finite.";
    return "The first value that is not finite: " + place_of(*contents.first_non_finite) + ". " +
           std::string(meaning_of(contents.first_non_finite->origin));
}

}}  // namespace mp::detail
