// SPDX-License-Identifier: MIT
/// \file
/// The state of a loss scaler as text, exact to the bit, for checkpoints:
///
///     mp loss scaler 2
///     policy pytorch
///     parameters
///     initial_scale 0x1p+16
///     growth_factor 0x1p+1
///     backoff_factor 0x1p-1
///     growth_interval 2000
///     state
///     growth_tracker 17
///     scale 0x1p+15
///     skipped 0
///     disabled false
///     end
///     checksum e6b63090f8a966b0
///
/// The number in the first line is the version. The checksum is that of all bytes before its line: a text
/// that was damaged on its way is refused. Texts of version 1 are the same without that line, and are still
/// read: to edit a state by hand, leave the checksum out and let the first line end in 1. The lines of a
/// section may then come in any order; all of them have to be there. Text of other systems is read by
/// <mp/frontends/compat/states.hpp>.
#pragma once

#include <mp/arrays/io/checksum.hpp>
#include <mp/arrays/io/text_excerpt.hpp>
#include <mp/base/bits.hpp>
#include <mp/error.hpp>
#include <mp/nn/scaling/dynamic_policy.hpp>
#include <mp/nn/scaling/loss_scaler.hpp>
#include <mp/nn/scaling/policy.hpp>
#include <mp/nn/scaling/policy_rules.hpp>

#include <array>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The bits of float and double, and where their fields lie.
template <class Number>
    requires std::same_as<Number, float> || std::same_as<Number, double>
struct binary_fields {
    using bits_type = std::conditional_t<std::same_as<Number, float>, std::uint32_t, std::uint64_t>;
    static constexpr int fraction_bits = std::numeric_limits<Number>::digits - 1;
    static constexpr int bias = std::numeric_limits<Number>::max_exponent - 1;
    static constexpr int exponent_field_max = 2 * bias + 1;
    static constexpr std::uint64_t sign_bit = std::uint64_t{1} << (8 * sizeof(Number) - 1);
    static constexpr std::uint64_t hidden_bit = std::uint64_t{1} << fraction_bits;
    static constexpr std::uint64_t infinity = static_cast<std::uint64_t>(exponent_field_max) << fraction_bits;
};

/// A number as 0x1.8p+4: one digit before the point, no zeros at the end, the exponent of two with its sign.
/// Zero is 0x0p+0, subnormals have a 1 before the point as well; inf; nan without its payload. By integers only, so that
/// neither a locale, nor a processor that flushes subnormals, nor the standard library at hand makes a difference.
template <class Number>
std::string hexadecimal_text(Number number) {
    using fields = binary_fields<Number>;
    const std::uint64_t bits = bit_cast<typename fields::bits_type>(number);
    const std::uint64_t magnitude = bits & ~fields::sign_bit;
    std::string text = magnitude != bits ? "-" : "";
    if (magnitude >= fields::infinity) return text.append(magnitude == fields::infinity ? "inf" : "nan");
    if (magnitude == 0) return text.append("0x0p+0");
    int exponent = static_cast<int>(magnitude >> fields::fraction_bits) - fields::bias;
    std::uint64_t significand = magnitude & (fields::hidden_bit - 1);
    if (exponent == -fields::bias) {
        ++exponent;
        for (; significand < fields::hidden_bit; --exponent) significand <<= 1;
    }
    text.append("0x1");
    // The fraction moves to the top of 64 bits, from where digits are taken; the hidden bit falls out.
    std::uint64_t fraction = significand << (64 - fields::fraction_bits);
    if (fraction != 0) text.push_back('.');
    for (; fraction != 0; fraction <<= 4) text.push_back("0123456789abcdef"[fraction >> 60]);
    char digits[8];
    const std::to_chars_result end = std::to_chars(digits, digits + sizeof digits, exponent);
    text.append(exponent < 0 ? "p" : "p+").append(digits, end.ptr);
    return text;
}

/// Result of reading.
enum class hexadecimal_outcome : unsigned char {
    good,
    malformed,     ///< not spelled as hexadecimal_text does it; NaN included
    out_of_range,  ///< no number of the type is that large
    inexact        ///< no number of the type is exactly that
};

/// Reads what hexadecimal_text writes, and nothing else; `number` is written only if that went well.
template <class Number>
hexadecimal_outcome read_hexadecimal(std::string_view text, Number& number) {
    using fields = binary_fields<Number>;
    using outcome = hexadecimal_outcome;
    const std::string_view whole = text;
    const bool negative = text.starts_with('-');
    if (negative) text.remove_prefix(1);
    std::uint64_t bits = 0;
    if (text == "inf") {
        bits = fields::infinity;
    } else if (text != "0x0p+0") {
        if (!text.starts_with("0x1")) return outcome::malformed;
        text.remove_prefix(3);
        std::uint64_t fraction = 0;  // at the top of 64 bits
        if (text.starts_with('.')) {
            text.remove_prefix(1);
            int shift = 60;
            for (; !text.empty() && text.front() != 'p'; text.remove_prefix(1), shift -= 4) {
                const char digit = text.front();
                const bool decimal = digit >= '0' && digit <= '9';
                if (!decimal && !(digit >= 'a' && digit <= 'f')) return outcome::malformed;
                if (shift < 0) return outcome::inexact;
                const int value = decimal ? digit - '0' : digit - 'a' + 10;
                fraction |= static_cast<std::uint64_t>(value) << shift;
            }
        }
        if (!text.starts_with("p+") && !text.starts_with("p-")) return outcome::malformed;
        text.remove_prefix(text[1] == '+' ? 2 : 1);
        int exponent = 0;
        const char* const end = text.data() + text.size();
        const std::from_chars_result read = std::from_chars(text.data(), end, exponent);
        if (read.ptr != end || read.ec == std::errc::invalid_argument) return outcome::malformed;
        const bool tiny = text.starts_with('-');
        if (read.ec != std::errc{}) return tiny ? outcome::inexact : outcome::out_of_range;
        if (exponent > fields::bias) return outcome::out_of_range;
        if (exponent < 1 - fields::bias - fields::fraction_bits) return outcome::inexact;
        if ((fraction << fields::fraction_bits) != 0) return outcome::inexact;
        bits = fraction >> (64 - fields::fraction_bits);
        const int below = 1 - fields::bias - exponent;  // how far below the normal numbers
        if (below > 0) {
            bits |= fields::hidden_bit;
            if ((bits & ((std::uint64_t{1} << below) - 1)) != 0) return outcome::inexact;
            bits >>= below;
        } else {
            bits |= static_cast<std::uint64_t>(exponent + fields::bias) << fields::fraction_bits;
        }
    }
    if (negative) bits |= fields::sign_bit;
    const auto read = bit_cast<Number>(static_cast<typename fields::bits_type>(bits));
    // Zeros at the end of the fraction or before the exponent.
    if (hexadecimal_text(read) != whole) return outcome::malformed;
    number = read;
    return outcome::good;
}

inline constexpr int state_text_version = 2;
/// The first version with a checksum.
inline constexpr int state_text_checksum_version = 2;
inline constexpr std::string_view state_text_title = "mp loss scaler ";
inline constexpr std::string_view state_text_checksum = "checksum ";
/// Longer lines are refused before anybody looks at them.
inline constexpr std::size_t longest_state_line = 200;
/// Counters of 64 bits stay below this, so that no run counts them over: at a million iterations a second it
/// is more than 100000 years.
inline constexpr std::int64_t largest_state_counter = std::int64_t{1} << 62;

// Enumerators by name, so that their numbers may change.
constexpr std::array<std::string_view, 4> enumerator_names(limit_action) {
    return {"clamp", "keep", "fail", "disable"};
}
constexpr std::array<std::string_view, 3> enumerator_names(nan_reaction) {
    return {"back_off", "keep_scale", "fail"};
}
constexpr std::array<std::string_view, 2> enumerator_names(hysteresis_refill) {
    return {"at_growth", "at_clean_iteration"};
}

/// The value of one line.
template <class Member>
std::string state_value_text(std::string_view name, Member value) {
    if constexpr (std::is_enum_v<Member>) {
        const auto number = static_cast<std::underlying_type_t<Member>>(value);
        if constexpr (requires { enumerator_names(value); }) {
            constexpr auto names = enumerator_names(Member{});
            if (std::cmp_greater_equal(number, names.size())) {
                throw_argument("mp::save_state", name, static_cast<std::int64_t>(number),
                               "must be an enumerator");
            }
            return std::string(names[static_cast<std::size_t>(number)]);
        } else {
            return state_value_text(name, static_cast<std::int64_t>(number));
        }
    } else if constexpr (std::floating_point<Member>) {
        return hexadecimal_text(value);
    } else {
        return error_text(value);  // true, false or a decimal number
    }
}

/// Walks through the lines and knows where it is.
class state_line_reader {
public:
    explicit state_line_reader(std::string_view text) : text_(text), rest_(text) {}

    [[noreturn]] void fail(std::string_view what) const {
        std::string message = "mp::load_state: line ";
        message.append(error_text(number_)).append(": ").append(what);
        throw_error(argument_error(message));
    }

    /// The next line. Throws if there is none.
    std::string_view next(std::string_view expected) {
        ++number_;
        if (rest_.empty()) fail("the text ends where " + std::string(expected) + " was expected");
        const std::string_view start = rest_.substr(0, longest_state_line + 1);
        const std::size_t end = start.find('\n');
        if (end == std::string_view::npos && start.size() > longest_state_line) {
            fail("it is longer than " + error_text(longest_state_line) +
                 " characters: " + quoted_excerpt(start, 40));
        }
        const std::string_view line = start.substr(0, end);
        rest_.remove_prefix(end == std::string_view::npos ? line.size() : end + 1);
        for (const char character : line) {
            if (character < 0x20 || character > 0x7e) {
                fail("it has bytes that are not printable ASCII: " + quoted_excerpt(line));
            }
        }
        return line;
    }

    /// The rest of the next line, which must begin with `beginning`.
    std::string_view next_after(std::string_view beginning) {
        const std::string_view line = next(quoted_excerpt(beginning));
        if (!line.starts_with(beginning)) {
            fail("it is " + quoted_excerpt(line) + " where " + quoted_excerpt(beginning) + " was expected");
        }
        return line.substr(beginning.size());
    }

    /// The next line must be `expected`.
    void require(std::string_view expected) {
        const std::string_view line = next(quoted_excerpt(expected));
        if (line != expected) {
            fail("it is " + quoted_excerpt(line) + " where " + quoted_excerpt(expected) + " was expected");
        }
    }

    /// The next line must be the checksum of those that were read.
    void require_checksum() {
        const std::string expected = checksum_text(crc64(text_.substr(0, text_.size() - rest_.size())));
        const std::string_view found = next_after(state_text_checksum);
        if (found != expected) {
            fail("the checksum is " + quoted_excerpt(found) + ", and that of the lines before it is " +
                 quoted_excerpt(expected) + ": the text is not as it was saved");
        }
    }

    void require_end() {
        ++number_;
        if (!rest_.empty()) fail("there is more after the end: " + quoted_excerpt(rest_));
    }

    /// The number of the line that was read last.
    [[nodiscard]] std::size_t number() const { return number_; }

private:
    std::string_view text_;
    std::string_view rest_;
    std::size_t number_ = 0;
};

/// Reads the value of the member `name`.
template <class Member>
void read_state_value(const state_line_reader& lines, std::string_view name, std::string_view text,
                      Member& member) {
    const auto refuse = [&](std::string_view expected) {
        lines.fail(std::string(name) + " is " + quoted_excerpt(text) + "; it " + std::string(expected));
    };
    if constexpr (std::is_same_v<Member, bool>) {
        if (text != "true" && text != "false") refuse("must be true or false");
        member = text == "true";
    } else if constexpr (std::is_enum_v<Member>) {
        if constexpr (requires { enumerator_names(member); }) {
            constexpr auto names = enumerator_names(Member{});
            std::string expected = "must be one of";
            for (std::size_t i = 0; i < names.size(); ++i) {
                if (names[i] == text) {
                    member = static_cast<Member>(i);
                    return;
                }
                expected.append(" ").append(names[i]);
            }
            refuse(expected);
        } else {
            std::underlying_type_t<Member> number{};
            read_state_value(lines, name, text, number);
            member = static_cast<Member>(number);
        }
    } else if constexpr (std::floating_point<Member>) {
        switch (read_hexadecimal(text, member)) {
            case hexadecimal_outcome::good:
                break;
            case hexadecimal_outcome::malformed:
                refuse("must be a hexadecimal number like 0x1.8p+16, with no digit too many");
                break;
            case hexadecimal_outcome::out_of_range:
                refuse(std::is_same_v<Member, float> ? "is beyond the range of float"
                                                     : "is beyond the range of double");
                break;
            case hexadecimal_outcome::inexact:
                refuse(std::is_same_v<Member, float> ? "is not exactly a float" : "is not exactly a double");
                break;
        }
    } else {
        Member number{};
        const char* const end = text.data() + text.size();
        const std::from_chars_result read = std::from_chars(text.data(), end, number);
        if (read.ec == std::errc::result_out_of_range) {
            refuse("must lie between " + error_text((std::numeric_limits<Member>::min)()) + " and " +
                   error_text((std::numeric_limits<Member>::max)()));
        }
        if (read.ec != std::errc{} || read.ptr != end || error_text(number) != text) {
            refuse("must be a whole number with no digit too many");
        }
        member = number;
    }
}

/// Throws if a counter is so large that counting on could overflow.
template <class Member>
void require_countable(std::string_view function, std::string_view name, const Member& value) {
    if constexpr (std::is_same_v<Member, std::int64_t>) {
        if (value > largest_state_counter || value < -largest_state_counter) {
            throw_argument(function, name, value, "must not be beyond 2^62");
        }
    }
}

/// Reads one value for every member of `object`, up to the line `terminator`.
template <class Visited, class Object>
void read_state_section(state_line_reader& lines, std::string_view terminator, Object& object) {
    std::uint64_t found = 0;  // a bit a member
    for (;;) {
        const std::string_view line = lines.next(quoted_excerpt(terminator));
        if (line == terminator) break;
        const std::size_t space = line.find(' ');
        if (space == std::string_view::npos) {
            lines.fail("it is " + quoted_excerpt(line) + " where a name and a value were expected, or " +
                       quoted_excerpt(terminator));
        }
        const std::string_view wanted = line.substr(0, space);
        std::uint64_t bit = 1;
        bool known = false;
        Visited::visit(object, [&](std::string_view name, auto& member) {
            if (name == wanted && !known) {
                known = true;
                if ((found & bit) != 0) lines.fail("there is a second value of " + quoted_excerpt(name));
                found |= bit;
                read_state_value(lines, name, line.substr(space + 1), member);
            }
            bit <<= 1;
        });
        if (!known) lines.fail("there is no " + quoted_excerpt(wanted) + " in this policy");
    }
    std::uint64_t bit = 1;
    Visited::visit(object, [&](std::string_view name, auto&) {
        if ((found & bit) == 0) lines.fail("there was no value of " + quoted_excerpt(name));
        bit <<= 1;
    });
}

/// Contents of the first two lines.
struct state_head {
    int version;
    std::string_view policy;
};

/// Reads the first two lines.
inline state_head read_state_head(state_line_reader& lines) {
    const std::string_view text = lines.next_after(state_text_title);
    for (int version = 1; version <= state_text_version; ++version) {
        if (text == error_text(version)) return {version, lines.next_after("policy ")};
    }
    lines.fail("the version is " + quoted_excerpt(text) + "; this library reads versions 1 to " +
               error_text(state_text_version));
}

/// What validation finds, with the place where it was read.
template <class Function>
void validate_state_lines(std::size_t first, std::size_t last, Function&& function) {
    attempt<argument_error>(function, [&](const argument_error& refused) {
        throw_joined<argument_error>(
            {"mp::load_state: lines ", error_text(first), " to ", error_text(last), ": ", refused.what()});
    });
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// The text of a saved scaler: `save_state(scaler.state())`.
///
/// \throws argument_error  no scaler could continue from this, for example since its scale has vanished or
///                         become infinite: such a text could not be loaded either
template <savable_policy Policy>
[[nodiscard]] std::string save_state(const saved_loss_scaler<Policy>& saved) {
    saved.policy.validate();
    validate_scale_state(saved.policy, saved.state);
    std::string text(detail::state_text_title);
    text.append(detail::error_text(detail::state_text_version)).append("\npolicy ");
    text.append(std::string_view(Policy::name)).append("\nparameters\n");
    const auto write = [&](std::string_view name, const auto& member) {
        text.append(name).append(" ").append(detail::state_value_text(name, member)).append("\n");
    };
    Policy::visit(saved.policy, write);
    text.append("state\n");
    detail::rules_type<Policy>::visit(saved.state, [&](std::string_view name, const auto& member) {
        detail::require_countable("mp::save_state", name, member);
        write(name, member);
    });
    text.append("end\n");
    const std::string checksum = detail::checksum_text(detail::crc64(text));
    return text.append(detail::state_text_checksum).append(checksum).append("\n");
}

/// Reads what save_state has written, now or in an earlier version: `scaler.restore(
/// load_state<mp::pytorch_policy>(text))`. Nothing but such a text is accepted, and whatever is accepted is
/// saved as the same text again, but that one of an earlier version becomes one of this.
///
/// \throws argument_error  with the number of the line, and what is wrong with it: the text is cut off or
///                         goes on after its end, a name is missing, unknown or there twice, a value is not
///                         one, cannot be represented or is out of range, the checksum is another one, the
///                         policy is another one, or the text is of a later version
template <savable_policy Policy>
[[nodiscard]] saved_loss_scaler<Policy> load_state(std::string_view text) {
    detail::state_line_reader lines(text);
    const detail::state_head head = detail::read_state_head(lines);
    if (head.policy != std::string_view(Policy::name)) {
        lines.fail("the policy is " + detail::quoted_excerpt(head.policy) + " where " +
                   detail::quoted_excerpt(std::string_view(Policy::name)) + " was expected");
    }
    saved_loss_scaler<Policy> saved;
    lines.require("parameters");
    detail::read_state_section<Policy>(lines, "state", saved.policy);
    const std::size_t state_line = lines.number();
    detail::read_state_section<detail::rules_type<Policy>>(lines, "end", saved.state);
    const std::size_t end_line = lines.number();
    if (head.version >= detail::state_text_checksum_version) lines.require_checksum();
    lines.require_end();
    detail::validate_state_lines(4, state_line - 1, [&] { saved.policy.validate(); });
    detail::validate_state_lines(state_line + 1, end_line - 1, [&] {
        validate_scale_state(saved.policy, saved.state);
        detail::rules_type<Policy>::visit(saved.state, [](std::string_view member_name, auto& member) {
            detail::require_countable("mp::load_state", member_name, member);
        });
    });
    return saved;
}

/// The name of the policy that a text was saved from, for programs that choose one at run time. Reads no
/// further than that, so damage is found by load_state.
///
/// \throws argument_error  the text does not begin as a saved scaler of a version that is read
[[nodiscard]] inline std::string saved_policy_name(std::string_view text) {
    detail::state_line_reader lines(text);
    return std::string(detail::read_state_head(lines).policy);
}

}}  // namespace mp
