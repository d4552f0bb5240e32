// SPDX-License-Identifier: MIT
/// \file
/// The raw figures that benchmark programs write, read back, and what is derived from them.
#pragma once

#include <mp/arrays/io/csv.hpp>
#include <mp/base/number_text.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bench::page {

/// One cell of a table: the seconds of an iteration, and what an iteration did.
struct record {
    std::string program;
    std::string build;
    std::string table;
    std::string row;
    std::string contender;
    std::string role;  ///< mp, contender, reference or limit
    std::string unit;
    double elements;
    double bytes;
    double operations;
    double fastest;
    double median;
    double slowest;

    [[nodiscard]] double figure(double seconds) const {
        if (unit == "GFLOP/s") return operations / seconds * 1e-9;
        if (unit == "TFLOP/s") return operations / seconds * 1e-12;
        if (unit == "GB/s") return bytes / seconds * 1e-9;
        return seconds * 1e9 / elements;
    }
    [[nodiscard]] double figure() const { return figure(median); }
};

inline double times_faster(const record& one, const record& other) {
    const double ratio = one.figure() / other.figure();
    return one.unit == "ns/element" ? 1.0 / ratio : ratio;
}

/// A table of one build, with its rows and contenders in the order of the file.
struct table {
    std::string name;
    std::string unit;
    std::vector<std::string> rows = {};
    std::vector<std::string> contenders = {};
    std::vector<record> records = {};
    std::vector<std::string> notes = {};

    [[nodiscard]] const record* find(std::string_view row, std::string_view contender) const {
        for (const record& it : records) {
            if (it.row == row && it.contender == contender) return &it;
        }
        return nullptr;
    }

    [[nodiscard]] std::vector<const record*> in_row(std::string_view row) const {
        std::vector<const record*> result;
        for (const record& it : records) {
            if (it.row == row) result.push_back(&it);
        }
        return result;
    }

    /// Whether the other contenders are somebody else's: two programs compare mp with itself.
    [[nodiscard]] bool has_peers() const {
        return !records.empty() && records.front().program != "autocast" &&
               records.front().program != "loss_scaling";
    }

    /// What mp did in the row, nullptr if it did nothing: its best if there are several ways.
    [[nodiscard]] const record* own(std::string_view row) const {
        return best(row, [](const record& it) { return it.role == "mp"; });
    }

    [[nodiscard]] const record* best_peer(std::string_view row) const {
        return best(row, [](const record& it) { return it.role == "contender"; });
    }

    /// The limit of the row: the slowest, if there are several.
    [[nodiscard]] const record* limit(std::string_view row) const {
        const record* result = nullptr;
        for (const record& it : records) {
            if (it.row != row || it.role != "limit") continue;
            if (result == nullptr || times_faster(*result, it) > 1.0) result = &it;
        }
        return result;
    }

    /// Whether another contender is faster than mp, or mp misses nine tenths of what the machine does.
    [[nodiscard]] bool is_behind(std::string_view row) const {
        const record* const mine = own(row);
        const record* const peer = best_peer(row);
        const record* const most = limit(row);
        return mine != nullptr && has_peers() &&
               ((peer != nullptr && times_faster(*mine, *peer) < 1.0) ||
                (most != nullptr && times_faster(*mine, *most) < 0.9));
    }

private:
    template <class Accept>
    [[nodiscard]] const record* best(std::string_view row, Accept accept) const {
        const record* result = nullptr;
        for (const record& it : records) {
            if (it.row != row || !accept(it)) continue;
            if (result == nullptr || times_faster(it, *result) > 1.0) result = &it;
        }
        return result;
    }
};

/// All tables of one build.
struct results {
    std::vector<table> tables;

    [[nodiscard]] const table* find(std::string_view name) const {
        for (const table& it : tables) {
            if (it.name == name) return &it;
        }
        return nullptr;
    }
};

inline std::string file_text(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    if (!file) throw std::runtime_error("cannot read " + path.string());
    return text;
}

inline std::vector<record> read_records(const std::filesystem::path& path) {
    const std::string text = file_text(path);
    const std::string name = path.string();
    mp::detail::csv_reader reader(name, text);
    reader.read_header();
    std::vector<record> result;
    while (reader.next()) {
        const auto cell = [&](std::size_t column) { return std::string(reader.cell(column)); };
        const auto number = [&](std::size_t column) {
            return reader.number<double>(column, "must be a number");
        };
        result.push_back({cell(0), cell(1), cell(2), cell(3), cell(4), cell(5), cell(6), number(7), number(8),
                          number(9), number(11), number(12), number(13)});
    }
    return result;
}

/// The notes below the tables of a Markdown file of results, by the name of the table.
inline std::map<std::string, std::vector<std::string>> read_notes(const std::filesystem::path& path) {
    std::map<std::string, std::vector<std::string>> result;
    if (!std::filesystem::exists(path)) return result;
    std::ifstream file(path);
    std::string name;
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with("**")) {
            // **name, unit**
            name = line.substr(2, line.rfind(", ") - 2);
        } else if (!line.empty() && !line.starts_with('|')) {
            result[name].push_back(line);
        }
    }
    return result;
}

/// The results of a build: of all files <program>_<build>.csv of the folder, those about the machine and
/// about the library's main tasks first.
inline results read_results(const std::filesystem::path& folder, const std::string& build) {
    static constexpr std::string_view order[] = {"limits", "gemm", "convert", "unscale", "array", "layers"};
    std::vector<std::filesystem::path> files;
    const std::string ending = "_" + build + ".csv";
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        if (entry.path().filename().string().ends_with(ending)) files.push_back(entry.path());
    }
    const auto rank = [&](const std::filesystem::path& path) {
        const std::string name = path.filename().string();
        const std::string program = name.substr(0, name.size() - ending.size());
        return std::pair(std::find(std::begin(order), std::end(order), program) - std::begin(order), program);
    };
    std::sort(files.begin(), files.end(), [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
    results result;
    for (const std::filesystem::path& path : files) {
        const auto notes = read_notes(std::filesystem::path(path).replace_extension(".md"));
        for (record& it : read_records(path)) {
            if (result.tables.empty() || result.tables.back().name != it.table) {
                result.tables.push_back({it.table, it.unit});
                const auto found = notes.find(it.table);
                if (found != notes.end()) result.tables.back().notes = found->second;
            }
            table& to = result.tables.back();
            const auto insert = [](std::vector<std::string>& list, const std::string& name) {
                if (std::find(list.begin(), list.end(), name) == list.end()) list.push_back(name);
            };
            insert(to.rows, it.row);
            insert(to.contenders, it.contender);
            to.records.push_back(std::move(it));
        }
    }
    return result;
}

/// With three significant digits, and not more than three after the point.
inline std::string number_text(double value) {
    using mp::detail::fixed_text;
    if (value >= 99.95) return fixed_text(value, 0);
    if (value >= 9.995) return fixed_text(value, 1);
    if (value >= 0.9995) return fixed_text(value, 2);
    return fixed_text(value, 3);
}

/// "0.05 ns/element (0.048 to 0.061)"
inline std::string figure_text(const record& it) {
    double low = it.figure(it.fastest);
    double high = it.figure(it.slowest);
    if (low > high) std::swap(low, high);
    return number_text(it.figure()) + " " + it.unit + " (" + number_text(low) + " to " + number_text(high) +
           ")";
}

/// A share of the limit: "92 %".
inline std::string fraction_text(double share) {
    return mp::detail::fixed_text(100 * share, share < 0.0995 ? 1 : 0) + " %";
}

}  // namespace bench::page
