// SPDX-License-Identifier: MIT
// Fuzzes operator>>: it takes the characters that it takes for a float, gives the number that from_chars
// reads from them, and zero or the last number for what from_chars does not read.
#include <mp/bfloat16.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>

#include "require.hpp"

namespace {

using fuzzing::require;

/// Reads one number from a text, and says how many characters were taken and how it went.
template <class Value>
std::size_t read(const std::string& text, Value& value, std::ios::iostate& state) {
    std::istringstream stream(text);
    stream >> value;
    state = stream.rdstate();
    stream.clear();
    return text.size() - static_cast<std::size_t>(stream.rdbuf()->in_avail());
}

/// How many characters at the front of a text are spelled as an infinity or a NaN, or begin to be.
std::size_t letters_of_word(std::string_view text) {
    std::size_t most = 0;
    for (const std::string_view word : {"infinity", "nan"}) {
        std::size_t length = 0;
        while (length < text.size() && length < word.size() && (text[length] | 0x20) == word[length])
            ++length;
        if (length > most) most = length;
    }
    return most;
}

template <class Value>
void check(const std::string& text) {
    const auto before = Value::from_bits(1);
    Value x = before;
    std::ios::iostate state{};
    const std::size_t taken = read(text, x, state);
    float single = 0.0F;
    std::ios::iostate expected_state{};
    std::size_t expected = read(text, single, expected_state);
    // Where float stops before the letters of a word, this goes on.
    const std::size_t begin = std::min(text.find_first_not_of(" \t\n\v\f\r"), text.size());
    const bool sign = begin < text.size() && (text[begin] == '+' || text[begin] == '-');
    const std::size_t behind_sign = begin + (sign ? 1 : 0);
    if (expected == behind_sign) expected += letters_of_word(std::string_view(text).substr(behind_sign));
    require(taken == expected);
    require(((state & std::ios::eofbit) != 0) == (taken == text.size()));

    // from_chars knows no plus sign.
    const bool plus = sign && text[begin] == '+';
    const std::size_t front = plus && taken > begin + 1 && text[begin + 1] != '-' ? begin + 1 : begin;
    Value value = before;
    const char* const last = text.data() + taken;
    const std::from_chars_result result = mp::from_chars(text.data() + front, last, value);
    const bool good = result.ec == std::errc{} && result.ptr == last;
    const bool failed = (state & std::ios::failbit) != 0;
    if (begin == text.size()) {
        require(failed && x.bits() == before.bits());
    } else if (good) {
        require(!failed && x.bits() == value.bits());
    } else if (result.ec == std::errc::result_out_of_range && result.ptr == last) {
        const auto magnitude = x.bits() & Value::layout::magnitude_mask;
        require(magnitude == 0 || (failed && magnitude == Value::layout::max_finite_code));
    } else {
        require(failed && x.bits() == Value(0.0F).bits());
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string text(reinterpret_cast<const char*>(data), size);
    check<mp::half>(text);
    check<mp::bfloat16>(text);
    check<mp::float8_e8m0fnu>(text);
    return 0;
}
