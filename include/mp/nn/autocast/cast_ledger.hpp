// SPDX-License-Identifier: MIT
/// \file
/// What autocast has done, counted: which casts, what they lost, and where infinities and NaNs first
/// appeared.
#pragma once

#include <mp/config.hpp>
#include <mp/nn/autocast/cast_observer.hpp>
#include <mp/nn/autocast/category.hpp>
#include <mp/nn/autocast/precision.hpp>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#if MP_CORE_BODIES
#include <mp/error.hpp>
#include <mp/nn/autocast/decision.hpp>
#include <mp/numbers/format/operations.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>

#include <algorithm>

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// The record for which same() is true, which is `otherwise` where there is none yet.
template <class Record, class Same>
Record& found_record(std::vector<Record>& records, Same same, const Record& otherwise) {
    const auto found = std::find_if(records.begin(), records.end(), same);
    return found != records.end() ? *found : records.emplace_back(otherwise);
}

}}  // namespace mp::detail
#endif

namespace mp::autocast {

/// Effects of casts on numbers. An element is counted once in each count that it belongs to.
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
#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wfloat-equal"  // all members are equal, numbers too
#endif
    friend constexpr bool operator==(const cast_losses&, const cast_losses&) = default;
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif
};

/// Compares numbers with their casts, of as many elements. Both are given as floats, which hold the numbers
/// of all formats that autocast casts.
MP_CORE_FUNCTION cast_losses count_losses(std::span<const float> before, std::span<const float> after,
                                          const cast_target& target);

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
    /// by it again, as operands of float8 products are. Losses are then relative to that largest number.
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

/// Counts of the calls of an op.
struct op_record {
    std::string op;
    op_category category = op_category::pass_through;
    precision active = precision::off;  ///< of the region
    std::string compute_type;           ///< the widest type that its arguments had in the kernel
    std::string rule;                   ///< what decided: "the op itself", "list pytorch_cuda", ...
    std::uint64_t calls = 0;
};

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
    std::string type;  ///< what the operands were when they were multiplied
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
class cast_ledger final : public cast_observer {
public:
    // Inline where its bodies are, so that its table of virtual functions is made where it is used.
    cast_ledger();
    MP_CORE_FUNCTION ~cast_ledger() override;
    cast_ledger(const cast_ledger&) = delete;
    cast_ledger& operator=(const cast_ledger&) = delete;

    /// In the order in which they first occurred.
    std::vector<cast_record> casts() const;
    std::vector<input_record> inputs() const;
    std::vector<op_record> ops() const;
    std::vector<product_record> products() const;

    /// Nothing as long as all values have been finite.
    std::optional<non_finite_value> first_non_finite() const;

    /// Forgets everything.
    void clear();

    MP_CORE_FUNCTION std::uint64_t called(const observed_call& call) override;

    MP_CORE_FUNCTION void multiplied(const observed_call& call, product_size size,
                                     std::string_view type) override;

    MP_CORE_FUNCTION void cast(const observed_call& call, std::size_t index, cast_direction direction,
                               std::string_view from, std::size_t from_bytes, const cast_target& to,
                               std::span<const float> before, std::span<const float> after,
                               bool scaled) override;

    MP_CORE_FUNCTION void reused(const observed_call& call, std::size_t index, std::string_view from,
                                 std::string_view to, bool scaled) override;

    MP_CORE_FUNCTION void read(const observed_call& call, std::size_t index, const cast_target& type,
                               std::span<const float> values) override;

    MP_CORE_FUNCTION bool scans() const override;

    MP_CORE_FUNCTION void not_finite(const observed_call& call, std::size_t index, std::size_t at,
                                     bool is_nan, value_origin origin) override;

private:
    static std::string argument_text(const observed_call& call, std::size_t index);

    void look_at(const observed_call& call, std::size_t index, std::span<const float> values,
                 value_origin origin);

    void add(const cast_record& cast);

    template <class Value>
    Value copy_of(const Value& value) const {
        const std::lock_guard lock(mutex_);
        return value;
    }

    mutable std::mutex mutex_;
    std::vector<cast_record> casts_;
    std::vector<input_record> inputs_;
    std::vector<op_record> ops_;
    std::vector<product_record> products_;
    std::optional<non_finite_value> first_;
    std::uint64_t calls_ = 0;
};

#if MP_CORE_BODIES
MP_CORE_FUNCTION cast_losses count_losses(std::span<const float> before, std::span<const float> after,
                                          const cast_target& target) {
    const detail::default_floating_point_modes modes;  // subnormal numbers count
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
    return modes.held(counts);
}

MP_CORE_FUNCTION cast_ledger::cast_ledger() = default;
MP_CORE_FUNCTION cast_ledger::~cast_ledger() = default;

MP_CORE_FUNCTION std::vector<cast_record> cast_ledger::casts() const {
    return copy_of(casts_);
}

MP_CORE_FUNCTION std::vector<input_record> cast_ledger::inputs() const {
    return copy_of(inputs_);
}

MP_CORE_FUNCTION std::vector<op_record> cast_ledger::ops() const {
    return copy_of(ops_);
}

MP_CORE_FUNCTION std::vector<product_record> cast_ledger::products() const {
    return copy_of(products_);
}

MP_CORE_FUNCTION std::optional<non_finite_value> cast_ledger::first_non_finite() const {
    return copy_of(first_);
}

MP_CORE_FUNCTION void cast_ledger::clear() {
    const std::lock_guard lock(mutex_);
    casts_.clear();
    inputs_.clear();
    ops_.clear();
    products_.clear();
    first_.reset();
    calls_ = 0;
}

MP_CORE_FUNCTION std::uint64_t cast_ledger::called(const observed_call& call) {
    const op_record record{
        std::string(call.op),           call.decision->category,           call.decision->active,
        std::string(call.compute_type), detail::rule_text(*call.decision), 0};
    const std::lock_guard lock(mutex_);
    const auto same = [&](const op_record& it) {
        return it.op == record.op && it.category == record.category && it.active == record.active &&
               it.compute_type == record.compute_type && it.rule == record.rule;
    };
    ++detail::found_record(ops_, same, record).calls;
    return calls_++;
}

MP_CORE_FUNCTION void cast_ledger::multiplied(const observed_call& call, product_size size,
                                              std::string_view type) {
    const product_record record{std::string(call.op), std::string(type), size.m, size.n, size.k, 0};
    const std::lock_guard lock(mutex_);
    const auto same = [&](const product_record& it) {
        return it.op == record.op && it.type == record.type && it.m == record.m && it.n == record.n &&
               it.k == record.k;
    };
    ++detail::found_record(products_, same, record).calls;
}

MP_CORE_FUNCTION void cast_ledger::cast(const observed_call& call, std::size_t index,
                                        cast_direction direction, std::string_view from,
                                        std::size_t from_bytes, const cast_target& to,
                                        std::span<const float> before, std::span<const float> after,
                                        bool scaled) {
    add({std::string(call.op), argument_text(call, index), std::string(from), std::string(to.name), direction,
         1, 0, before.size() * (from_bytes + to.bytes), count_losses(before, after, to), scaled});
    const bool into = direction == cast_direction::input;
    look_at(call, index, before, into ? value_origin::argument : value_origin::kernel);
    look_at(call, index, after, into ? value_origin::cast : value_origin::result);
}

MP_CORE_FUNCTION void cast_ledger::reused(const observed_call& call, std::size_t index, std::string_view from,
                                          std::string_view to, bool scaled) {
    add({.op = std::string(call.op),
         .argument = argument_text(call, index),
         .from = std::string(from),
         .to = std::string(to),
         .reused = 1,
         .losses = {},
         .scaled = scaled});
}

MP_CORE_FUNCTION void cast_ledger::read(const observed_call& call, std::size_t index, const cast_target& type,
                                        std::span<const float> values) {
    const cast_losses seen = count_losses(values, values, type);
    const input_record empty{
        std::string(call.op), argument_text(call, index), std::string(type.name), 0, 0, 0, 0.0, 0.0};
    {
        const std::lock_guard lock(mutex_);
        const auto same = [&](const input_record& it) {
            return it.op == empty.op && it.argument == empty.argument && it.type == empty.type;
        };
        input_record& record = detail::found_record(inputs_, same, empty);
        cast_losses range{.zeros = record.zeros, .largest = record.largest, .smallest = record.smallest};
        range += seen;
        ++record.reads;
        record.elements += seen.elements;
        record.zeros = range.zeros;
        record.largest = range.largest;
        record.smallest = range.smallest;
    }
    look_at(call, index, values, value_origin::argument);
}

MP_CORE_FUNCTION bool cast_ledger::scans() const {
    const std::lock_guard lock(mutex_);
    return !first_.has_value();
}

MP_CORE_FUNCTION void cast_ledger::not_finite(const observed_call& call, std::size_t index, std::size_t at,
                                              bool is_nan, value_origin origin) {
    const non_finite_value value{
        std::string(call.op), argument_text(call, index), std::string(call.layer), at, is_nan, origin,
        call.number};
    const std::lock_guard lock(mutex_);
    if (!first_) first_ = value;
}

MP_CORE_FUNCTION std::string cast_ledger::argument_text(const observed_call& call, std::size_t index) {
    const std::string_view name = call.name_of_argument(index);
    if (!name.empty()) return std::string(name);
    return index == observed_call::returned ? std::string("result") : "argument " + detail::error_text(index);
}

MP_CORE_FUNCTION void cast_ledger::look_at(const observed_call& call, std::size_t index,
                                           std::span<const float> values, value_origin origin) {
    if (!scans()) return;
    std::size_t at = 0;
    while (at < values.size() && isfinite(values[at])) ++at;
    if (at < values.size()) not_finite(call, index, at, isnan(values[at]), origin);
}

MP_CORE_FUNCTION void cast_ledger::add(const cast_record& cast) {
    const std::lock_guard lock(mutex_);
    const auto same = [&](const cast_record& it) {
        return it.op == cast.op && it.argument == cast.argument && it.from == cast.from && it.to == cast.to &&
               it.direction == cast.direction && it.scaled == cast.scaled;
    };
    const cast_record empty{.op = cast.op,
                            .argument = cast.argument,
                            .from = cast.from,
                            .to = cast.to,
                            .direction = cast.direction,
                            .losses = {},
                            .scaled = cast.scaled};
    cast_record& record = detail::found_record(casts_, same, empty);
    record.casts += cast.casts;
    record.reused += cast.reused;
    record.bytes += cast.bytes;
    record.losses += cast.losses;
}
#endif

}  // namespace mp::autocast
