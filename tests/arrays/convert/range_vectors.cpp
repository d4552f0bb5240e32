// SPDX-License-Identifier: MIT
// Range reports by vectors equal those of the portable code, which range_report.cpp proves, and a conversion
// that reports does both as each does alone.
#include <mp/block_scaled.hpp>
#include <mp/convert.hpp>

#include <doctest/doctest.h>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "arrays/convert/vector_values.hpp"
#include "oracle/library.hpp"
#include "oracle/random.hpp"

namespace {

template <class Target, class Source>
void compare_reports(oracle::disagreements& wrong, std::span<const Source> values, const char* what) {
    mp::cpu exec{.instructions = mp::instruction_set::portable};
    const mp::range_report expected = mp::report_range<Target>(exec, values);
    for (const mp::instruction_set isa : vector_instruction_sets()) {
        exec.instructions = isa;
        if (mp::report_range<Target>(exec, values) != expected) {
            wrong.add(std::string(name_of(isa)), what, values.size());
        }
    }
}

template <class Source>
void compare_targets(oracle::disagreements& wrong, std::span<const Source> values, const char* what) {
    compare_reports<mp::half, Source>(wrong, values, what);
    compare_reports<mp::bfloat16, Source>(wrong, values, what);
    compare_reports<mp::float8_e4m3fn, Source>(wrong, values, what);
    compare_reports<mp::float8_e5m2fnuz, Source>(wrong, values, what);
    compare_reports<mp::float4_e2m1fn, Source>(wrong, values, what);
}

}  // namespace

TEST_CASE_TEMPLATE("vectors count what the portable code counts", Source, float, mp::half, mp::bfloat16,
                   mp::tfloat32, mp::float8_e4m3fn) {
    oracle::disagreements wrong;
    for (int kind = 0; kind < block_value_kinds; ++kind) {
        const std::vector<Source> x = block_values<Source>(5003, kind, 70);
        compare_targets<Source>(wrong, x, block_value_names[kind]);
        for (std::size_t length = 0; length <= 130; ++length) {
            compare_reports<mp::half, Source>(wrong, std::span<const Source>(x).subspan(length % 7, length),
                                              block_value_names[kind]);
        }
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE_TEMPLATE("floats around every change of class are counted right", Target, mp::half, mp::bfloat16,
                   mp::tfloat32, mp::float8_e4m3fn, mp::float8_e5m2, mp::float8_e4m3fnuz, mp::float6_e2m3fn,
                   mp::float4_e2m1fn) {
    // The neighbours of all numbers of the format near zero and infinity, and of the midpoints between them.
    std::vector<float> x;
    using layout = mp::layout_of<typename Target::format>;
    constexpr std::uint32_t top = layout::max_finite_code;
    constexpr std::uint32_t smallest_normal = layout::hidden_bit;
    for (std::uint32_t code = 0; code <= top; ++code) {
        const bool is_near_end = code <= 4 || code + 4 >= top;
        const bool is_near_normal = code + 4 >= smallest_normal && code <= smallest_normal + 4;
        if (!is_near_end && !is_near_normal) continue;
        const auto value =
            static_cast<double>(Target::from_bits(static_cast<typename layout::storage>(code)));
        const double step = std::ldexp(1.0, std::ilogb(value == 0 ? 1e-40 : value) - layout::fraction_bits);
        for (const double around : {value, value + step / 2, value - step / 2, value * 2}) {
            const auto bits = mp::detail::bit_cast<std::uint32_t>(static_cast<float>(around));
            for (const std::uint32_t near : {bits - 1, bits, bits + 1}) {
                x.push_back(mp::detail::bit_cast<float>(near));
                x.push_back(mp::detail::bit_cast<float>(near | 0x8000'0000u));
            }
        }
    }
    // One by one, so that no two mistakes make up for each other.
    oracle::disagreements wrong;
    for (const float& value : x) compare_reports<Target, float>(wrong, std::span(&value, 1), "one");
    compare_reports<Target, float>(wrong, x, "all");
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE("counters and chunks of many equal values") {
    oracle::disagreements wrong;
    for (const float value : {0.0f, 1.0f, 1e-40f, 1e30f}) {
        const std::vector<float> x(70001, value);
        compare_reports<mp::half, float>(wrong, x, "equal");
        for (const int threads : {1, 2, 5}) {
            const mp::range_report report = mp::report_range<mp::half>(mp::cpu{.threads = threads}, x);
            if (report.count != x.size()) wrong.add("count", threads, value);
        }
    }
    CHECK(wrong.count == 0);
}

TEST_CASE_TEMPLATE("a conversion that reports does what conversion and report do", Target, mp::half,
                   mp::float8_e4m3fn) {
    const std::vector<float> x = block_values<float>(150001, 1, 3);
    for (const mp::projection p : {mp::projection{}, mp::projection{.saturate = mp::saturation::finite},
                                   mp::projection{mp::rounding::upward}}) {
        for (const std::size_t size : {std::size_t{0}, std::size_t{5}, std::size_t{32768}, x.size()}) {
            const auto from = std::span(x).first(size);
            std::vector<Target> expected(size);
            mp::convert(mp::cpu{.instructions = mp::instruction_set::portable}, from, expected, p);
            const mp::range_report report = mp::report_range<Target>(mp::cpu{}, from);
            for (const mp::instruction_set isa : all_instruction_sets()) {
                for (const int threads : {1, 3}) {
                    std::vector<Target> to(size + 1, Target(2.0f));
                    CHECK(mp::convert_and_report(mp::cpu{.threads = threads, .instructions = isa}, from,
                                                 std::span(to).first(size), p) == report);
                    CHECK(to[size].bits() == Target(2.0f).bits());
                    CHECK((size == 0 || std::memcmp(to.data(), expected.data(), size * sizeof(Target)) == 0));
                }
            }
        }
    }
}

TEST_CASE("a conversion that reports refuses what conversion refuses, before it writes") {
    std::vector<float> from(4, 1.0f);
    std::vector<mp::half> to(3, mp::half(7.0f));
    CHECK_THROWS_WITH_AS(mp::convert_and_report(mp::cpu{}, from, to),
                         "mp::convert_and_report: to.size() is 3; it must equal from.size(), which is 4",
                         mp::argument_error);
    to.resize(4);
    CHECK_THROWS_WITH_AS(mp::convert_and_report(mp::cpu{.threads = 0}, from, to),
                         "mp::convert_and_report: exec.threads is 0; it must be at least 1",
                         mp::argument_error);
    CHECK(to[0] == mp::half(7.0f));
}

#if TEST_HAS_MODES
TEST_CASE("the caller's modes change no report, and no report changes them") {
    for (int kind = 0; kind < block_value_kinds; ++kind) {
        const std::vector<float> x = block_values<float>(2011, kind, 62);
        const mp::range_report half = mp::report_range<mp::half>(mp::cpu{}, x);
        const mp::range_report bfloat16 = mp::report_range<mp::bfloat16>(mp::cpu{}, x);
        for (const mode_bits modes : caller_modes) {
            for (const mp::instruction_set isa : all_instruction_sets()) {
                CAPTURE(modes);
                CAPTURE(kind);
                const mp::cpu exec{.instructions = isa};
                mp::range_report got[2];
                mode_bits after = 0;
                {
                    const modes_scope scope(modes);
                    got[0] = mp::report_range<mp::half>(exec, x);
                    got[1] = mp::report_range<mp::bfloat16>(exec, x);
                    after = current_modes();
                }
                CHECK(after == modes);
                CHECK(got[0] == half);
                CHECK(got[1] == bfloat16);
            }
        }
    }
}
#endif
