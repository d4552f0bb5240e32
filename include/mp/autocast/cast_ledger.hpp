// SPDX-License-Identifier: MIT
/// \file
/// What autocast has done, counted: which casts, what they lost, and where infinities and NaNs first
/// appeared.
#pragma once

#include <mp/autocast/category.hpp>
#include <mp/autocast/precision.hpp>
#include <mp/autocast/types.hpp>
#include <mp/format/limits.hpp>
#include <mp/format/operations.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mp::autocast {

/// Which way a cast went.
enum class cast_direction : unsigned char {
    input,  ///< from the caller's array to what the op's kernel reads
    output  ///< from what the kernel wrote to the caller's array
};

/// What casts did to the numbers. An element is counted once in each count that it belongs to.
struct cast_losses {
    std::uint64_t elements = 0;    ///< numbers cast
    std::uint64_t overflowed = 0;  ///< finite, and rounded to as many bits beyond the largest finite number:
                                   ///< infinite, NaN or, in a saturating cast, that number afterwards
    std::uint64_t flushed = 0;     ///< not zero, and zero afterwards
    std::uint64_t subnormal = 0;   ///< subnormal afterwards, where bits of precision are missing
    std::uint64_t inexact = 0;     ///< finite before and after, but another number: flushed ones included
    std::uint64_t zeros = 0;       ///< zero before
    double largest = 0.0;          ///< largest finite magnitude before
    double smallest = 0.0;         ///< smallest non-zero magnitude before; 0 where there was none

    constexpr cast_losses& operator+=(const cast_losses& other) {
        elements += other.elements;
        overflowed += other.overflowed;
        flushed += other.flushed;
        subnormal += other.subnormal;
        inexact += other.inexact;
        zeros += other.zeros;
        largest = other.largest > largest ? other.largest : largest;
        const bool smaller = other.smallest > 0.0 && (smallest <= 0.0 || other.smallest < smallest);
        smallest = smaller ? other.smallest : smallest;
        return *this;
    }
    friend constexpr bool operator==(const cast_losses&, const cast_losses&) = default;
};

/// What counting needs to know of the format that was cast to.
struct cast_target {
    std::string_view name;
    std::size_t bytes;  ///< of an element
    double largest;     ///< finite number
    double smallest_normal;
    double overflow;  ///< what is larger does not round to `largest` by its last bit alone

    /// The format as a cast sees it that multiplies by `scale` before, and divides by it after the rounding.
    constexpr cast_target scaled(double scale) const {
        return {name, bytes, largest / scale, smallest_normal / scale, overflow / scale};
    }
};

/// The facts of a format.
template <eligible To>
constexpr cast_target cast_target_of() {
    using limits = std::numeric_limits<To>;
    constexpr auto largest = static_cast<double>(limits::max());
    double last_bit = 1.0;
    while (last_bit * 2.0 <= largest) last_bit *= 2.0;
    for (int i = 1; i < limits::digits; ++i) last_bit /= 2.0;
    return {type_name<To>(), sizeof(To), largest, static_cast<double>(limits::min()),
            largest + last_bit / 2.0};
}

/// Compares numbers with their casts, of as many elements. Both are given as floats, which hold the numbers
/// of all formats that autocast casts.
inline cast_losses count_losses(std::span<const float> before, std::span<const float> after,
                                const cast_target& target) {
    cast_losses counts;
    counts.elements = before.size();
    for (std::size_t i = 0; i < before.size(); ++i) {
        if (!isfinite(before[i])) continue;
        const double x = static_cast<double>(before[i]);
        const double magnitude = x < 0.0 ? -x : x;
        if (magnitude > counts.largest) counts.largest = magnitude;
        if (!(magnitude > 0.0)) {
            ++counts.zeros;
            continue;
        }
        if (!(counts.smallest > 0.0) || magnitude < counts.smallest) counts.smallest = magnitude;
        if (!isfinite(after[i])) {
            ++counts.overflowed;
            continue;
        }
        const double y = static_cast<double>(after[i]);
        const double result = y < 0.0 ? -y : y;
        if (y < x || y > x) ++counts.inexact;
        if (!(result > 0.0)) ++counts.flushed;
        if (result > 0.0 && result < target.smallest_normal) ++counts.subnormal;
        if (magnitude > target.overflow) ++counts.overflowed;
    }
    return counts;
}

/// All casts of one argument of an op from one format to another.
struct cast_record {
    std::string op;
    std::string argument;  ///< name or, where the op does not say it, number of the argument
    std::string from;
    std::string to;
    cast_direction direction = cast_direction::input;
    std::uint64_t casts = 0;  ///< arrays or numbers cast
    std::uint64_t reused =
        0;                    ///< arrays whose cast came from the cache; their elements are not counted again
    std::uint64_t bytes = 0;  ///< read and written by the casts
    cast_losses losses;
    /// Whether each array was multiplied by a power of two so that its largest number just fits, and divided
    /// by it again, as factors of float8 products are. Losses are then relative to that largest number.
    bool scaled = false;
};

/// Arrays and numbers of float or a reduced format that an op read without a cast: those of an op in full
/// precision, for example, from which one can tell whether a low precision would have held them.
struct input_record {
    std::string op;
    std::string argument;
    std::string type;
    std::uint64_t reads = 0;  ///< arrays or numbers
    std::uint64_t elements = 0;
    std::uint64_t zeros = 0;
    double largest = 0.0;   ///< finite magnitude
    double smallest = 0.0;  ///< non-zero magnitude; 0 where there was none
};

/// What happened to the calls of an op.
struct op_record {
    std::string op;
    op_category category = op_category::pass_through;
    precision active = precision::off;  ///< of the region
    std::string compute_type;           ///< the widest type that its arguments had in the kernel
    std::string rule;                   ///< what decided: "the op itself", "list pytorch_cuda", ...
    std::uint64_t calls = 0;
};

/// Where a value comes from that is not finite.
enum class value_origin : unsigned char {
    argument,  ///< the caller's array had it before the op
    cast,      ///< it was finite before the cast of the argument
    kernel,    ///< the op's kernel computed it
    result     ///< it was finite before the cast of the result
};

constexpr std::string_view name_of(value_origin origin) noexcept {
    constexpr std::array<std::string_view, 4> names = {"argument", "cast", "kernel", "result"};
    const auto index = static_cast<std::size_t>(origin);
    return index < names.size() ? names[index] : "unknown";
}

/// The first infinity or NaN that the ops of a region met.
struct non_finite_value {
    std::string op;
    std::string argument;
    std::string layer;      ///< names of the autocast_layer objects around the call
    std::size_t index = 0;  ///< of the element, in the order of the memory without padding
    bool is_nan = false;    ///< else an infinity
    value_origin origin = value_origin::argument;
    std::uint64_t call = 0;  ///< how many ops of the ledger had been called before
};

/// The sizes of matrix products that an op computed.
struct product_record {
    std::string op;
    std::string type;  ///< what the factors were when they were multiplied
    std::ptrdiff_t m = 0;
    std::ptrdiff_t n = 0;
    std::ptrdiff_t k = 0;
    std::uint64_t calls = 0;
};

/// Counts what autocast does in the regions that it is given to. Looking at every element costs about as much
/// as another cast: it is for finding out, not for every step.
///
///     mp::autocast::cast_ledger ledger;
///     {
///         mp::autocast_region region({.cpu = mp::precision::fp16, .ledger = &ledger});
///         train_one_step();
///     }
///     std::puts(mp::autocast::ledger_table(ledger).c_str());
///
/// All members may be called by several threads at once. It must outlive the regions and tokens that refer to
/// it.
class cast_ledger {
public:
    cast_ledger() = default;
    cast_ledger(const cast_ledger&) = delete;
    cast_ledger& operator=(const cast_ledger&) = delete;

    /// In the order in which they first occurred.
    std::vector<cast_record> casts() const { return copy_of(casts_); }
    std::vector<input_record> inputs() const { return copy_of(inputs_); }
    std::vector<op_record> ops() const { return copy_of(ops_); }
    std::vector<product_record> products() const { return copy_of(products_); }

    /// Nothing as long as all values have been finite.
    std::optional<non_finite_value> first_non_finite() const { return copy_of(first_); }

    /// Forgets everything.
    void clear() {
        const std::lock_guard lock(mutex_);
        casts_.clear();
        inputs_.clear();
        ops_.clear();
        products_.clear();
        first_.reset();
        calls_ = 0;
    }

    /// Counts a call and returns how many there were before. For the dispatcher, like all that follow.
    std::uint64_t count_call(const op_record& call) {
        const std::lock_guard lock(mutex_);
        const auto same = [&](const op_record& it) {
            return it.op == call.op && it.category == call.category && it.active == call.active &&
                   it.compute_type == call.compute_type && it.rule == call.rule;
        };
        ++entry(ops_, same, call).calls;
        return calls_++;
    }

    /// Adds the counts of `cast` to the record of the same op, argument and types.
    void count_cast(const cast_record& cast) {
        const std::lock_guard lock(mutex_);
        const auto same = [&](const cast_record& it) {
            return it.op == cast.op && it.argument == cast.argument && it.from == cast.from &&
                   it.to == cast.to && it.direction == cast.direction && it.scaled == cast.scaled;
        };
        const cast_record empty{.op = cast.op,
                                .argument = cast.argument,
                                .from = cast.from,
                                .to = cast.to,
                                .direction = cast.direction,
                                .losses = {},
                                .scaled = cast.scaled};
        cast_record& record = entry(casts_, same, empty);
        record.casts += cast.casts;
        record.reused += cast.reused;
        record.bytes += cast.bytes;
        record.losses += cast.losses;
    }

    /// Adds a read to the record of the same op, argument and type.
    void count_input(const input_record& input) {
        const std::lock_guard lock(mutex_);
        const auto same = [&](const input_record& it) {
            return it.op == input.op && it.argument == input.argument && it.type == input.type;
        };
        const input_record empty{input.op, input.argument, input.type, 0, 0, 0, 0.0, 0.0};
        input_record& record = entry(inputs_, same, empty);
        cast_losses range{.zeros = record.zeros, .largest = record.largest, .smallest = record.smallest};
        range += {.zeros = input.zeros, .largest = input.largest, .smallest = input.smallest};
        record.reads += input.reads;
        record.elements += input.elements;
        record.zeros = range.zeros;
        record.largest = range.largest;
        record.smallest = range.smallest;
    }

    void count_product(const product_record& product) {
        const std::lock_guard lock(mutex_);
        const auto same = [&](const product_record& it) {
            return it.op == product.op && it.type == product.type && it.m == product.m && it.n == product.n &&
                   it.k == product.k;
        };
        ++entry(products_, same, product).calls;
    }

    /// Remembers where a value that is not finite comes from, if it is the first one.
    void see_non_finite(const non_finite_value& value) {
        const std::lock_guard lock(mutex_);
        if (!first_) first_ = value;
    }

    bool has_non_finite() const {
        const std::lock_guard lock(mutex_);
        return first_.has_value();
    }

private:
    template <class Value>
    Value copy_of(const Value& value) const {
        const std::lock_guard lock(mutex_);
        return value;
    }

    template <class Record, class Same>
    static Record& entry(std::vector<Record>& records, Same same, const Record& otherwise) {
        const auto found = std::find_if(records.begin(), records.end(), same);
        return found != records.end() ? *found : records.emplace_back(otherwise);
    }

    mutable std::mutex mutex_;
    std::vector<cast_record> casts_;
    std::vector<input_record> inputs_;
    std::vector<op_record> ops_;
    std::vector<product_record> products_;
    std::optional<non_finite_value> first_;
    std::uint64_t calls_ = 0;
};

}  // namespace mp::autocast
