// SPDX-License-Identifier: MIT
// Saved scalers: to the bit, and nothing but a saved scaler is loaded. Damage of whole texts is the subject
// of state_checksum.cpp.
#include <doctest/doctest.h>
#include <mp/loss_scaling.hpp>
#include <mp/nn/scaling/state_text.hpp>

#include <bit>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "nn/scaling/saved_policies.hpp"
#include "nn/scaling/thrown.hpp"

namespace {

using argument_error = mp::argument_error;
using namespace saved_policies;

template <class Policy>
std::string refusal(std::string_view text) {
    return thrown<argument_error>([&] { (void)mp::load_state<Policy>(text); });
}

const std::string pytorch_text =
    "mp loss scaler 1\n"
    "policy pytorch\n"
    "parameters\n"
    "initial_scale 0x1.8p+16\n"
    "growth_factor 0x1.999999999999ap+0\n"
    "backoff_factor 0x1p-2\n"
    "growth_interval 123\n"
    "state\n"
    "growth_tracker 17\n"
    "scale 0x1.8p+15\n"
    "skipped 2\n"
    "disabled false\n"
    "end\n";

/// pytorch_text with a line replaced by others, or by none. Lines are counted from 1.
std::string with_line(std::size_t number, std::string_view replacement) {
    std::vector<std::string> lines = vectors_of(pytorch_text);
    lines.at(number - 1) = replacement;
    std::string text;
    for (const std::string& line : lines) text += line;
    return text;
}

}  // namespace

static_assert(mp::savable_policy<patient_policy> && mp::savable_policy<mp::dynamic_policy<>>);
static_assert(!mp::savable_policy<int>);

TEST_CASE("the text is the one in the documentation, and both ways of writing a scaler down agree") {
    mp::saved_loss_scaler<mp::pytorch_policy> saved;
    saved.policy = {98304.0F, 1.6, 0.25, 123};
    saved.state.scale = 49152.0F;
    saved.state.growth.tracker = 17;
    saved.state.skipped = 2;
    CHECK(without_checksum(mp::save_state(saved)) == pytorch_text);
    CHECK(mp::load_state<mp::pytorch_policy>(pytorch_text) == saved);
    CHECK(mp::saved_policy_name(pytorch_text) == "pytorch");

    const std::string text = mp::save_state(mp::loss_scaler<by_underflow>().state());
    CHECK(holds(text, "\nfloor_action clamp\n"));
    CHECK(holds(text, "\nceiling inf\n"));
    CHECK(holds(text, "\nnans back_off\n"));
    CHECK(holds(text, "\nhysteresis_refill at_growth\n"));
}

TEST_CASE("every policy comes back to the bit from any point of a run") {
    for_each_policy([&](const auto& kind) {
        using policy_type = std::remove_cvref_t<decltype(kind.policy)>;
        CAPTURE(kind.name);
        for (const int events : {0, 1, 17, 100}) {
            CAPTURE(events);
            const auto saved = after(kind.policy, events, 42);
            const std::string text = mp::save_state(saved);
            REQUIRE(vectors_of(text).size() == kind.parameters + kind.counters + 6);
            REQUIRE(vectors_of(text)[1] == "policy " + std::string(kind.name) + "\n");
            const auto loaded = mp::load_state<policy_type>(text);
            REQUIRE(loaded == saved);
            REQUIRE(mp::save_state(loaded) == text);
            REQUIRE(mp::saved_policy_name(text) == kind.name);
            // What the version before wrote.
            REQUIRE(mp::load_state<policy_type>(without_checksum(text)) == saved);
        }
    });
}

TEST_CASE("every parameter and every counter has a name of its own in one word") {
    for_each_policy([&](const auto& kind) {
        CAPTURE(kind.name);
        std::set<std::string> names;
        std::string section;
        for (const std::string& line : vectors_of(mp::save_state(after(kind.policy, 3, 1)))) {
            const std::string name = line.substr(0, line.find_first_of(" \n"));
            if (line.find(' ') == std::string::npos) section = name;
            CAPTURE(line);
            CHECK(names.insert(section + name).second);
        }
    });
}

TEST_CASE("no parameter is forgotten: what is not visited is padding") {
    for_each_policy([&](const auto& kind) {
        using policy_type = std::remove_cvref_t<decltype(kind.policy)>;
        CAPTURE(kind.name);
        auto saved = after(kind.policy, 3, 1);
        std::size_t visited = 0;
        std::size_t count = 0;
        const auto measure = [&](std::string_view, const auto& member) {
            visited += sizeof member;
            ++count;
        };
        policy_type::visit(saved.policy, measure);
        CHECK(count == kind.parameters);
        CHECK(visited <= sizeof saved.policy);
        CHECK(sizeof saved.policy - visited < 8 * count);
    });
}

TEST_CASE("subnormal scales, double scales beyond float and negative zero are exact") {
    mp::saved_loss_scaler<mp::pytorch_policy> small;
    for (const float scale : {0x1.8p-127F, 0x1.000008p-128F * 1.5F, 0x1.fffffep127F, 0x1.000002p-1F}) {
        small.state.scale = scale;
        CHECK(mp::load_state<mp::pytorch_policy>(mp::save_state(small)).state.scale == scale);
    }
    mp::saved_loss_scaler<mp::deepspeed_policy> large;
    large.state = mp::initial_scale_state(large.policy);
    for (const double scale : {0x1.123456789abcdp200, 0x1.fffffffffffffp1023, 1.0 / 3.0}) {
        large.state.scale = scale;
        CHECK(mp::load_state<mp::deepspeed_policy>(mp::save_state(large)).state.scale == scale);
    }
    mp::saved_loss_scaler<mp::dynamic_policy<>> negative;
    negative.state = mp::initial_scale_state(negative.policy);
    negative.policy.floor.value = -0.0;
    CHECK(holds(mp::save_state(negative), "floor -0x0p+0\n"));
    CHECK(mp::save_state(mp::load_state<mp::dynamic_policy<>>(mp::save_state(negative))) ==
          mp::save_state(negative));
}

TEST_CASE("hexadecimal numbers are what the C library reads, and are read back to the bit") {
    std::mt19937_64 random(7);
    for (int i = 0; i < 200000; ++i) {
        const std::uint64_t bits = i % 3 == 0 ? random() & 0x800fffffffffffffU : random();
        double number = 0;
        std::memcpy(&number, &bits, sizeof number);
        const std::string text = mp::detail::hexadecimal_text(number);
        if ((bits & 0x7fffffffffffffffU) > 0x7ff0000000000000U) continue;  // NaN
        char* end = nullptr;
        const double expected = std::strtod(text.c_str(), &end);
        REQUIRE(*end == '\0');
        REQUIRE(std::bit_cast<std::uint64_t>(expected) == std::bit_cast<std::uint64_t>(number));
        double back = 0;
        REQUIRE(mp::detail::read_hexadecimal(text, back) == mp::detail::hexadecimal_outcome::good);
        REQUIRE(std::bit_cast<std::uint64_t>(back) == std::bit_cast<std::uint64_t>(number));

        const auto narrow_bits = static_cast<std::uint32_t>(bits >> 17);
        float narrow = 0;
        std::memcpy(&narrow, &narrow_bits, sizeof narrow);
        if ((narrow_bits & 0x7fffffffU) > 0x7f800000U) continue;
        const std::string narrow_text = mp::detail::hexadecimal_text(narrow);
        const float narrow_expected = std::strtof(narrow_text.c_str(), &end);
        REQUIRE(*end == '\0');
        REQUIRE(std::bit_cast<std::uint32_t>(narrow_expected) == std::bit_cast<std::uint32_t>(narrow));
        float narrow_back = 0;
        REQUIRE(mp::detail::read_hexadecimal(narrow_text, narrow_back) ==
                mp::detail::hexadecimal_outcome::good);
        REQUIRE(std::bit_cast<std::uint32_t>(narrow_back) == std::bit_cast<std::uint32_t>(narrow));
    }
}

TEST_CASE("a number has one spelling, and one that no float is exactly is not rounded") {
    using outcome = mp::detail::hexadecimal_outcome;
    const auto read = [](std::string_view text) {
        float number = 5.0F;
        const outcome result = mp::detail::read_hexadecimal(text, number);
        if (result != outcome::good) CHECK(number == 5.0F);
        return result;
    };
    for (const char* text :
         {"",        "-",       "1",        "0x",        "0x1",      "0x1p",      "0x1p+",    "0x1p1",
          "0x1p-0",  "0x1p+00", "0x1p+-3",  "0x1p++3",   "0x1.p+3",  "0x1.80p+3", "0x1.Fp+3", "0X1p+3",
          "+0x1p+3", "0x1p+3 ", " 0x1p+3",  "0x2p+3",    "0x0p+1",   "0x0.8p+3",  "0x1.8",    "nan",
          "-nan",    "Inf",     "infinity", "0x1.8p+3x", "0x1.gp+3", "--0x1p+3",  "65536",    "1e9"}) {
        CAPTURE(text);
        CHECK(read(text) == outcome::malformed);
    }
    for (const char* text : {"0x1.000001p+0", "0x1p-150", "0x1.8p-149", "0x1.000002p-127", "0x1p-9999999999",
                             "0x1.00000000000000001p+0"}) {
        CAPTURE(text);
        CHECK(read(text) == outcome::inexact);
    }
    for (const char* text : {"0x1p+128", "-0x1p+128", "0x1p+99999999999"}) {
        CAPTURE(text);
        CHECK(read(text) == outcome::out_of_range);
    }
    for (const char* text : {"0x1.fffffep+127", "-0x1p-149", "inf", "-inf", "0x0p+0", "-0x0p+0"}) {
        CAPTURE(text);
        CHECK(read(text) == outcome::good);
    }
}

TEST_CASE("a text that is broken is refused with the number of the line and what is wrong there") {
    struct broken {
        std::string text;
        const char* message;
    };
    const std::string zero(1, '\0');
    const broken cases[] = {
        {"", "line 1: the text ends where 'mp loss scaler ' was expected"},
        {"hello\n", "line 1: it is 'hello' where 'mp loss scaler ' was expected"},
        {with_line(1, "mp loss scaler 3\n"),
         "line 1: the version is '3'; this library reads versions 1 to 2"},
        {with_line(1, "mp loss scaler 0\n"), "line 1: the version is '0'"},
        {with_line(1, "mp loss scaler 2\n"), "line 14: the text ends where 'checksum ' was expected"},
        {with_line(1, "mp loss scaler 01\n"), "line 1: the version is '01'"},
        {with_line(1, "mp loss scaler\n"), "line 1: it is"},
        {with_line(2, "policy apex\n"), "line 2: the policy is 'apex' where 'pytorch' was expected"},
        {with_line(2, "policy pytorch \n"), "line 2: the policy is 'pytorch '"},
        {with_line(3, ""), "line 3: it is 'initial_scale 0x1.8p+16' where 'parameters' was expected"},
        {with_line(4, ""), "line 7: there was no value of 'initial_scale'"},
        {with_line(4, "initial_scale 0x1p+1\ninitial_scale 0x1p+1\n"),
         "line 5: there is a second value of 'initial_scale'"},
        {with_line(4, "initial_scale nan\n"),
         "line 4: initial_scale is 'nan'; it must be a hexadecimal number"},
        {with_line(4, "initial_scale 65536\n"), "line 4: initial_scale is '65536'"},
        {with_line(4, "initial_scale\n"), "line 4: it is 'initial_scale' where a name and a value"},
        {with_line(4, "initial_scale \n"), "line 4: initial_scale is ''"},
        {with_line(4, "initial_scale  0x1p+1\n"), "line 4: initial_scale is ' 0x1p+1'"},
        {with_line(4, "initial_scale 0x1p+128\n"),
         "line 4: initial_scale is '0x1p+128'; it is beyond the range"},
        {with_line(4, "initial_scale 0x1.000001p+0\n"),
         "line 4: initial_scale is '0x1.000001p+0'; it is not"},
        {with_line(4, "initial_scale inf\n"),
         "lines 4 to 7: mp::standard_scale_policy: initial_scale is inf"},
        {with_line(4, "initial_scale -0x1p+1\n"),
         "lines 4 to 7: mp::standard_scale_policy: initial_scale is -2"},
        {with_line(5, "growth_factor 0x1p+0\n"),
         "lines 4 to 7: mp::standard_scale_policy: growth_factor is 1"},
        {with_line(7, "growth_interval 0\n"),
         "lines 4 to 7: mp::standard_scale_policy: growth_interval is 0"},
        {with_line(7, "growth_interval 2147483648\n"),
         "line 7: growth_interval is '2147483648'; it must lie between -2147483648 and 2147483647"},
        {with_line(7, "growth_interval 99999999999999999999999999\n"), "line 7: growth_interval is"},
        {with_line(7, "growth_interval 7x\n"), "line 7: growth_interval is '7x'; it must be a whole number"},
        {with_line(7, "growth_interval +7\n"), "line 7: growth_interval"},
        {with_line(7, "growth_interval 07\n"), "line 7: growth_interval"},
        {with_line(7, "growth_interval 7.0\n"), "line 7: growth_interval"},
        {with_line(7, "growth_intervall 7\n"), "line 7: there is no 'growth_intervall' in this policy"},
        {with_line(7, "growth_interval 7\r\n"),
         "line 7: it has bytes that are not printable ASCII: "
         "'growth_interval 7\\x0d'"},
        {with_line(7, "growth" + zero + "interval 7\n"), "line 7: it has bytes that are not printable ASCII"},
        {with_line(7, "growth_interval 7\n\n"), "line 8: it is '' where a name and a value"},
        {with_line(7, std::string(300, 'a') + "\n"), "line 7: it is longer than 200 characters"},
        {with_line(7, std::string(1000000, 'a')), "line 7: it is longer than 200 characters"},
        {with_line(8, ""), "line 8: there is no 'growth_tracker' in this policy"},
        {with_line(9, "growth_tracker -1\n"),
         "lines 9 to 12: mp::dynamic_policy: state.growth.tracker is -1"},
        {with_line(10, "scale 0x1p-128\n"), "lines 9 to 12: mp::dynamic_policy: state.scale is"},
        {with_line(10, "scale inf\n"), "lines 9 to 12: mp::dynamic_policy: state.scale is inf"},
        {with_line(10, "scale -0x0p+0\n"), "lines 9 to 12: mp::dynamic_policy: state.scale is -0"},
        {with_line(12, "disabled 0\n"), "line 12: disabled is '0'; it must be true or false"},
        {with_line(12, "disabled true\n"),
         "lines 9 to 12: mp::dynamic_policy: state.scale is 49152; it must be 1"},
        {with_line(13, "end \n"), "line 13: there is no 'end'"},
        {with_line(13, "end\n\n"), "line 14: there is more after the end"},
        {with_line(13, "end\nend\n"), "line 14: there is more after the end: 'end\\x0a'"},
        {with_line(13, "end\n" + zero), "line 14: there is more after the end: '\\x00'"},
    };
    for (const broken& one : cases) {
        CAPTURE(one.text.substr(0, 400));
        const std::string message = refusal<mp::pytorch_policy>(one.text);
        CAPTURE(message);
        CHECK(message.starts_with("mp::load_state: "));
        CHECK(holds(message, one.message));
        CHECK(message.size() < 300);
    }
    std::string other = without_checksum(mp::save_state(mp::loss_scaler<by_underflow>().state()));
    other.insert(other.find("floor_action clamp") + 18, "s");
    CHECK(holds(refusal<by_underflow>(other),
                "floor_action is 'clamps'; it must be one of clamp keep fail disable"));
}

TEST_CASE("counters so large that counting on would overflow are neither loaded nor saved") {
    mp::saved_loss_scaler<mp::deepspeed_policy> saved;
    saved.state = mp::initial_scale_state(saved.policy);
    saved.state.growth.iteration = std::int64_t{1} << 62;
    const std::string text = mp::save_state(saved);
    CHECK(mp::load_state<mp::deepspeed_policy>(text) == saved);
    ++saved.state.growth.iteration;
    CHECK(holds(thrown<argument_error>([&] { (void)mp::save_state(saved); }), "iteration"));
    std::string more = without_checksum(text);
    more.replace(more.find("4611686018427387904"), 19, "4611686018427387905");
    CHECK(holds(refusal<mp::deepspeed_policy>(more), "iteration is 4611686018427387905"));
    // A window is a parameter, and the largest is a way to say never.
    saved.state.growth.iteration = 5;
    saved.policy.loss_scale_window = std::numeric_limits<std::int64_t>::max();
    CHECK(mp::load_state<mp::deepspeed_policy>(mp::save_state(saved)) == saved);
}

TEST_CASE("a scaler that could not go on is not saved") {
    mp::saved_loss_scaler<mp::pytorch_policy> saved;
    saved.state.scale = 0.0F;
    CHECK(holds(thrown<argument_error>([&] { (void)mp::save_state(saved); }), "state.scale is 0"));
    mp::saved_loss_scaler<mp::dynamic_policy<>> odd;
    odd.policy.nans = static_cast<mp::nan_reaction>(17);
    odd.state = mp::initial_scale_state(odd.policy);
    CHECK(holds(thrown<argument_error>([&] { (void)mp::save_state(odd); }), "nans is 17"));
}

TEST_CASE("the lines of a section may come in any order, and the last line may lack its end") {
    const auto expected = mp::load_state<mp::pytorch_policy>(pytorch_text);
    std::vector<std::string> lines = vectors_of(pytorch_text);
    std::swap(lines[3], lines[6]);
    std::swap(lines[8], lines[11]);
    std::string text;
    for (const std::string& line : lines) text += line;
    CHECK(mp::load_state<mp::pytorch_policy>(text) == expected);
    text.pop_back();
    CHECK(mp::load_state<mp::pytorch_policy>(text) == expected);
}

TEST_CASE(
    "without a checksum: cut off it is refused; with a byte changed it is refused or another valid text") {
    for_each_policy([&](const auto& kind) {
        using policy_type = std::remove_cvref_t<decltype(kind.policy)>;
        CAPTURE(kind.name);
        const std::string text = without_checksum(mp::save_state(after(kind.policy, 30, 5)));
        for (std::size_t i = 0; i + 1 < text.size(); ++i) {
            CAPTURE(i);
            REQUIRE_THROWS_AS((void)mp::load_state<policy_type>(text.substr(0, i)), argument_error);
            for (const char replacement : {'\0', '\n', ' ', '0', '9', 'f', '-', '+', '.', '\x80'}) {
                std::string changed = text;
                changed[i] = replacement;
                try {
                    const auto loaded = mp::load_state<policy_type>(changed);
                    const bool same = without_checksum(mp::save_state(loaded)) == changed;
                    REQUIRE(same);
                } catch (const argument_error&) {
                }
            }
        }
    });
}

TEST_CASE("a scaler stays as it was when what it should restore is refused") {
    mp::loss_scaler<mp::pytorch_policy> scaler(mp::pytorch_policy{.initial_scale = 1234.0F});
    const auto before = scaler.state();
    CHECK_THROWS_AS(scaler.restore(mp::load_state<mp::pytorch_policy>(with_line(10, "scale inf\n"))),
                    argument_error);
    CHECK(scaler.state() == before);
    scaler.restore(mp::load_state<mp::pytorch_policy>(pytorch_text));
    CHECK(scaler.current_scale() == 49152.0F);
}
