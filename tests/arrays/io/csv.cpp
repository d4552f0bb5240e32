// SPDX-License-Identifier: MIT
// The reader of tables: its grammar, and that no text makes it take more memory than the text has.
#include <doctest/doctest.h>
#include <mp/arrays/io/csv.hpp>
#include <mp/nn/scaling/event_log.hpp>
#include <mp/nn/scaling/trace.hpp>

#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "count_allocations.hpp"

namespace {

using table = std::vector<std::vector<std::string>>;

table read_table(std::string_view text) {
    mp::detail::csv_reader reader("read", text);
    reader.read_header();
    table lines;
    while (reader.next()) {
        auto& line = lines.emplace_back();
        for (std::size_t i = 0; i < reader.names().size(); ++i) line.emplace_back(reader.cell(i));
    }
    return lines;
}

/// The message of the refusal, and the bytes that were allocated until then.
struct refused {
    std::string message;
    std::size_t bytes = 0;
};

template <class Read>
refused refusal(Read&& read, std::string_view text) {
    refused result;
    const std::size_t before = allocated_bytes;
    try {
        static_cast<void>(read(text));
    } catch (const mp::argument_error& error) {
        result.message = error.what();
    }
    result.bytes = allocated_bytes - before;
    return result;
}

template <class Number>
Number read_number(const std::string& text) {
    mp::detail::csv_reader reader("read", text);
    reader.read_header();
    reader.next();
    return reader.number<Number>(0, "must be a number");
}

}  // namespace

TEST_CASE("cells are separated by commas and may be between quotes") {
    CHECK(read_table("a,b\n1,2\n3,4\n") == table{{"1", "2"}, {"3", "4"}});
    CHECK(read_table("\xEF\xBB\xBF"
                     "a,b\r\n1,\r\n,4") == table{{"1", ""}, {"", "4"}});
    CHECK(read_table("a,b\n\"1\",\"2,\r\n\"\n") == table{{"1", "2,\r\n"}});
    CHECK(read_table("\"a\"\"b\",c\n\"\"\"\",\"x\"\"y\"\"\"\n\"\",\"\"\"\"\"\"") ==
          table{{"\"", "x\"y\""}, {"", "\"\""}});
    CHECK(read_table("a\n\n") == table{{""}});
    CHECK(read_table("a,b\n").empty());
}

TEST_CASE("a line names itself and its cells when they are refused") {
    const auto message = [](std::string_view text) { return refusal(read_table, text).message; };
    CHECK(message("") == "read: line 1 is missing; it must name the columns");
    CHECK(message("a,b\n1,2\n1,2,3\n") ==
          "read: the number of cells in line 3 is 3; it must be 2, as in the header");
    CHECK(message("a,b\n\"\n\n\",2\n1\n") ==
          "read: the number of cells in line 5 is 1; it must be 2, as in the header");
    CHECK(message("a,b\n1,2\"\n") ==
          "read: line 2, column 2 has a quote inside of a cell without quotes around it");
    CHECK(message("a,b\n1,2,3,\"\n") == "read: line 2, column 4 has a quote that is not closed");
    CHECK(message("a,b\n\"1\" ,2\n") == "read: line 2, column 1 has text behind the closing quote");
}

TEST_CASE("numbers are read exactly, and nothing else is") {
    CHECK(read_number<double>("x\n0.1\n") == 0.1);
    CHECK(read_number<float>("x\n-3.4028234663852886e+38\n") == std::numeric_limits<float>::lowest());
    CHECK(read_number<double>("x\n5e-324\n") == std::numeric_limits<double>::denorm_min());
    CHECK(read_number<double>("x\ninf\n") == std::numeric_limits<double>::infinity());
    CHECK(read_number<int>("x\n-12\n") == -12);
    for (const char* text :
         {"x\n1e400\n", "x\n1e-400\n", "x\n+1\n", "x\n 1\n", "x\n1 \n", "x\n1,5\n", "x\n\n"}) {
        CAPTURE(text);
        CHECK_THROWS_AS(static_cast<void>(read_number<double>(text)), mp::argument_error);
    }
}

TEST_CASE("memory is bounded by columns and not by commas") {
    const std::size_t count = 1 << 20;
    const std::string commas(count, ',');
    std::string quotes;
    for (std::size_t i = 0; i < count / 8; ++i) quotes += "\"\"\"\",";
    const auto events = [](std::string_view text) { return mp::scale_event_log::read_csv(text); };
    const auto trace = [](std::string_view text) { return mp::read_trace_csv(text); };
    const std::string event_header = mp::detail::event_csv({}, {});
    constexpr std::size_t little = 64 << 10;

    refused result = refusal(events, commas);
    CHECK(result.message ==
          "mp::scale_event_log::read_csv: the number of cells in line 1 is 1048577; it must be "
          "that of the columns, at most 256");
    CHECK(result.bytes < little);
    result = refusal(events, event_header + commas);
    CHECK(result.message ==
          "mp::scale_event_log::read_csv: the number of cells in line 2 is 1048577; it must be "
          "18, as in the header");
    CHECK(result.bytes < little);
    result = refusal(events, event_header + quotes);
    CHECK(result.message.find("the number of cells in line 2 is 131073; it must be 18") != std::string::npos);
    CHECK(result.bytes < little);
    result = refusal(trace, "largest\n" + commas);
    CHECK(result.message.find("the number of cells in line 2 is 1048577; it must be 1") != std::string::npos);
    CHECK(result.bytes < little);
    result = refusal(trace, commas);
    CHECK(result.message.find("the number of cells in line 1 is 1048577") != std::string::npos);
    CHECK(result.bytes < little);
    // What was unquoted is forgotten with its line.
    std::string lines = "a,b\n";
    for (std::size_t i = 0; i < count / 16; ++i) lines += "\"\"\"\",\"x\"\"\"\n";
    const std::size_t before = allocated_bytes;
    mp::detail::csv_reader reader("read", lines);
    reader.read_header();
    std::size_t read = 0;
    for (; reader.next(); ++read) {
        if (reader.cell(0) != "\"" || reader.cell(1) != "x\"") break;
    }
    CHECK(read == count / 16);
    CHECK(allocated_bytes - before < little);
    // A cell of quotes takes as much as it holds.
    result = refusal(trace, "largest\n\"" + std::string(count, '"') + "\"");
    CHECK(result.message.find("must be a finite number") != std::string::npos);
    CHECK(result.bytes < 8 * count);
}
