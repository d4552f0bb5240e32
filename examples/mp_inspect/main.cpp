// SPDX-License-Identifier: MIT
/// \file
/// mp-inspect: what a number becomes in every format, or what the bits of one format mean.
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "formats.hpp"
#include "options.hpp"
#include "pictures.hpp"

namespace mp_inspect { namespace {

void print(const std::string& text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
}

/// Columns side by side; the last one may hold anything.
void print_table(const std::vector<std::vector<std::string>>& rows) {
    std::vector<std::size_t> widths;
    for (const auto& row : rows) {
        widths.resize(std::max(widths.size(), row.size()));
        for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
    }
    for (const auto& row : rows) {
        std::string line;
        for (std::size_t i = 0; i < row.size(); ++i) {
            line += row[i];
            if (i + 1 < row.size()) line += std::string(widths[i] - row[i].size() + 2, ' ');
        }
        print(line + "\n");
    }
}

void list(const std::vector<format_entry>& formats) {
    std::vector<std::vector<std::string>> rows = {
        {"format", "bits", "s+e+f", "largest", "smallest normal", "smallest", "specials"}};
    for (const format_entry& it : formats) {
        const limits x = it.limits_of();
        rows.push_back({it.name, std::to_string(it.width), x.layout, x.largest, x.smallest_normal, x.smallest,
                        x.specials});
    }
    print_table(rows);
}

void show_table(const std::vector<format_entry>& formats, const options& chosen) {
    const number_text text = parse_value(chosen.value);
    std::vector<std::vector<std::string>> rows = {
        {"format", "bits", "shortest", "value", "error", "flags", "fields"}};
    for (const format_entry& it : formats) {
        if (!it.in_short_table && chosen.format.empty()) continue;
        const finding x = it.find(text, chosen.projection);
        rows.push_back({it.name, x.number.bits, x.number.shortest, x.value, x.error, x.flags,
                        picture(x.number, chosen)});
    }
    print_table(rows);
}

void show_one(const format_entry& format, const options& chosen) {
    if (!is_code(chosen.value)) {
        const finding x = format.find(parse_value(chosen.value), chosen.projection);
        print(boxes(x.number, chosen) + to_string(x.number));
        print("error       " + x.error + (x.error == "exact" || x.error == "-" ? "\n" : " ulp\n"));
        print("flags       " + x.flags + "\n");
        return;
    }
    std::uint64_t code = 0;
    const char* first = chosen.value.data() + 2;
    const char* last = chosen.value.data() + chosen.value.size();
    const auto result = std::from_chars(first, last, code, 16);
    if (result.ec != std::errc{} || (format.width < 64 && code >> format.width != 0)) {
        throw user_error(chosen.value + " has more than the " + std::to_string(format.width) + " bits of " +
                         format.name);
    }
    const mp::number_description x = format.describe_code(code);
    print(boxes(x, chosen) + to_string(x));
}

void run(const options& chosen) {
    if (chosen.help) return print(std::string(usage));
    const std::vector<format_entry> formats = all_formats();
    if (chosen.list) return list(formats);
    if (!chosen.format.empty() && chosen.format != "all") {
        const auto place = std::find_if(formats.begin(), formats.end(),
                                        [&](const format_entry& it) { return it.name == chosen.format; });
        if (place == formats.end()) {
            throw user_error("--format is '" + chosen.format +
                             "'; it must be `all` or a name that --list shows");
        }
        return show_one(*place, chosen);
    }
    if (is_code(chosen.value)) {
        throw user_error(chosen.value + " is a code and needs --format NAME; as a number it would be " +
                         chosen.value + "p0");
    }
    show_table(formats, chosen);
}

}  // namespace
}  // namespace mp_inspect

int main(int count, char** arguments) {
    try {
        mp_inspect::run(mp_inspect::parse(count, arguments));
        return 0;
    } catch (const mp_inspect::user_error& error) {
        std::fprintf(stderr, "mp-inspect: %s\n", error.what());
        return 2;
    }
}
