// SPDX-License-Identifier: MIT
/// \file
/// Loads and stores of a device: one instruction for values of up to 16 bytes.
#pragma once

#include <mp/device/simt/device/compiler.hpp>

#include <mp/config.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace mp::simt::detail { inline namespace MP_ISA_NAMESPACE {

/// The type that one instruction loads or stores: Bytes wide.
template <std::size_t Bytes>
struct word_of {
    static_assert(Bytes == 16, "mp: a thread loads and stores values of 1, 2, 4, 8 or 16 bytes");
};
template <>
struct word_of<1> {
    using type = unsigned char;
};
template <>
struct word_of<2> {
    using type = unsigned short;
};
template <>
struct word_of<4> {
    using type = unsigned;
};
template <>
struct word_of<8> {
    using type = uint2;
};
template <>
struct word_of<16> {
    using type = uint4;
};

template <class Value>
using word_for = typename word_of<sizeof(Value)>::type;

/// The shared memory that the launch asked for.
__device__ __forceinline__ unsigned char* shared_memory_begin() {
    extern __shared__ __align__(1024) unsigned char mp_shared_memory[];
    return mp_shared_memory;
}

/// Its address as instructions take it.
__device__ __forceinline__ unsigned shared_address(std::uint32_t offset) {
    return static_cast<unsigned>(__cvta_generic_to_shared(shared_memory_begin())) + offset;
}

template <class Value>
__device__ __forceinline__ Value load_words(const void* from) {
    static_assert(std::is_trivially_copyable_v<Value>, "mp: a thread reads and writes plain bytes");
    const word_for<Value> word = *static_cast<const word_for<Value>*>(from);
    Value value;
    __builtin_memcpy(&value, &word, sizeof value);
    return value;
}

template <class Value>
__device__ __forceinline__ void store_words(void* to, const Value& value) {
    static_assert(std::is_trivially_copyable_v<Value>, "mp: a thread reads and writes plain bytes");
    word_for<Value> word;
    __builtin_memcpy(&word, &value, sizeof value);
    *static_cast<word_for<Value>*>(to) = word;
}

template <class Value>
__device__ __forceinline__ Value load_past_cache(const void* from) {
    const word_for<Value> word = __ldcs(static_cast<const word_for<Value>*>(from));
    Value value;
    __builtin_memcpy(&value, &word, sizeof value);
    return value;
}

template <class Value>
__device__ __forceinline__ void store_past_cache(void* to, const Value& value) {
    word_for<Value> word;
    __builtin_memcpy(&word, &value, sizeof value);
    __stcs(static_cast<word_for<Value>*>(to), word);
}

}}  // namespace mp::simt::detail
