// SPDX-License-Identifier: MIT
// States of other systems: an imported scaler goes on event for event as the original would have, which an
// interpreter of the original's written rules plays; and nothing else is taken for a state.
#include <doctest/doctest.h>
#include <mp/frontends/compat/states.hpp>
#include <mp/nn/scaling/state_text.hpp>

#include <algorithm>
#include <cstdio>
#include <random>
#include <string>
#include <string_view>

#include "nn/scaling/thrown.hpp"

namespace {

using argument_error = mp::argument_error;

/// As Python prints a float: 65536.0, 1e+16.
std::string python(double number) {
    char buffer[64];
    std::snprintf(buffer, sizeof buffer, "%.17g", number);
    std::string text = buffer;
    if (text.find_first_of(".e") == std::string::npos) text += ".0";
    return text;
}
std::string python(long long number) {
    return std::to_string(number);
}
std::string python(bool truth) {
    return truth ? "True" : "False";
}

// The originals' counters by the originals' names, and their rules in words of one line.

struct torch_scaler {
    float scale = 65536.0F;
    double growth = 2.0;
    double backoff = 0.5;
    long long interval = 2000;
    long long tracker = 0;

    bool update(bool overflow) {
        if (overflow) {
            scale = static_cast<float>(scale * backoff);
            tracker = 0;
        } else if (++tracker == interval) {
            const double grown = scale * growth;
            if (grown < 3.4028235677973366e38) scale = static_cast<float>(grown);
            tracker = 0;
        }
        return true;
    }
    std::string text() const {
        return "{\"scale\": " + python(double(scale)) + ", \"growth_factor\": " + python(growth) +
               ", \"backoff_factor\": " + python(backoff) + ", \"growth_interval\": " + python(interval) +
               ", \"_growth_tracker\": " + python(tracker) + "}";
    }
};

struct apex_scaler {
    double scale = 65536.0;
    double least = 0.0;
    double most = 16777216.0;
    long long window = 2000;
    long long unskipped = 0;

    bool update(bool overflow) {
        if (overflow) {
            scale = scale / 2;
            if (scale < least) scale = least;
            unskipped = 0;
        } else {
            unskipped += 1;
        }
        if (unskipped == window) {
            scale = scale * 2 < most ? scale * 2 : most;
            unskipped = 0;
        }
        return true;
    }
    std::string text() const {
        return "{'loss_scale': " + python(scale) + ", 'unskipped': " + python(unskipped) + "}";
    }
};

struct deepspeed_scaler {
    double cur_scale = 65536.0;
    long long cur_iter = 0;
    long long last_overflow_iter = -1;
    long long scale_window = 1000;
    double min_scale = 1.0;
    long long delayed_shift = 2;
    long long cur_hysteresis = 2;
    bool consecutive = false;
    bool raises = true;
    bool zero = true;  // with hysteresis and an error at the floor

    /// False where the original raises an exception; nothing has changed then.
    bool update(bool overflow) {
        if (overflow) {
            if (zero && delayed_shift != 1 && cur_hysteresis != 1) {
                cur_hysteresis -= 1;
            } else {
                if (zero && raises && cur_scale == min_scale) return false;
                cur_scale = std::max(cur_scale / 2.0, min_scale);
            }
            last_overflow_iter = cur_iter;
        } else {
            if (consecutive) cur_hysteresis = delayed_shift;
            const long long stable = cur_iter - last_overflow_iter - 1;
            if (stable > 0 && stable % scale_window == 0) {
                if (!consecutive) cur_hysteresis = delayed_shift;
                cur_scale *= 2.0;
            }
        }
        cur_iter += 1;
        return true;
    }
    std::string common() const {
        return "'cur_scale': " + python(cur_scale) + ", 'cur_iter': " + python(cur_iter) +
               ", 'last_overflow_iter': " + python(last_overflow_iter) +
               ", 'scale_factor': 2.0, 'scale_window': " + python(scale_window);
    }
    std::string text() const {
        if (!zero) return "{'dynamic_loss_scale': True, " + common() + "}";
        return "{'dynamic': True, " + common() + ", 'min_scale': " + python(min_scale) +
               ", 'delayed_shift': " + python(delayed_shift) +
               ", 'cur_hysteresis': " + python(cur_hysteresis) +
               ", 'raise_error_at_min_scale': " + python(raises) +
               ", 'consecutive_hysteresis': " + python(consecutive) + ", 'dtype': torch.float16}";
    }
};

struct megatron_scaler {
    float scale = 4294967296.0F;
    float min_scale = 1.0F;
    float growth = 2.0F;
    float backoff = 0.5F;
    long long interval = 1000;
    long long hysteresis = 2;
    long long growth_tracker = 0;
    long long hysteresis_tracker = 2;

    bool update(bool found_inf) {
        if (found_inf) {
            growth_tracker = 0;
            --hysteresis_tracker;
            if (hysteresis_tracker <= 0) scale = std::max(scale * backoff, min_scale);
        } else {
            ++growth_tracker;
            if (growth_tracker == interval) {
                growth_tracker = 0;
                hysteresis_tracker = hysteresis;
                scale = scale * growth;
            }
        }
        return true;
    }
    std::string text() const {
        return "{'scale': " + python(double(scale)) + ", 'growth_tracker': " + python(growth_tracker) +
               ", 'hysteresis_tracker': " + python(hysteresis_tracker) + "}";
    }
};

/// Runs the original for `events` iterations, imports what it saves, and runs both for 600 more. After every
/// one the imported scaler, read off by saving it again in the original's words, is the original.
template <class Original, class Import>
void run_on(Original original, int events, unsigned one_in, unsigned seed, Import&& import) {
    std::mt19937 random(seed);
    for (int i = 0; i < events; ++i) original.update(random() % one_in == 0);
    auto saved = import(original.text());
    CAPTURE(original.text());
    for (int i = 0; i < 600; ++i) {
        CAPTURE(i);
        const bool overflow = random() % one_in == 0;
        const bool goes_on = original.update(overflow);
        const mp::scale_change change =
            mp::update_scale(saved.policy, saved.state, {.infinities = overflow ? 1U : 0U});
        REQUIRE((change.kind != mp::scale_change_kind::failed) == goes_on);
        const std::string now = original.text();
        CAPTURE(now);
        auto expected = import(now).state;
        // How many were skipped in a row is a count of ours that no original saves.
        expected.skipped = saved.state.skipped;
        REQUIRE(saved.state == expected);
        REQUIRE(static_cast<double>(saved.state.scale) == [&] {
            if constexpr (requires { original.cur_scale; }) {
                return original.cur_scale;
            } else {
                return static_cast<double>(original.scale);
            }
        }());
    }
}

std::string replaced(std::string text, std::string_view what, std::string_view by) {
    const std::size_t place = text.find(what);
    REQUIRE(place != std::string::npos);
    return text.replace(place, what.size(), by);
}

template <class Import>
std::string refusal(Import&& import, const std::string& text) {
    return thrown<argument_error>([&] { (void)import(text); });
}

const auto import_pytorch = [](std::string_view text) { return mp::import_pytorch_state(text); };
const auto import_apex = [](std::string_view text) { return mp::import_apex_state(text); };
const auto import_zero = [](std::string_view text) { return mp::import_deepspeed_state(text); };
const auto import_fused = [](std::string_view text) { return mp::import_deepspeed_fused_state(text); };
const auto import_megatron = [](std::string_view text) { return mp::import_megatron_state(text); };

}  // namespace

TEST_CASE("PyTorch: the five keys of state_dict become policy and state") {
    const auto saved = mp::import_pytorch_state(
        R"({"scale": 32768.0, "growth_factor": 3.5, "backoff_factor": 0.25, "growth_interval": 100, "_growth_tracker": 17})");
    CHECK(saved.policy == mp::pytorch_policy{32768.0F, 3.5, 0.25, 100});
    CHECK(saved.state == mp::scale_state{32768.0F, {17}});
    // As print shows it, in another order, and with a scale that is no float.
    const auto printed = mp::import_pytorch_state(
        " {'_growth_tracker':17 ,\n'scale': 0.1, 'growth_factor':35e-1,'backoff_factor': "
        "0.25,\t'growth_interval': 100} \n");
    CHECK(printed.policy == mp::pytorch_policy{0.1F, 3.5, 0.25, 100});
    CHECK(printed.state.scale == 0.1F);
}

TEST_CASE("PyTorch: imported in the middle of a run, the scaler goes on as the original") {
    for (const int events : {0, 1, 50, 137, 400}) {
        run_on(torch_scaler{1024.0F, 2.0, 0.5, 7}, events, 12, 1, import_pytorch);
        run_on(torch_scaler{3e37F, 1.7, 0.3, 3}, events, 50, 2, import_pytorch);
    }
    // The interval was lowered below the count: growth waits for the next back-off, here as there.
    run_on(torch_scaler{1024.0F, 2.0, 0.5, 7, 20}, 0, 60, 3, import_pytorch);
}

TEST_CASE("Apex: imported in the middle of a run, the scalers go on as the originals") {
    const mp::apex_policy policy{.scale_window = 5, .min_loss_scale = 3.0, .max_loss_scale = 100000.0};
    const auto import = [&](std::string_view text) { return mp::import_apex_state(text, policy); };
    for (const int events : {0, 1, 50, 137, 400}) {
        run_on(apex_scaler{65536.0, 3.0, 100000.0, 5}, events, 4, 1, import);
        run_on(apex_scaler{65536.0, 3.0, 100000.0, 5}, events, 12, 2, import);
    }
    run_on(apex_scaler{65536.0, 0.0, 16777216.0, 2000}, 1990, 100000, 3, import_apex);

    const auto all = mp::import_apex_states(
        R"({"loss_scaler0": {"loss_scale": 8.0, "unskipped": 3}, "loss_scaler1": {'unskipped': 4, 'loss_scale': 16.0}})");
    REQUIRE(all.size() == 2);
    CHECK(all[0] == mp::import_apex_state("{'loss_scale': 8, 'unskipped': 3}"));
    CHECK(all[1] == mp::import_apex_state("{'loss_scale': 16, 'unskipped': 4}"));
    CHECK(mp::import_apex_states("{}").empty());
}

TEST_CASE("DeepSpeed with ZeRO: imported in the middle of a run, the scaler goes on as the original") {
    for (const int events : {0, 1, 50, 137, 400}) {
        for (const long long shift : {1, 2, 4}) {
            for (const bool consecutive : {false, true}) {
                deepspeed_scaler original;
                original.scale_window = 5;
                original.delayed_shift = original.cur_hysteresis = shift;
                original.consecutive = consecutive;
                run_on(original, events, 6, 1, import_zero);
                original.raises = false;
                original.min_scale = 3.0;
                run_on(original, events, 3, 2, import_zero);
                // Grows beyond float.
                original.scale_window = 1;
                run_on(original, events, 1000, 3, import_zero);
            }
        }
    }
    // A shift of 1 does not look at what is left.
    deepspeed_scaler odd;
    odd.delayed_shift = 1;
    odd.cur_hysteresis = 3;
    auto saved = mp::import_deepspeed_state(odd.text());
    CHECK(mp::update_scale(saved.policy, saved.state, {.infinities = 1}).kind ==
          mp::scale_change_kind::backed_off);
}

TEST_CASE("DeepSpeed without ZeRO: imported in the middle of a run, the scaler goes on as the original") {
    deepspeed_scaler original;
    original.zero = false;
    original.scale_window = 5;
    original.min_scale = 3.0;
    const mp::deepspeed_fused_policy policy{.min_loss_scale = 3.0};
    for (const int events : {0, 1, 50, 137, 400}) {
        const auto import = [&](std::string_view text) {
            return mp::import_deepspeed_fused_state(text, policy);
        };
        run_on(original, events, 3, 1, import);
        run_on(original, events, 12, 2, import);
    }
    CHECK(mp::import_deepspeed_fused_state(original.text()).policy.loss_scale_window == 5);
}

TEST_CASE("Megatron: imported in the middle of a run, the scaler goes on as the original") {
    const mp::megatron_policy policy{.initial_scale = 1024.0F,
                                     .min_scale = 3.0F,
                                     .growth_factor = 1.7F,
                                     .backoff_factor = 0.3F,
                                     .growth_interval = 5,
                                     .hysteresis = 3};
    const auto import = [&](std::string_view text) { return mp::import_megatron_state(text, policy); };
    for (const int events : {0, 1, 50, 137, 400}) {
        run_on(megatron_scaler{1024.0F, 3.0F, 1.7F, 0.3F, 5, 3, 0, 3}, events, 3, 1, import);
        run_on(megatron_scaler{1024.0F, 3.0F, 1.7F, 0.3F, 5, 3, 0, 3}, events, 9, 2, import);
    }
    const auto printed = mp::import_megatron_state(
        "{'scale': tensor([65536.], device='cuda:0'), 'growth_tracker': 5, 'hysteresis_tracker': -2}");
    CHECK(printed.state.scale == 65536.0F);
    CHECK(printed.state.growth.tracker == 5);
    CHECK(printed.state.hysteresis.left == -2);
    CHECK(
        mp::import_megatron_state("{'scale': tensor(8., requires_grad=False), 'growth_tracker': tensor([5], "
                                  "dtype=torch.int32), 'hysteresis_tracker': 1}")
            .state.growth.tracker == 5);
}

TEST_CASE("a tensor that print has rounded is refused rather than taken for exact") {
    for (const char* number : {"4.2950e+09", "0.0312", "1.3422e+08", "0.5000"}) {
        CAPTURE(number);
        const std::string message = refusal(
            import_megatron, std::string("{'scale': tensor([") + number +
                                 "], device='cuda:0'), 'growth_tracker': 5, 'hysteresis_tracker': 2}");
        CHECK(holds(message, "mp::import_megatron_state: scale is '"));
        CHECK(holds(message, ".item()"));
    }
}

TEST_CASE("text that is no flat object is refused with the place and what is wrong there") {
    struct broken {
        const char* what;
        const char* by;
        const char* message;
    };
    const std::string good = torch_scaler{}.text();
    REQUIRE(
        good ==
        R"({"scale": 65536.0, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 2000, "_growth_tracker": 0})");
    const broken cases[] = {
        {"{", "", "character 1: there is '\"scale\": 65536.0, \"g...' where '{', which begins an object"},
        {"}", "", "the text ends where ',' or '}' was expected"},
        {"}", "} x", "there is more after the object: 'x'"},
        {"}", "}}", "there is more after the object: '}'"},
        {"}", ",}", "where a key in quotes was expected"},
        {"65536.0", "NaN", "character 11: there is 'NaN"},
        {"65536.0", "nan", "where a finite number"},
        {"65536.0", "Infinity", "where a finite number"},
        {"65536.0", "-inf", "where a finite number"},
        {"65536.0", "", "where a finite number"},
        {"65536.0", "065536.0", "a number begins with a zero too many"},
        {"65536.0", "65536.", "where a digit after the point was expected"},
        {"65536.0", ".5", "where a finite number"},
        {"65536.0", "+5", "where a finite number"},
        {"65536.0", "1e", "where a digit of the exponent was expected"},
        {"65536.0", "0x10", "',' or '}' was expected"},
        {"65536.0", "1_000", "',' or '}' was expected"},
        {"65536.0", "1e999", "scale is '1e999'; it must be within double's range"},
        {"65536.0", "1e39", "scale is beyond the range of float"},
        {"65536.0", "-1.0", "initial_scale is -1; it must be finite and greater than 0"},
        {"65536.0", "0", "initial_scale is 0"},
        {"65536.0", "1e-39", "it must be greater than 2^-128"},
        {"65536.0", "\"65536.0\"", "scale is '65536.0'; it must be a number"},
        {"65536.0", "True", "scale is 'True'; it must be a number"},
        {"65536.0", "None", "scale is 'None'; it must be a number"},
        {"65536.0", "[65536.0]", "nested values are not read"},
        {"65536.0", "{\"a\": 1}", "nested values are not read"},
        {"65536.0", "tensor([1., 2.])", "where ']' after the one number of a tensor was expected"},
        {"65536.0", "tensor([])", "where a finite number was expected"},
        {"65536.0", "tensor([1.], strange=3)", "where device, dtype or requires_grad was expected"},
        {"65536.0", "tensor([1.]", "where device, dtype or requires_grad was expected"},
        {"65536.0", "system(1)", "where a finite number"},
        {"\"scale\"", "scale", "character 2: there is 'scale"},
        {"\"scale\"", "\"scale", "where ':' after the key was expected"},
        {"\"scale\"", "\"sc\\u0061le\"", "strings with escapes are not read"},
        {"\"scale\"", "\"sca\nle\"", "there is a control character in a string"},
        {"\"scale\"", "\"growth_factor\"", "the key 'growth_factor' is there twice"},
        {"\"scale\"", "\"scales\"", "the key 'scale' is missing"},
        {"{", "{\"more\": 1, ", "the key 'more' is not known"},
        {"2000", "2147483648", "growth_interval is '2147483648'; it must lie between 1 and 2147483647"},
        {"2000", "0", "growth_interval is '0'; it must lie between 1 and 2147483647"},
        {"2000", "2000.0", "growth_interval is '2000.0'; it must be a whole number"},
        {"2000", "99999999999999999999999", "it must lie between 1 and 2147483647"},
        {"_growth_tracker\": 0", "_growth_tracker\": -1", "_growth_tracker is '-1'; it must lie between 0"},
        {"0.5", "1.0", "backoff_factor is 1"},
        {"2.0", "1.0", "growth_factor is 1"},
    };
    for (const broken& one : cases) {
        const std::string text = replaced(good, one.what, one.by);
        CAPTURE(text);
        const std::string message = refusal(import_pytorch, text);
        CAPTURE(message);
        CHECK(message.starts_with("mp::import_pytorch_state: "));
        CHECK(holds(message, one.message));
    }
    CHECK(holds(refusal(import_pytorch, ""), "the text ends where '{', which begins an object"));
    CHECK(holds(refusal(import_pytorch, "{}"), "disabled GradScaler"));
    CHECK(holds(refusal(import_megatron, "{}"), "ConstantGradScaler"));
    CHECK(holds(refusal(import_pytorch, std::string("{\0}", 3)), "there is '\\x00}' where a key"));
    std::string many = "{";
    for (int i = 0; i < 1000; ++i) many += "'k" + std::to_string(i) + "': 1, ";
    CHECK(holds(refusal(import_pytorch, many), "there are more than 64 keys"));
    CHECK(refusal(import_pytorch, std::string(1000000, '{')).size() < 200);
    CHECK(refusal(import_pytorch, "{'" + std::string(1000000, 'a')).size() < 200);
}

TEST_CASE("states that no scaler of the kind can have are refused") {
    const std::string zero = deepspeed_scaler{}.text();
    CHECK(import_zero(zero).policy == mp::deepspeed_policy{});
    CHECK(holds(refusal(import_zero, replaced(zero, "'scale_factor': 2.0", "'scale_factor': 3.0")),
                "scale_factor is 3; it must be 2"));
    CHECK(holds(refusal(import_zero, replaced(zero, "'dynamic': True", "'dynamic': False")), "static"));
    CHECK(holds(refusal(import_zero, replaced(zero, "'last_overflow_iter': -1", "'last_overflow_iter': 0")),
                "state.growth.last_overflow is 0; it must be less than"));
    CHECK(holds(refusal(import_zero, replaced(zero, "'cur_iter': 0", "'cur_iter': 9223372036854775807")),
                "cur_iter is '9223372036854775807'; it must lie between 0 and 4611686018427387904"));
    CHECK(holds(refusal(import_zero, replaced(zero, "'cur_hysteresis': 2", "'cur_hysteresis': 0")),
                "cur_hysteresis is '0'"));
    CHECK(holds(refusal(import_zero, replaced(zero, "'cur_scale': 65536.0", "'cur_scale': 0.5")),
                "cur_scale is 0.5; it must be at least min_scale"));
    CHECK(holds(refusal(import_zero,
                        replaced(zero, "'consecutive_hysteresis': False", "'consecutive_hysteresis': 0")),
                "consecutive_hysteresis is '0'; it must be true or false"));
    CHECK(holds(refusal(import_fused, zero), "the key 'min_scale' is not known"));
    CHECK(holds(refusal(import_apex, "{'loss_scaler0': {'loss_scale': 8.0, 'unskipped': 3}}"), "nested"));
    CHECK(holds(thrown<argument_error>([] {
                    (void)mp::import_apex_states("{'loss_scaler1': {'loss_scale': 8.0, 'unskipped': 3}}");
                }),
                "the key is 'loss_scaler1' where 'loss_scaler0' was expected"));
    CHECK(holds(thrown<argument_error>([] {
                    (void)mp::import_apex_states("{'loss_scaler0': {'loss_scale': -8.0, 'unskipped': 3}}");
                }),
                "state.scale is -8"));
    CHECK(holds(thrown<argument_error>([] { (void)mp::import_apex_states("{'loss_scaler0': {}} 1"); }),
                "the key 'loss_scale' is missing"));
    CHECK_THROWS_AS((void)mp::import_apex_state("{'loss_scale': 8.0, 'unskipped': 3}", {.scale_window = 0}),
                    argument_error);
}

TEST_CASE("cut off anywhere a state is refused") {
    const std::string texts[] = {torch_scaler{}.text(), deepspeed_scaler{}.text(), megatron_scaler{}.text()};
    for (const std::string& text : texts) {
        for (std::size_t i = 0; i < text.size(); ++i) {
            CAPTURE(text.substr(0, i));
            CHECK_THROWS_AS((void)mp::import_pytorch_state(text.substr(0, i)), argument_error);
            CHECK_THROWS_AS((void)mp::import_deepspeed_state(text.substr(0, i)), argument_error);
            CHECK_THROWS_AS((void)mp::import_megatron_state(text.substr(0, i)), argument_error);
        }
    }
}
