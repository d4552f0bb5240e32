// SPDX-License-Identifier: MIT
/// \file
/// The formats of the IEEE P3109 interim report, binaryKpP: K bits, precision P, with or without signs and
/// infinities. One zero, one NaN, gradual underflow.
#pragma once

#include <mp/numbers/format/descriptor.hpp>
#include <mp/numbers/format/limits.hpp>
#include <mp/numbers/format/operations.hpp>
#include <mp/numbers/format/text.hpp>

namespace mp {

/// A number of the P3109 format binary{K}p{P}, by default with signs and infinities.
///
///     mp::p3109<8, 4> x{0.1};                                               // binary8p4se
///     mp::p3109<6, 3, mp::signedness::is_unsigned, mp::domain::finite> y{2};    // binary6p3uf
template <int K, int P, signedness Signs = signedness::is_signed, domain Domain = domain::extended>
using p3109 = basic_float<formats::p3109<K, P, Signs, Domain>>;

}  // namespace mp
