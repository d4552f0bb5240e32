// SPDX-License-Identifier: MIT
// mixed_precision._core: what mixed_precision/*.py is made of. Arrays are contiguous memory of the host; Python has looked at
// their types and sizes, and gives formats by name and modes by their place in the tuples that are exported here.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>
#include <mp/config.hpp>
#include <mp/error.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <exception>
#include <limits>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "blocks.hpp"
#include "formats.hpp"
#include "products.hpp"
#include "replay.hpp"

namespace nb = nanobind;

namespace mp_python {
namespace {

using source = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;
using target = nb::ndarray<nb::c_contig, nb::device::cpu>;

/// Calls f with a pointer to float or to double.
template <class Function>
decltype(auto) with_floats(const source& x, Function f) {
    if (x.dtype() == nb::dtype<float>()) return f(static_cast<const float*>(x.data()));
    if (x.dtype() == nb::dtype<double>()) return f(static_cast<const double*>(x.data()));
    throw nb::type_error("x must be of float32 or float64");
}

void check_bytes(std::size_t got, std::size_t wanted, const char* what) {
    if (got != wanted) {
        throw nb::value_error((std::string(what) + " has " + std::to_string(got) + " bytes; it must have " +
                               std::to_string(wanted))
                                  .c_str());
    }
}

template <class Enum>
Enum enumerator(int i) {
    return static_cast<Enum>(static_cast<unsigned char>(i));
}

mp::projection projection_of(int round, int saturate, int nan, int without_nan, int random_bits,
                             std::uint32_t random) {
    return {enumerator<mp::rounding>(round),         enumerator<mp::saturation>(saturate),
            static_cast<unsigned char>(random_bits), random,
            enumerator<mp::nan_propagation>(nan),    enumerator<mp::nan_substitute>(without_nan)};
}

unsigned round_to(const std::string& format, const source& x, const target& to, mp::projection projection,
                  int subnormals, int tininess, bool wants_flags, bool own_random_bits, std::uint64_t seed,
                  std::uint64_t first_index, int threads) {
    const format_row& row = format_named(format);
    check_bytes(to.nbytes(), x.size() * row.bytes, "to");
    rounding_request request{.environment = {.project = projection,
                                             .subnormals = enumerator<mp::subnormal_handling>(subnormals),
                                             .tiny = enumerator<mp::tininess>(tininess)},
                             .wants_flags = wants_flags,
                             .own_random_bits = own_random_bits,
                             .seed = seed,
                             .first_index = first_index,
                             .threads = threads};
    return with_floats(x, [&]<class From>(const From* from) {
        const nb::gil_scoped_release others;
        if constexpr (std::is_same_v<From, float>) {
            return row.from_float(from, to.data(), x.size(), request);
        } else {
            return row.from_double(from, to.data(), x.size(), request);
        }
    });
}

void to_float(const std::string& format, const source& x, const target& to, int threads) {
    const format_row& row = format_named(format);
    if (row.to_float == nullptr) throw nb::value_error("format is 'double'; float does not hold its numbers");
    check_bytes(x.nbytes(), x.size() * row.bytes, "x");
    check_bytes(to.nbytes(), x.size() * sizeof(float), "to");
    const nb::gil_scoped_release others;
    row.to_float(x.data(), static_cast<float*>(to.data()), x.size(), threads);
}

mp::range_report range_report(const std::string& format, const source& x, int threads) {
    const format_row& row = format_named(format);
    if (row.report_float == nullptr)
        throw nb::value_error(("format is '" + format + "'; it must be a reduced one").c_str());
    return with_floats(x, [&]<class From>(const From* from) {
        const nb::gil_scoped_release others;
        if constexpr (std::is_same_v<From, float>) {
            return row.report_float(from, x.size(), threads);
        } else {
            return row.report_double(from, x.size(), threads);
        }
    });
}

std::unique_ptr<quantized> quantize(const std::string& format, const source& x, mp::projection element,
                                    int rule, int direction, int nonfinite, float tensor_scale,
                                    int scale_floor, bool square_tiles, std::uint64_t seed, int threads) {
    const block_row& row = block_format_named(format);
    mp::quantize_options options;
    options.rule = enumerator<mp::scale_rule>(rule);
    options.element = element;
    options.seed = seed;
    options.direction = enumerator<mp::block_direction>(direction);
    options.nonfinite = enumerator<mp::nonfinite_handling>(nonfinite);
    options.tensor_scale = tensor_scale;
    options.scale_floor = enumerator<mp::block_scale_floor>(scale_floor);
    options.square_tiles = square_tiles;
    const auto rows = static_cast<std::ptrdiff_t>(x.shape(0));
    const auto columns = static_cast<std::ptrdiff_t>(x.shape(1));
    return with_floats(x, [&]<class From>(const From* from) {
        const nb::gil_scoped_release others;
        if constexpr (std::is_same_v<From, float>) {
            return row.from_float(from, rows, columns, options, threads);
        } else {
            return row.from_double(from, rows, columns, options, threads);
        }
    });
}

void copy_out(std::span<const std::byte> from, const target& to) {
    check_bytes(to.nbytes(), from.size(), "to");
    if (!from.empty()) std::memcpy(to.data(), from.data(), from.size());
}

std::unique_ptr<quantized> from_parts(const std::string& format, std::ptrdiff_t rows, std::ptrdiff_t columns,
                                      int direction, const source& bytes, const source& scales,
                                      float tensor_scale) {
    auto q = block_format_named(format).empty(rows, columns, enumerator<mp::block_direction>(direction));
    const auto copy_in = [](const source& from, std::span<std::byte> to, const char* what) {
        check_bytes(from.nbytes(), to.size(), what);
        if (!to.empty()) std::memcpy(to.data(), from.data(), to.size());
    };
    copy_in(bytes, q->bytes(), "packed");
    copy_in(scales, q->scales(), "scales");
    q->set_tensor_scale(tensor_scale);
    return q;
}

void multiply_matrices(int architecture, const std::string& a_format, const std::string& b_format,
                       const source& a, const source& b, const target& c, bool half_accumulators,
                       bool through_half, int promotion_interval, int threads) {
    const auto rows = static_cast<std::ptrdiff_t>(a.shape(0));
    const auto k = static_cast<std::ptrdiff_t>(a.shape(1));
    const auto columns = static_cast<std::ptrdiff_t>(b.shape(1));
    check_bytes(b.nbytes(), b.shape(1) * a.shape(1) * format_named(b_format).bytes, "b");
    check_bytes(c.nbytes(), a.shape(0) * b.shape(1) * (half_accumulators ? 2 : 4), "c");
    const nb::gil_scoped_release others;
    multiply({architecture, a_format, b_format, half_accumulators, through_half, promotion_interval, threads},
             a.data(), b.data(), c.data(), rows, columns, k);
}

using exponent_counts = std::vector<std::pair<std::int32_t, std::uint64_t>>;

exponent_counts exponents_of(const mp::range_report& report) {
    exponent_counts result;
    for (int e = mp::range_report::min_exponent; e <= mp::range_report::max_exponent; ++e) {
        if (report.with_exponent(e) != 0) result.emplace_back(e, report.with_exponent(e));
    }
    return result;
}

/// (largest, at_least, infinite, nan, zeros, exponents) of each step.
using step_tuple = std::tuple<double, bool, bool, bool, std::uint64_t, exponent_counts>;

mp::replay_result replay_steps(const std::vector<step_tuple>& steps, const std::string& policy,
                               const std::string& format) {
    std::vector<mp::trace_step> trace;
    trace.reserve(steps.size());
    for (const auto& [largest, at_least, infinite, nan, zeros, exponents] : steps) {
        mp::trace_step step;
        step.largest = largest;
        step.at_least = at_least;
        step.infinite = infinite;
        step.nan = nan;
        step.zeros = zeros;
        for (const auto& [exponent, count] : exponents) step.exponents.push_back({exponent, count});
        trace.push_back(std::move(step));
    }
    return replay(trace, policy, format);
}

nb::tuple names_of(std::initializer_list<const char*> names) {
    nb::list list;
    for (const char* name : names) list.append(name);
    return nb::tuple(list);
}

void define_names(nb::module_& m) {
    m.attr("ROUNDINGS") = names_of({"nearest_even", "nearest_away", "toward_zero", "upward", "downward",
                                    "to_odd", "stochastic_a", "stochastic_b", "stochastic_c"});
    m.attr("SATURATIONS") = names_of({"none", "finite", "propagate"});
    m.attr("NANS") = names_of({"keep", "canonical"});
    m.attr("NAN_SUBSTITUTES") = names_of({"largest", "zero"});
    m.attr("SUBNORMALS") = names_of({"gradual", "flush_results", "flush_all"});
    m.attr("TININESS") = names_of({"after_rounding", "before_rounding"});
    m.attr("SCALE_RULES") = names_of({"standard", "floor", "ceil", "even", "nearest", "torchao_rceil",
                                      "torchao_ceil", "four_over_six_mse", "four_over_six_mae"});
    m.attr("DIRECTIONS") = names_of({"along_rows", "along_columns"});
    m.attr("SCALE_FLOORS") = names_of({"smallest", "normal", "none"});
    m.attr("NONFINITE") = names_of({"propagate", "by_element", "nan_scale"});
    m.attr("VERSION") = std::to_string(MP_VERSION_MAJOR) + "." + std::to_string(MP_VERSION_MINOR) + "." +
                        std::to_string(MP_VERSION_PATCH);
}

void define_reports(nb::module_& m) {
    nb::class_<mp::range_report>(m, "RangeReport", "What becomes of numbers in a format, to nearest even.")
        .def_ro("count", &mp::range_report::count, "numbers looked at")
        .def_ro("zeros", &mp::range_report::zeros, "exact zeros")
        .def_ro("flushed", &mp::range_report::flushed, "not zero, but zero in the format")
        .def_ro("subnormals", &mp::range_report::subnormals, "subnormal in the format")
        .def_ro("overflows", &mp::range_report::overflows,
                "finite, but beyond the largest number of the format")
        .def_ro("infinities", &mp::range_report::infinities, "already infinite")
        .def_ro("nans", &mp::range_report::nans, "already NaN")
        .def_ro("largest_magnitude", &mp::range_report::largest_magnitude, "of the finite ones")
        .def_prop_ro("flushed_fraction", &mp::range_report::flushed_fraction,
                     "of the finite numbers that are not zero")
        .def_prop_ro("exponents", &exponents_of,
                     "(e, how many numbers have 2^e <= |x| < 2^(e+1)), ascending");
    nb::class_<mp::quantization_report>(m, "QuantizationReport",
                                        "A quantised array beside what it was made from.")
        .def_ro("count", &mp::quantization_report::count, "elements")
        .def_ro("nonfinite", &mp::quantization_report::nonfinite, "infinite or NaN, before or after")
        .def_ro("flushed", &mp::quantization_report::flushed, "not zero, but became zero")
        .def_ro("clamped", &mp::quantization_report::clamped, "beyond the largest element times its scale")
        .def_ro("max_error", &mp::quantization_report::max_error, "the largest |quantised - value|")
        .def_ro("squared_error", &mp::quantization_report::squared_error, "the sum of (quantised - value)^2")
        .def_ro("squared_value", &mp::quantization_report::squared_value, "the sum of value^2")
        .def_prop_ro("relative_error", &mp::quantization_report::relative_error,
                     "noise over signal: 0.01 is 1%");
    using result = mp::replay_result;
    const auto total = [](std::uint64_t mp::scale_event_totals::* member) {
        return [member](const result& r) { return r.totals.*member; };
    };
    nb::class_<result>(m, "ReplayResult", "What a loss scaler made of a recorded run.")
        .def_ro("name", &result::name, "of the policy")
        .def_prop_ro("iterations", total(&mp::scale_event_totals::iterations), "steps that were replayed")
        .def_prop_ro("skips", total(&mp::scale_event_totals::skips), "steps that were skipped")
        .def_prop_ro("growths", total(&mp::scale_event_totals::growths), "how often the scale was raised")
        .def_prop_ro("backoffs", total(&mp::scale_event_totals::backoffs), "how often the scale was lowered")
        .def_ro("skipped_steps", &result::skipped_steps, "their numbers, ascending")
        .def_ro("longest_skip_run", &result::longest_skip_run, "skipped steps in a row")
        .def_ro("scales", &result::scales, "the scale of each step")
        .def_ro("first_scale", &result::first_scale, "of the first step")
        .def_ro("final_scale", &result::final_scale, "after the last step")
        .def_ro("smallest_scale", &result::smallest_scale, "of all steps")
        .def_ro("largest_scale", &result::largest_scale, "of all steps")
        .def_ro("underflow_known", &result::underflow_known, "whether the run has exponents")
        .def_ro("mean_underflow", &result::mean_underflow, "share of values that became zero, over the steps")
        .def_ro("largest_underflow", &result::largest_underflow, "the same of the worst step")
        .def_ro("failed_at", &result::failed_at, "the step at which the policy refused to go on, or None");
    m.def("replay_table", [](const std::vector<result>& results) { return mp::replay_table(results); });
}

nb::list formats_as_tuples() {
    nb::list list;
    for (const format_row& row : all_formats()) {
        list.append(nb::make_tuple(row.name, row.width, row.bytes, row.is_signed, row.has_infinity,
                                   row.has_nan, row.largest, row.smallest_normal, row.smallest_subnormal,
                                   row.epsilon));
    }
    return list;
}

nb::list blocks_as_tuples() {
    nb::list list;
    for (const block_row& row : all_block_formats()) {
        list.append(nb::make_tuple(row.name, row.element, row.scale, row.block_size, row.element_width,
                                   row.has_tensor_scale));
    }
    return list;
}

nb::list policies_as_tuples() {
    nb::list list;
    for (const policy_name& it : all_policies()) {
        list.append(nb::make_tuple(std::string(it.name), std::string(it.about)));
    }
    return list;
}

}  // namespace

NB_MODULE(_core, m) {
    nb::register_exception_translator([](const std::exception_ptr& p, void*) {
        try {
            std::rethrow_exception(p);
        } catch (const mp::argument_error& error) {
            PyErr_SetString(PyExc_ValueError, error.what());
        }
    });
    define_names(m);
    define_reports(m);
    nb::class_<mp::projection>(m, "Projection");
    m.def("projection", &projection_of);
    m.def("formats", &formats_as_tuples);
    m.def("block_formats", &blocks_as_tuples);
    m.def("policies", &policies_as_tuples);
    m.def("round_to", &round_to);
    m.def("to_float", &to_float);
    m.def("range_report", &range_report);
    nb::class_<quantized>(m, "Quantized")
        .def_prop_ro("shape", [](const quantized& q) { return std::pair(q.rows(), q.columns()); })
        .def_prop_ro("tensor_scale", &quantized::tensor_scale)
        .def("byte_counts", [](quantized& q) { return std::pair(q.bytes().size(), q.scales().size()); })
        .def("packed", [](quantized& q, const target& to) { copy_out(q.bytes(), to); })
        .def("scales", [](quantized& q, const target& to) { copy_out(q.scales(), to); })
        .def("codes",
             [](const quantized& q, const target& to) {
                 check_bytes(to.nbytes(),
                             static_cast<std::size_t>(q.rows()) * static_cast<std::size_t>(q.columns()),
                             "to");
                 const nb::gil_scoped_release others;
                 q.unpack(static_cast<std::uint8_t*>(to.data()));
             })
        .def("dequantize",
             [](const quantized& q, const target& to, int threads) {
                 check_bytes(to.nbytes(),
                             sizeof(float) * static_cast<std::size_t>(q.rows()) *
                                 static_cast<std::size_t>(q.columns()),
                             "to");
                 const nb::gil_scoped_release others;
                 q.dequantize(static_cast<float*>(to.data()), threads);
             })
        .def("multiply",
             [](const quantized& a, const quantized& b, int architecture, const target& c, int threads) {
                 check_bytes(c.nbytes(),
                             sizeof(float) * static_cast<std::size_t>(a.rows()) *
                                 static_cast<std::size_t>(b.columns()),
                             "c");
                 const nb::gil_scoped_release others;
                 a.multiply(b, architecture, static_cast<float*>(c.data()), threads);
             })
        .def("report", [](const quantized& q, const source& x, int threads) {
            return with_floats(x, [&](const auto* values) {
                check_bytes(x.size(),
                            static_cast<std::size_t>(q.rows()) * static_cast<std::size_t>(q.columns()), "x");
                const nb::gil_scoped_release others;
                return q.report(values, threads);
            });
        });
    m.def("quantize", &quantize);
    m.def("from_parts", &from_parts);
    m.def("multiply", &multiply_matrices);
    m.def("replay", &replay_steps);
}

}  // namespace mp_python
