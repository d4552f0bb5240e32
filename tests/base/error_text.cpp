// SPDX-License-Identifier: MIT
// Values in messages of errors: integers of every width, floating-point numbers in the shortest form, and texts.
#include <doctest/doctest.h>
#include <mp/error.hpp>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "nn/scaling/thrown.hpp"

namespace {

using mp::detail::error_text;

TEST_CASE("integers of every width and sign are printed whole") {
    CHECK(error_text(std::numeric_limits<std::int64_t>::min()) == "-9223372036854775808");
    CHECK(error_text(std::numeric_limits<std::int64_t>::max()) == "9223372036854775807");
    CHECK(error_text(std::numeric_limits<std::uint64_t>::max()) == "18446744073709551615");
    CHECK(error_text(std::int8_t{-128}) == "-128");
    CHECK(error_text(std::uint8_t{65}) == "65");
    CHECK(error_text(0) == "0");
    CHECK(error_text(true) == "true");
}

TEST_CASE("floating-point numbers are printed in the shortest form of their type, texts in quotes") {
    CHECK(error_text(0.1F) == "0.1");
    CHECK(error_text(static_cast<double>(0.1F)) == "0.10000000149011612");
    CHECK(error_text(-0.0) == "-0");
    CHECK(error_text(-std::numeric_limits<float>::infinity()) == "-inf");
    CHECK(error_text(std::string("it's")) == "'it's'");
    CHECK(error_text(std::string_view()) == "''");
}

TEST_CASE("a message names the function, the argument, its value and what was expected") {
    const auto message = [](auto value) {
        return thrown<mp::argument_error>(
            [&] { mp::detail::throw_argument("mp::f", "x", value, "must be 1"); });
    };
    CHECK(message(-2) == "mp::f: x is -2; it must be 1");
    CHECK(message(2U) == "mp::f: x is 2; it must be 1");
    CHECK(message(0.5) == "mp::f: x is 0.5; it must be 1");
    CHECK(message("two") == "mp::f: x is 'two'; it must be 1");
}

}  // namespace
