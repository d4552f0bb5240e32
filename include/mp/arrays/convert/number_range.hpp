// SPDX-License-Identifier: MIT
/// \file
/// Arrays of numbers as the bulk algorithms take them.
#pragma once

#include <mp/base/contiguous.hpp>
#include <mp/numbers/format/basic_float.hpp>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// A contiguous range of numbers.
template <class Range>
concept number_range = contiguous<const Range> && number<contiguous_element<const Range>>;

/// A contiguous range of numbers that can be written.
template <class Range>
concept writable_number_range =
    contiguous<Range> && number<contiguous_element<Range>> && !std::is_const_v<contiguous_element<Range>>;

}}  // namespace mp::detail
