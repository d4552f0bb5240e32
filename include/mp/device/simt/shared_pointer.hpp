// SPDX-License-Identifier: MIT
/// \file
/// Addresses in the shared memory of a block of threads.
#pragma once

#include <mp/config.hpp>

#include <cstddef>
#include <cstdint>

namespace mp::simt {

/// Place of a Value in the shared memory of a block: a number of bytes from the beginning of what the launch
/// asked for, the same on host and device. It is read and written through a thread (`thread.load(pointer)`),
/// so that the host sees every access. Arithmetic is that of pointers, in elements.
template <class Value>
struct shared_pointer {
    std::uint32_t offset = 0;  ///< bytes

    [[nodiscard]] MP_HOST_DEVICE constexpr shared_pointer operator+(std::ptrdiff_t elements) const {
        return {offset + static_cast<std::uint32_t>(elements) * static_cast<std::uint32_t>(sizeof(Value))};
    }
    MP_HOST_DEVICE constexpr shared_pointer& operator+=(std::ptrdiff_t elements) {
        return *this = *this + elements;
    }

    /// As operator+(),  place, taken for another type.
    template <class Other>
    [[nodiscard]] MP_HOST_DEVICE constexpr shared_pointer<Other> as() const {
        return {offset};
    }

    friend constexpr bool operator==(shared_pointer, shared_pointer) = default;
};

namespace detail {

template <class Value>
Value pointee_of(Value*);
template <class Value>
Value pointee_of(shared_pointer<Value>);

/// The type of the object that a pointer or a shared_pointer points to.
template <class Place>
using pointee = decltype(pointee_of(Place{}));

}  // namespace detail

/// Neighbouring 32-bit registers: what matrix instructions and wide accesses work with.
template <int Count>
struct alignas(Count % 4 == 0   ? 16
               : Count % 2 == 0 ? 8
                                : 4) registers {
    std::uint32_t values[std::size_t{Count}];

    /// The i-th register.
    MP_HOST_DEVICE constexpr std::uint32_t& operator[](int i) { return values[i]; }
    MP_HOST_DEVICE constexpr const std::uint32_t& operator[](int i) const { return values[i]; }

    friend constexpr bool operator==(const registers&, const registers&) = default;
};

/// A barrier object in shared memory (mbarrier): threads and copies of bytes arrive at it, threads wait for
/// its phases. Only the functions of a thread that take its shared_pointer may touch it.
struct alignas(8) memory_barrier {
    std::uint64_t opaque;
};

}  // namespace mp::simt
