// SPDX-License-Identifier: MIT
/// \file
/// Histograms of errors as pictures: one HTML page that needs nothing from anywhere else.
#pragma once

#include <mp/arrays/analysis/error_histogram.hpp>
#include <mp/base/number_text.hpp>
#include <mp/frontends/report/chart.hpp>
#include <mp/frontends/report/html.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mp::report {

/// A histogram with the words that stand beside it.
struct named_errors {
    std::string name;
    error_histogram errors;
};

}  // namespace mp::report

namespace mp::report { inline namespace MP_ISA_NAMESPACE {

/// How errors are distributed over their logarithms: bars of four bins, whose area is the share of values. Empty if no error
/// is finite and not zero.
inline std::string error_chart(std::string_view title, const error_histogram& errors) {
    struct bar {
        double from;
        double to;
        std::uint64_t count;
    };
    std::vector<bar> bars;
    for (const auto& it : errors.bins()) {
        // A quarter of what lies between two powers of two.
        const double octave = std::exp2(std::floor(std::log2(it.from)));
        const double quarter = std::floor(4 * (it.from / octave - 1));
        const double from = std::log2(octave * (1 + quarter / 4));
        const double to = std::log2(octave * (1 + (quarter + 1) / 4));
        if (bars.empty() || bars.back().to < to) bars.push_back({from, to, 0});
        bars.back().count += it.count;
    }
    if (bars.empty()) return {};
    const auto height = [&](const bar& it) {
        return static_cast<double>(it.count) / static_cast<double>(errors.count()) / (it.to - it.from);
    };
    double top = 0;
    for (const bar& it : bars) top = (std::max)(top, height(it));
    const double begin = std::floor(bars.front().from);
    const double end = std::ceil(bars.back().to);
    chart picture(title, {begin, 0}, {end, 1.1 * top}, 240);
    const double step = tick_step(end - begin, 8);
    for (double x = std::ceil(begin / step) * step; x <= end; x += step) {
        picture.x_tick(x, "2^" + detail::fixed_text(x, 0), true);
    }
    for (const double share : {0.5 * top, top}) picture.y_tick(share, detail::percent_text(share));
    for (const bar& it : bars) {
        picture.bar("bar", it.from, it.to, height(it),
                    detail::error_text(it.count) + " from 2^" + detail::fixed_text(it.from, 2));
    }
    picture.x_title("error");
    picture.y_title("share of values for each power of two");
    return picture.html();
}

/// A page of histograms with their quantiles.
///
///     const mp::error_summary s = mp::error_report(computed, exact);
///     const mp::report::named_errors shown[] = {{"ulps", s.ulps}, {"relative", s.relative}};
///     std::ofstream("errors.html") << mp::report::error_page("half against exact", shown);
inline std::string error_page(std::string_view title, std::span<const named_errors> histograms) {
    std::string page =
        html_page_begin(title, std::string(chart_style) + ".bar { fill: #4d7ea8; stroke: var(--back); }\n");
    std::vector<std::vector<std::string>> rows;
    for (const named_errors& it : histograms) {
        const error_histogram& errors = it.errors;
        std::vector<std::string> row{it.name, detail::error_text(errors.count()),
                                     detail::error_text(errors.zeros()),
                                     detail::error_text(errors.not_finite())};
        for (const double part : {0.5, 0.9, 0.99, 0.999})
            row.push_back(detail::short_text(errors.quantile(part)));
        row.push_back(detail::short_text(errors.largest()));
        rows.push_back(std::move(row));
    }
    constexpr std::array<std::string_view, 9> headings{"",    "values", "exact", "not finite", "50%",
                                                       "90%", "99%",    "99.9%", "max"};
    page += html_table(headings, rows);
    for (const named_errors& it : histograms) {
        page += "<h2>" + html_escaped(it.name) + "</h2>\n" + error_chart(it.name, it.errors);
    }
    return page + "<p class=\"note\">Quantiles are bounds that are at most a sixteenth too large.</p>\n" +
           html_page_end();
}

}}  // namespace mp::report
