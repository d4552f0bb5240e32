// SPDX-License-Identifier: MIT
/// \file
/// Advice from the counts of a cast ledger.
#pragma once

#include <mp/base/number_text.hpp>
#include <mp/error.hpp>
#include <mp/frontends/report/ledger_text.hpp>
#include <mp/nn/autocast/cast_ledger.hpp>
#include <mp/nn/autocast/category.hpp>
#include <mp/nn/autocast/ledger_contents.hpp>
#include <mp/nn/autocast/precision.hpp>
#include <mp/numbers/format/operations.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mp::autocast {

/// Of what elements the operands of a product are, as far as it matters for their sizes.
enum class operand_elements : unsigned char {
    sixteen_bit,  ///< half or bfloat16
    float8,       ///< float8 of either kind, with one scale for an array
    block_scaled  ///< MX formats, with a scale for each block of 32 numbers
};

/// A product m x k times k x n with padding.
struct padded_product {
    std::ptrdiff_t m = 0;
    std::ptrdiff_t n = 0;
    std::ptrdiff_t k = 0;
    std::ptrdiff_t multiple = 1;
    bool padded = false;      ///< whether any size had to grow
    double added_work = 0.0;  ///< multiplications with padding, as a share of those without; 0 for no work
};

/// Subjects of advice.
enum class finding : unsigned char {
    non_finite,      ///< the first infinity or NaN
    overflow,        ///< numbers too large for the format they are cast to
    flush,           ///< numbers that become zero
    needless_float,  ///< a matrix product in full precision whose operands would fit a low one
    repeated_cast,   ///< a weight that is cast again for every call
    dimension        ///< sizes of a product that tensor cores do not like
};

/// A number that an advice rests on.
struct evidence {
    std::string_view name;
    double value;
    friend bool operator==(const evidence&, const evidence&) = default;
};

/// One thing to look at.
struct advice {
    finding what = finding::overflow;
    std::string op;
    std::string argument;                   ///< empty where it is about the op
    std::optional<op_category> present{};   ///< nothing where the ledger does not know, or there are several
    std::optional<op_category> proposed{};  ///< nothing where another category would not help
    std::vector<evidence> numbers{};
    std::string sentence;
};

/// When something is worth an advice.
struct advisor_options {
    /// Share of the numbers other than zero that may overflow in a cast. A single infinity spoils a step.
    double overflowed_fraction = 0.0;
    /// Share of the numbers other than zero that may become zero in a cast. In Micikevicius et al. (arXiv
    /// 1710.03740) some 5 % of the weight gradients of a model became zero, and that mattered.
    double flushed_fraction = 0.01;
    /// Casts of a weight, none of them from a cache, from which on keeping them is proposed. The ledger does
    /// not tell arrays apart: with many layers of an op, it should be above their number.
    std::uint64_t repeated_casts = 16;
    /// Names of arguments that are weights.
    std::vector<std::string> weights = {"w", "weight", "weights", "kernel", "filter", "bias"};
};

}  // namespace mp::autocast

namespace mp::autocast { inline namespace MP_ISA_NAMESPACE {

/// The number of which m, n and k should be multiples: 8 for 16-bit formats (DeepSpeed warns about others),
/// 16 for float8 (Transformer Engine and torchao refuse others) and 32 for the blocks of MX formats (the
/// sizes to which Transformer Engine pads).
constexpr std::ptrdiff_t size_multiple(operand_elements elements) noexcept {
    constexpr std::array<std::ptrdiff_t, 3> multiples = {8, 16, 32};
    const auto index = static_cast<std::size_t>(elements);
    return index < multiples.size() ? multiples[index] : 1;
}

/// The kind of a format by its name in product_record::type; nothing for formats without such a rule, such as
/// float. "float8" is what operands of float8 regions are called.
constexpr std::optional<operand_elements> operand_elements_named(std::string_view type) noexcept {
    if (type == "half" || type == "bfloat16") return operand_elements::sixteen_bit;
    if (type.starts_with("mxfp")) return operand_elements::block_scaled;
    if (type.starts_with("float8")) return operand_elements::float8;
    return std::nullopt;
}

/// The smallest sizes that are at least m, n and k and multiples of size_multiple(elements), and the share of
/// work that they add: 0.6 for k = 10 that becomes 16. Throws argument_error for negative sizes, for sizes so
/// large that the padded ones are no std::ptrdiff_t, and for a value that is no enumerator.
constexpr padded_product padding_advice(std::ptrdiff_t m, std::ptrdiff_t n, std::ptrdiff_t k,
                                        operand_elements elements) {
    constexpr std::string_view function = "mp::autocast::padding_advice";
    if (elements > operand_elements::block_scaled) {
        detail::throw_argument(function, "elements", static_cast<unsigned>(elements),
                               "must be an enumerator of mp::autocast::operand_elements");
    }
    padded_product result;
    result.multiple = size_multiple(elements);
    const auto up = [&](std::string_view name, std::ptrdiff_t size) {
        if (size < 0 || size > (std::numeric_limits<std::ptrdiff_t>::max)() - result.multiple) {
            detail::throw_argument(function, name, size,
                                   "must be a size that is not negative, with room above");
        }
        return (size + result.multiple - 1) / result.multiple * result.multiple;
    };
    result.m = up("m", m);
    result.n = up("n", n);
    result.k = up("k", k);
    result.padded = result.m != m || result.n != n || result.k != k;
    if (m != 0 && n != 0 && k != 0) {
        result.added_work = static_cast<double>(result.m) / static_cast<double>(m) *
                                (static_cast<double>(result.n) / static_cast<double>(n)) *
                                (static_cast<double>(result.k) / static_cast<double>(k)) -
                            1.0;
    }
    return result;
}

constexpr std::string_view name_of(finding what) noexcept {
    constexpr std::array<std::string_view, 6> names = {"non-finite value", "overflow",      "flush to zero",
                                                       "needless float",   "repeated cast", "dimension"};
    const auto index = static_cast<std::size_t>(what);
    return index < names.size() ? names[index] : "unknown";
}

/// The value of a number that the advice rests on; nothing where it has no such number.
inline std::optional<double> number_of(const advice& it, std::string_view name) {
    for (const evidence& number : it.numbers) {
        if (number.name == name) return number.value;
    }
    return std::nullopt;
}

}}  // namespace mp::autocast

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The category in which an op was called; nothing where there are none or several.
inline std::optional<op_category> category_in(const autocast::ledger_contents& contents,
                                              std::string_view op) {
    std::optional<op_category> category;
    for (const autocast::op_record& it : contents.ops) {
        if (it.op != op) continue;
        if (category && *category != it.category) return std::nullopt;
        category = it.category;
    }
    return category;
}

/// How numbers are called if they are gradients by the conventions of the library: the argument dy, and the
/// results of an op whose name says that it belongs to a backward pass. Of the arguments of such an op that
/// have no names nobody knows. Empty for all others.
inline std::string_view gradient_words(const autocast::cast_record& cast) {
    if (cast.argument == "dy") return "It is a gradient";
    if (cast.op.find("backward") == std::string::npos) return {};
    if (cast.direction == autocast::cast_direction::output) return "It is a gradient";
    return cast.argument.starts_with("argument ") ? "If it is a gradient" : "";
}

/// "2^12": the exponent of a power of two.
inline std::string power_text(int exponent) {
    return "2^" + error_text(exponent);
}

/// "'x' of op 'linear'".
inline std::string argument_words(std::string_view op, std::string_view argument) {
    return "'" + std::string(argument) + "' of op '" + std::string(op) + "'";
}

inline std::string cast_words_of(const autocast::cast_record& it) {
    return (it.direction == autocast::cast_direction::input ? "The cast of " : "The cast of the result ") +
           argument_words(it.op, it.argument) + " from " + it.from + " to " + it.to;
}

inline autocast::advice advice_on(autocast::finding what, const autocast::ledger_contents& contents,
                                  std::string_view op, std::string_view argument) {
    autocast::advice result;
    result.what = what;
    result.op = op;
    result.argument = argument;
    result.present = category_in(contents, op);
    return result;
}

inline void advise_on_first(std::vector<autocast::advice>& to, const autocast::ledger_contents& contents) {
    if (!contents.first_non_finite) return;
    const autocast::non_finite_value& value = *contents.first_non_finite;
    autocast::advice it = advice_on(autocast::finding::non_finite, contents, value.op, value.argument);
    it.numbers = {{"element", static_cast<double>(value.index)}, {"call", static_cast<double>(value.call)}};
    it.sentence = non_finite_text(contents);
    // Another category cannot help where the value comes from outside, or the op is in full precision.
    if (value.origin != autocast::value_origin::argument && it.present != op_category::full_precision) {
        it.proposed = op_category::full_precision;
    }
    to.push_back(it);
}

/// Whether full precision would spare the numbers a cast: not where it is done already, or where the caller's
/// own array has the format that they are cast to.
inline bool full_precision_helps(const autocast::cast_record& cast, std::optional<op_category> present) {
    const bool returned =
        cast.argument == "result";  // what a kernel returns is rounded to what it computes in
    return present != op_category::full_precision &&
           (cast.direction == autocast::cast_direction::input || returned);
}

inline void advise_on_overflow(std::vector<autocast::advice>& to, const autocast::ledger_contents& contents,
                               const autocast::cast_record& cast, const autocast::advisor_options& options) {
    const double fraction = fraction_of(cast.losses.overflowed, cast.losses);
    if (cast.losses.overflowed == 0 || !(fraction > options.overflowed_fraction)) return;
    autocast::advice it = advice_on(autocast::finding::overflow, contents, cast.op, cast.argument);
    it.numbers = {{"overflowed", static_cast<double>(cast.losses.overflowed)},
                  {"share", fraction},
                  {"amax", cast.losses.largest}};
    it.sentence = cast_words_of(cast) + " overflows for " +
                  counted(cast.losses.overflowed, "number", "numbers") + " (" + percent_text(fraction) +
                  " of those other than zero): the largest magnitude is " +
                  magnitude_text(cast.losses.largest);
    const auto range = range_named(cast.to);
    if (range && cast.losses.largest > range->largest) {
        const int down = static_cast<int>(std::ceil(std::log2(cast.losses.largest / range->largest)));
        it.numbers.push_back({"largest of format", range->largest});
        it.numbers.push_back({"exponent to scale by", static_cast<double>(-down)});
        it.sentence += ", the largest of the format " + magnitude_text(range->largest) + ". Scaled by " +
                       power_text(-down) + " or less it would fit";
    }
    if (full_precision_helps(cast, it.present)) it.proposed = op_category::full_precision;
    it.sentence += it.proposed ? "; else run the op in full_precision" : "; else give it an array of float";
    if (cast.to == "half" && cast.losses.largest < range_of<formats::bfloat16>().largest) {
        it.sentence += ", or in bfloat16, whose largest number is " +
                       magnitude_text(range_of<formats::bfloat16>().largest);
    }
    if (const auto gradient = gradient_words(cast); !gradient.empty()) {
        it.sentence.append(". ").append(gradient);
        it.sentence += ": dynamic loss scaling ends this by backing off";
    }
    it.sentence += ".";
    to.push_back(it);
}

inline void advise_on_flush(std::vector<autocast::advice>& to, const autocast::ledger_contents& contents,
                            const autocast::cast_record& cast, const autocast::advisor_options& options) {
    const double fraction = fraction_of(cast.losses.flushed, cast.losses);
    if (cast.losses.flushed == 0 || !(fraction > options.flushed_fraction)) return;
    autocast::advice it = advice_on(autocast::finding::flush, contents, cast.op, cast.argument);
    it.numbers = {{"flushed", static_cast<double>(cast.losses.flushed)},
                  {"share", fraction},
                  {"smallest", cast.losses.smallest},
                  {"amax", cast.losses.largest}};
    it.sentence = cast_words_of(cast) + " makes zero of " +
                  counted(cast.losses.flushed, "number", "numbers") + " (" + percent_text(fraction) +
                  " of those other than zero); magnitudes go down to " + magnitude_text(cast.losses.smallest);
    const auto range = range_named(cast.to);
    if (cast.scaled) {
        it.sentence +=
            ". Each array is scaled by its largest number already, so loss scaling would not help: "
            "the numbers spread too far for the format";
    } else if (range && cast.losses.smallest > 0.0 && !gradient_words(cast).empty()) {
        // The smallest number times 2^up is the smallest of the format or more.
        const int up = static_cast<int>(std::ceil(std::log2(range->smallest / cast.losses.smallest)));
        const int room = static_cast<int>(std::floor(std::log2(range->largest / cast.losses.largest)));
        it.numbers.push_back({"exponent that keeps all", static_cast<double>(up)});
        it.numbers.push_back({"exponent that fits", static_cast<double>(room)});
        it.sentence.append(". ").append(gradient_words(cast)).append(": scale the loss");
        if (room < 1) {
            it.sentence += " no further, since the largest would overflow; use a format of a wider range";
        } else if (up <= room) {
            it.sentence += " by " + power_text(up) + " or more, up to " + power_text(room) +
                           " more than now, and no number is lost";
        } else {
            it.sentence += " by up to " + power_text(room) +
                           " more than now, where the largest still fits; " + power_text(up) +
                           " would keep all";
        }
        it.sentence += ".";
        to.push_back(it);
        return;
    }
    if (full_precision_helps(cast, it.present)) {
        it.proposed = op_category::full_precision;
        it.sentence += "; if these numbers matter, run the op in full_precision";
        if (cast.to == "half") it.sentence += " or in bfloat16";
    }
    it.sentence += ".";
    to.push_back(it);
}

/// The low precision of a region's policy, for products.
inline format_range low_range(precision value) {
    return value == precision::fp16 ? range_of<formats::binary16>() : range_of<formats::bfloat16>();
}

/// A product in float for its category: whether all that it read would fit the region's low precision.
inline void advise_on_needless_float(std::vector<autocast::advice>& to,
                                     const autocast::ledger_contents& contents, const autocast::op_record& op,
                                     const autocast::advisor_options& options) {
    if (op.category != op_category::full_precision || op.active == precision::off) return;
    if (op.compute_type != "float" || records_of(contents.products, op.op).empty()) return;
    const format_range low = low_range(op.active);
    double largest = 0.0;
    double smallest = 0.0;
    bool known = false;
    const auto include = [&](double least, double most) {
        known = true;
        largest = (std::max)(largest, most);
        if (least > 0.0 && (!(smallest > 0.0) || least < smallest)) smallest = least;
    };
    for (const autocast::input_record& it : records_of(contents.inputs, op.op)) {
        include(it.smallest, it.largest);
    }
    for (const autocast::cast_record& it : records_of(contents.casts, op.op)) {
        if (it.direction == autocast::cast_direction::output) {
            // Results that do not fit where they are written would not fit a low precision either.
            if (it.losses.overflowed != 0 ||
                fraction_of(it.losses.flushed, it.losses) > options.flushed_fraction) {
                return;
            }
            continue;
        }
        include(it.losses.smallest, it.losses.largest);
    }
    if (!known || largest > low.largest || (smallest > 0.0 && smallest < low.smallest)) return;
    autocast::advice it = advice_on(autocast::finding::needless_float, contents, op.op, {});
    it.present = op.category;
    it.proposed = op_category::lower_precision;
    it.numbers = {{"amax", largest},
                  {"smallest", smallest},
                  {"largest of format", low.largest},
                  {"smallest of format", low.smallest}};
    it.sentence = "Op '" + op.op + "' multiplies matrices in " + op.compute_type +
                  ", because its category is full_precision (" + op.rule +
                  "), and all that it read, magnitudes " + magnitudes_text(smallest, largest) +
                  ", has a place in " + std::string(low.name) + ": lower_precision would be faster.";
    to.push_back(it);
}

inline void advise_on_repetition(std::vector<autocast::advice>& to, const autocast::ledger_contents& contents,
                                 const autocast::cast_record& cast,
                                 const autocast::advisor_options& options) {
    if (cast.direction != autocast::cast_direction::input || cast.reused != 0 ||
        cast.casts < options.repeated_casts) {
        return;
    }
    if (std::find(options.weights.begin(), options.weights.end(), cast.argument) == options.weights.end()) {
        return;
    }
    autocast::advice it = advice_on(autocast::finding::repeated_cast, contents, cast.op, cast.argument);
    it.numbers = {{"casts", static_cast<double>(cast.casts)}, {"bytes", static_cast<double>(cast.bytes)}};
    it.sentence =
        "Argument " + argument_words(cast.op, cast.argument) + " was cast " + error_text(cast.casts) +
        " times, and no cast was used again. Where it is the same weight, pass it as "
        "mp::autocast::cached(weight, version) in a region that lasts as long as the weight, or has "
        "a cache that is kept.";
    to.push_back(it);
}

/// "m = 10 -> 16".
inline std::string dimension_words(std::string_view name, std::ptrdiff_t size, std::ptrdiff_t padded) {
    if (size == padded) return {};
    return std::string(name) + " = " + error_text(size) + " -> " + error_text(padded);
}

}}  // namespace mp::detail

namespace mp::autocast { inline namespace MP_ISA_NAMESPACE {

/// What stands out in a ledger, the first value that is not finite first, then by op and argument as in the
/// ledger:
///
/// - casts that overflow for more than `overflowed_fraction`: full_precision, or bfloat16 instead of half;
/// - casts that make zero of more than `flushed_fraction`: for gradients a larger loss scale, within the room
///   that the largest of them leaves, else full_precision;
/// - matrix products in full_precision by their category, although everything they read would fit the low
///   precision of the region: lower_precision. The sums of the product are not looked at, nor how many bits
///   the operands need;
/// - weights that are cast again and again: cached().
///
/// Ratios and thresholds are about what was counted: a ledger of a few steps says little about a whole
/// training. Contents from read_ledger_csv() get advice about their casts, without present categories. Throws
/// argument_error for shares that are not between 0 and 1.
[[nodiscard]] inline std::vector<advice> advise(const ledger_contents& contents,
                                                const advisor_options& options = {}) {
    constexpr std::string_view function = "mp::autocast::advise";
    const auto check = [&](std::string_view name, double share) {
        if (!isfinite(share) || share < 0.0 || share > 1.0) {
            detail::throw_argument(function, name, share, "must be a share, from 0 to 1");
        }
    };
    check("options.overflowed_fraction", options.overflowed_fraction);
    check("options.flushed_fraction", options.flushed_fraction);
    std::vector<advice> result;
    detail::advise_on_first(result, contents);
    for (const cast_record& it : contents.casts) {
        detail::advise_on_overflow(result, contents, it, options);
        detail::advise_on_flush(result, contents, it, options);
        detail::advise_on_repetition(result, contents, it, options);
    }
    for (const op_record& it : contents.ops) {
        detail::advise_on_needless_float(result, contents, it, options);
    }
    return result;
}

/// Overload for a ledger; see contents_of().
[[nodiscard]] inline std::vector<advice> advise(const cast_ledger& ledger,
                                                const advisor_options& options = {}) {
    return advise(contents_of(ledger), options);
}

/// An advice for every matrix product whose sizes are no multiples of what tensor cores work in; see
/// padding_advice(). Products in float have no such rule here.
[[nodiscard]] inline std::vector<advice> check_dimensions(const ledger_contents& contents) {
    std::vector<advice> result;
    for (const product_record& product : contents.products) {
        const auto elements = operand_elements_named(product.type);
        if (!elements) continue;
        const padded_product padded = padding_advice(product.m, product.n, product.k, *elements);
        if (!padded.padded) continue;
        advice it = detail::advice_on(finding::dimension, contents, product.op, {});
        it.numbers = {
            {"m", static_cast<double>(padded.m)}, {"n", static_cast<double>(padded.n)},
            {"k", static_cast<double>(padded.k)}, {"multiple", static_cast<double>(padded.multiple)},
            {"added work", padded.added_work},    {"calls", static_cast<double>(product.calls)}};
        std::string changes;
        for (const std::string& words : {detail::dimension_words("m", product.m, padded.m),
                                         detail::dimension_words("n", product.n, padded.n),
                                         detail::dimension_words("k", product.k, padded.k)}) {
            if (!words.empty()) changes += (changes.empty() ? "" : ", ") + words;
        }
        it.sentence = "Op '" + product.op + "' multiplies " + product.type +
                      " matrices of m = " + detail::error_text(product.m) +
                      ", n = " + detail::error_text(product.n) + ", k = " + detail::error_text(product.k) +
                      "; tensor cores are fast for multiples of " + detail::error_text(padded.multiple) +
                      ": pad " + changes + ", which adds " + detail::percent_text(padded.added_work) +
                      " of work.";
        result.push_back(it);
    }
    return result;
}

/// Overload for a ledger; see contents_of().
[[nodiscard]] inline std::vector<advice> check_dimensions(const cast_ledger& ledger) {
    return check_dimensions(contents_of(ledger));
}

/// The advice as readable lines: what it is about and the sentence, and the categories where another one is
/// proposed. One line if there is none.
[[nodiscard]] inline std::string advice_text(std::span<const advice> list) {
    if (list.empty()) return "Nothing stands out.\n";
    std::string text;
    for (const advice& it : list) {
        text.append(name_of(it.what)).append(": ").append(it.sentence);
        if (it.proposed) {
            text.append(" [").append(it.present ? name_of(*it.present) : "category not known");
            text.append(" -> ").append(name_of(*it.proposed)).append("]");
        }
        text += "\n";
    }
    return text;
}

}}  // namespace mp::autocast
