// SPDX-License-Identifier: MIT
/// \file
/// The descriptors of the formats of IEEE P3109.
#pragma once

#include <mp/numbers/format/descriptor.hpp>

namespace mp {

/// Whether a P3109 format has negative numbers, and whether it has infinities.
enum class signedness : unsigned char { is_signed, is_unsigned };
enum class domain : unsigned char { finite, extended };

namespace formats {

/// IEEE P3109 interim report 4.0, section 3.1: the exponent bias is 2^(K - P - 1) with signs and 2^(K - P)
/// without; NaN is the code of minus zero with signs and the highest code without; infinity is the highest
/// magnitude that is left. Annex C has the formats of two bits.
template <int K, int P, signedness Signs = signedness::is_signed, domain Domain = domain::extended>
struct p3109 {
    static_assert(K >= 2 && K <= 16, "mp: formats of P3109 have 2 to 16 bits here");
    static_assert(
        P >= 1 && (Signs == signedness::is_signed ? P < K : P <= K),
        "mp: the precision P of a P3109 format is at least 1, and less than K (K itself without signs)");

    static constexpr bool is_signed = Signs == signedness::is_signed;
    static constexpr int exponent_bits = is_signed ? K - P : K - P + 1;
    static constexpr int fraction_bits = P - 1;
    static constexpr int bias = 1 << (exponent_bits - 1);
    static constexpr bool has_infinity = Domain == domain::extended;
    static constexpr bool follows_p3109 = true;
    static constexpr nan_encoding nans = is_signed ? nan_encoding::negative_zero : nan_encoding::all_ones;

private:
    // binary8p4se and the like.
    static constexpr struct text {
        char characters[16];
    } name_text = [] {
        text result{{'b', 'i', 'n', 'a', 'r', 'y'}};
        int length = 6;
        const auto write = [&](int n) {
            if (n >= 10) result.characters[length++] = static_cast<char>('0' + n / 10);
            result.characters[length++] = static_cast<char>('0' + n % 10);
        };
        write(K);
        result.characters[length++] = 'p';
        write(P);
        result.characters[length++] = is_signed ? 's' : 'u';
        result.characters[length++] = has_infinity ? 'e' : 'f';
        return result;
    }();

public:
    static constexpr const char* name = name_text.characters;
};

}  // namespace formats

}  // namespace mp
