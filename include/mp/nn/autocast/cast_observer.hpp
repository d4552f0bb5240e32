// SPDX-License-Identifier: MIT
/// \file
/// The interface of observers of casts in a region, such as the cast ledger.
#pragma once

#include <mp/nn/autocast/category.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {
struct region_decision;
}}

namespace mp::autocast {

/// Direction of a cast.
enum class cast_direction : unsigned char {
    input,  ///< from the caller's array to what the op's kernel reads
    output  ///< from what the kernel wrote to the caller's array
};

/// Properties of the target format of a cast, for counting.
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

/// Origin of a value that is not finite.
enum class value_origin : unsigned char {
    argument,  ///< the caller's array had it before the op
    cast,      ///< it was finite before the cast of the argument
    kernel,    ///< the op's kernel computed it
    result     ///< it was finite before the cast of the result
};

}  // namespace mp::autocast

namespace mp::autocast { inline namespace MP_ISA_NAMESPACE {

constexpr std::string_view name_of(value_origin origin) noexcept {
    constexpr std::array<std::string_view, 4> names = {"argument", "cast", "kernel", "result"};
    const auto index = static_cast<std::size_t>(origin);
    return index < names.size() ? names[index] : "unknown";
}

}}  // namespace mp::autocast

namespace mp::autocast {

/// A call of an op in a region.
struct observed_call {
    std::string_view op;
    std::string_view (*name_of_argument)(std::size_t);  ///< empty where the op does not name it
    const detail::region_decision* decision;            ///< category, precision, and which rule decided
    std::string_view compute_type;  ///< name of the widest type that its arguments have in the kernel
    std::string_view layer;         ///< names of the autocast_layer objects around the call
    std::uint64_t number = 0;       ///< what called() has returned

    /// Stands for the number that a kernel returns, in place of the index of an argument.
    static constexpr std::size_t returned = ~std::size_t{0};
};

/// Is told what happens to the numbers of every op in the regions that it is given to. All functions may be
/// called by several threads at once. Numbers come as floats, which hold those of every format that is cast,
/// in the order of the memory without padding. mp::autocast::cast_ledger counts; write another one to log,
/// say.
class cast_observer {
public:
    virtual ~cast_observer() = default;

    /// Before anything else of a call; what it returns becomes observed_call::number.
    virtual std::uint64_t called(const observed_call& call) = 0;
    /// The op computes a product of this size with operands of this type.
    virtual void multiplied(const observed_call& call, product_size size, std::string_view type) = 0;
    /// An argument or result has been cast. `scaled`: to a format after scaling by a power of two, and back.
    virtual void cast(const observed_call& call, std::size_t index, cast_direction direction,
                      std::string_view from, std::size_t from_bytes, const cast_target& to,
                      std::span<const float> before, std::span<const float> after, bool scaled) = 0;
    /// The cast of an argument came from the cache.
    virtual void reused(const observed_call& call, std::size_t index, std::string_view from,
                        std::string_view to, bool scaled) = 0;
    /// An argument of this type is read without a cast.
    virtual void read(const observed_call& call, std::size_t index, const cast_target& type,
                      std::span<const float> values) = 0;
    /// Whether arrays are to be searched and not_finite() called: for results, and for arguments in double.
    virtual bool scans() const = 0;
    /// The element at `at` is the first of an array that is not finite.
    virtual void not_finite(const observed_call& call, std::size_t index, std::size_t at, bool is_nan,
                            value_origin origin) = 0;

    /// Whether multiplied(), cast(), reused() and read() are to be called: all numbers are copied for them.
    virtual bool reads_values() const { return true; }
    /// A cast of an array begins; what is returned is passed to cast_ends(), which the same thread calls next.
    virtual std::int64_t cast_begins() { return 0; }
    /// The cast of an array of `elements` numbers is done; on a GPU, enqueued. `begun` is what cast_begins() returned.
    virtual void cast_ends(const observed_call& /*call*/, std::size_t /*index*/, cast_direction /*direction*/,
                           std::size_t /*elements*/, std::int64_t /*begun*/) {}

protected:
    cast_observer() = default;
    cast_observer(const cast_observer&) = default;
    cast_observer& operator=(const cast_observer&) = default;
};

}  // namespace mp::autocast
