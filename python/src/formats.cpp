// SPDX-License-Identifier: MIT
#include "formats.hpp"

#include <mp/convert.hpp>
#include <mp/numbers/format/limits.hpp>
#include <mp/numbers/format/named_formats.hpp>
#include <mp/numbers/format/philox.hpp>

#include <array>
#include <limits>
#include <string>
#include <type_traits>

namespace mp_python {
namespace {

template <class Format>
struct number_of {
    using type = mp::basic_float<Format>;
};
template <>
struct number_of<mp::formats::binary32> {
    using type = float;
};
template <>
struct number_of<mp::formats::binary64> {
    using type = double;
};

/// Element by element where flags are wanted, or subnormal numbers are flushed; else by the kernels.
template <class To, class From>
unsigned round_array(const From* from, void* memory, std::size_t count, const rounding_request& request) {
    To* const to = static_cast<To*>(memory);
    const mp::cpu exec{.threads = request.threads};
    const std::span source(from, count);
    const std::span target(to, count);
    mp::environment env = request.environment;
    if (request.wants_flags || env.subnormals != mp::subnormal_handling::gradual) {
        for (std::size_t i = 0; i < count; ++i) {
            if (request.own_random_bits) {
                env.project.random = mp::random_bits(request.seed, request.first_index + i);
            }
            to[i] = mp::round_to<To>(from[i], env);
        }
        return env.raised.to_unsigned();
    }
    if (request.own_random_bits) {
        mp::convert_stochastic(exec, source, target, request.seed, request.first_index, env.project);
    } else if (env.project == mp::projection{}) {
        mp::convert(exec, source, target);
    } else {
        mp::convert(exec, source, target, env.project);
    }
    return 0;
}

template <class From>
void widen_array(const void* memory, float* to, std::size_t count, int threads) {
    const std::span from(static_cast<const From*>(memory), count);
    mp::convert(mp::cpu{.threads = threads}, from, std::span(to, count));
}

template <class Target, class From>
mp::range_report report_array(const From* values, std::size_t count, int threads) {
    return mp::report_range<Target>(mp::cpu{.threads = threads}, std::span(values, count));
}

template <class Format>
constexpr format_row row_of() {
    using number = typename number_of<Format>::type;
    using layout = mp::layout_of<Format>;
    using limits = std::numeric_limits<number>;
    format_row row{.name = Format::name,
                   .width = layout::width,
                   .bytes = sizeof(number),
                   .is_signed = Format::is_signed,
                   .has_infinity = layout::has_infinity,
                   .has_nan = layout::has_nan,
                   .largest = static_cast<double>((limits::max)()),
                   .smallest_normal = static_cast<double>((limits::min)()),
                   .smallest_subnormal = static_cast<double>(limits::denorm_min()),
                   .epsilon = static_cast<double>(limits::epsilon()),
                   .from_float = &round_array<number, float>,
                   .from_double = &round_array<number, double>,
                   .to_float = nullptr,
                   .report_float = nullptr,
                   .report_double = nullptr};
    if constexpr (!std::is_same_v<number, double>) row.to_float = &widen_array<number>;
    if constexpr (mp::reduced<number>) {
        row.report_float = &report_array<number, float>;
        row.report_double = &report_array<number, double>;
    }
    return row;
}

template <class... Formats>
constexpr auto rows_of(mp::formats::list<Formats...>) {
    return std::array{row_of<Formats>()...};
}

constexpr auto rows = rows_of(mp::formats::all{});

}  // namespace

std::span<const format_row> all_formats() {
    return rows;
}

const format_row& format_named(std::string_view name) {
    for (const format_row& row : rows) {
        if (name == row.name) return row;
    }
    std::string names;
    for (const format_row& row : rows) names.append(names.empty() ? "" : ", ").append(row.name);
    throw mp::argument_error("format is '" + std::string(name) + "'; it must be one of " + names);
}

}  // namespace mp_python
