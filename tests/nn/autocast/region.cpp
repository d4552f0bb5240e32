// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <mp/nn/autocast/cast_ledger.hpp>
#include <mp/nn/autocast/region.hpp>

#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>

namespace {

using mp::autocast_precision;
using mp::autocast_region;
using mp::precision;

static_assert(!std::is_copy_constructible_v<autocast_region>);
static_assert(!std::is_copy_assignable_v<autocast_region>);
static_assert(!std::is_convertible_v<precision, autocast_region>);

/// Sets an environment variable for as long as the object lives.
class environment_variable {
public:
    environment_variable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
    ~environment_variable() { ::unsetenv(name_); }
    environment_variable(const environment_variable&) = delete;
    environment_variable& operator=(const environment_variable&) = delete;

private:
    const char* name_;
};

std::string message_of(const auto& function) {
    try {
        function();
    } catch (const mp::argument_error& error) {
        return error.what();
    }
    return "nothing was thrown";
}

TEST_CASE("a thread starts with autocast off, and regions nest") {
    CHECK_FALSE(mp::autocast_active());
    CHECK(autocast_precision() == precision::off);
    {
        const autocast_region outer(precision::fp16);
        CHECK(mp::autocast_active());
        CHECK(autocast_precision() == precision::fp16);
        {
            const autocast_region inner(precision::bf16);
            CHECK(autocast_precision() == precision::bf16);
        }
        CHECK(autocast_precision() == precision::fp16);
    }
    CHECK(autocast_precision() == precision::off);
}

TEST_CASE("a region that is not enabled turns autocast off inside another") {
    const autocast_region outer(precision::fp16);
    {
        const autocast_region exact(precision::fp16, false);
        CHECK_FALSE(mp::autocast_active());
        const autocast_region again(precision::bf16, true);
        CHECK(autocast_precision() == precision::bf16);
    }
    {
        const autocast_region exact(precision::off);
        CHECK_FALSE(mp::autocast_active());
    }
    CHECK(mp::autocast_active());
}

TEST_CASE("an exception that leaves a region restores the one around it") {
    const autocast_region outer(precision::bf16);
    try {
        const autocast_region inner(precision::fp16);
        const autocast_region innermost(precision::off);
        throw std::runtime_error("out of here");
    } catch (const std::runtime_error&) {
        CHECK(autocast_precision() == precision::bf16);
    }
}

TEST_CASE("a value that is no precision is refused and changes nothing") {
    const autocast_region outer(precision::bf16);
    CHECK(message_of([] { const autocast_region bad(static_cast<precision>(7)); }) ==
          "mp::autocast_region: value is 7; it must be an enumerator of mp::precision");
    CHECK(autocast_precision() == precision::bf16);
}

TEST_CASE("threads do not inherit a region; a token carries it") {
    const autocast_region region(precision::fp16);
    const mp::autocast_token token = mp::capture_autocast();
    precision without = precision::bf16;
    precision with = precision::off;
    precision after = precision::bf16;
    std::thread worker([&] {
        without = autocast_precision();
        {
            const autocast_region carried(token);
            with = autocast_precision();
        }
        after = autocast_precision();
    });
    worker.join();
    CHECK(without == precision::off);
    CHECK(with == precision::fp16);
    CHECK(after == precision::off);
    CHECK(autocast_precision() == precision::fp16);
}

TEST_CASE("a token remembers the state at its capture; an empty one is off") {
    mp::autocast_token token;
    CHECK(token.value() == precision::off);
    {
        const autocast_region region(precision::bf16);
        token = mp::capture_autocast();
    }
    CHECK(token.value() == precision::bf16);
    CHECK(token == token);
    CHECK_FALSE(token == mp::autocast_token());
    const autocast_region region(token);
    CHECK(autocast_precision() == precision::bf16);
    const autocast_region off{mp::autocast_token{}};
    CHECK_FALSE(mp::autocast_active());
}

TEST_CASE("a token is current where the thread is in the state that it carries, wherever that came from") {
    const mp::autocast_token off;
    CHECK(off.is_current());
    mp::autocast_token token;
    const auto cache = std::make_shared<mp::autocast::cast_cache>();
    const mp::autocast_options options{.cpu = precision::bf16,
                                       .rules = {{"softmax", mp::op_category::lower_precision}},
                                       .only_ops = {"linear"},
                                       .only_layers = {"encoder"},
                                       .cache = cache};
    {
        const autocast_region region(options);
        const mp::autocast_layer layer("encoder");
        token = mp::capture_autocast();
        CHECK(token.is_current());
        CHECK_FALSE(off.is_current());
        const mp::autocast_layer inner("inner");
        CHECK_FALSE(token.is_current());
    }
    CHECK_FALSE(token.is_current());
    const mp::autocast::op_list list{"mine", {}, mp::op_category::pass_through};
    mp::autocast::cast_ledger observer;
    const auto is_current_in = [&](auto change) {
        mp::autocast_options changed = options;
        change(changed);
        const autocast_region region(changed);
        const mp::autocast_layer layer("encoder");
        return token.is_current();
    };
    CHECK(is_current_in([](auto&) {}));
    CHECK_FALSE(is_current_in([](auto& it) { it.cpu = precision::fp16; }));
    CHECK_FALSE(is_current_in([](auto& it) { it.cuda = precision::fp16; }));
    CHECK_FALSE(is_current_in([&](auto& it) { it.list = &list; }));
    CHECK_FALSE(is_current_in([](auto& it) { it.rules.clear(); }));
    CHECK_FALSE(is_current_in([](auto& it) { it.rules.push_back(it.rules[0]); }));
    CHECK_FALSE(is_current_in([](auto& it) { it.rules[0].op = "linear"; }));
    CHECK_FALSE(is_current_in([](auto& it) { it.only_ops[0] = "matmul"; }));
    CHECK_FALSE(is_current_in([](auto& it) { it.only_layers[0] = "*"; }));
    CHECK_FALSE(is_current_in([](auto& it) { it.cache = nullptr; }));
    CHECK_FALSE(is_current_in([&](auto& it) { it.ledger = &observer; }));
    // Rules of regions within each other are one list.
    const autocast_region outer(options);
    const mp::autocast_layer layer("encoder");
    const autocast_region inner({.rules = {{"gelu", mp::op_category::banned}}});
    CHECK_FALSE(token.is_current());
    token = mp::capture_autocast();
    CHECK(token.is_current());
    const autocast_region same(token);
    CHECK(token.is_current());
}

TEST_CASE("words for precisions read back") {
    for (const precision value : {precision::off, precision::fp16, precision::bf16, precision::fp8}) {
        CHECK(mp::precision_from_string(mp::name_of(value)) == value);
    }
    CHECK(mp::name_of(static_cast<precision>(9)) == "unknown");
    CHECK(message_of([] { (void)mp::precision_from_string("half"); }) ==
          "mp::precision_from_string: text is 'half'; it must be one of fp16, bf16, fp8, off");
}

TEST_CASE("the environment is read on request") {
    ::unsetenv("MP_AUTOCAST");
    CHECK(mp::precision_from_environment() == precision::off);
    CHECK(mp::precision_from_environment("MP_AUTOCAST", precision::bf16) == precision::bf16);
    {
        const environment_variable variable("MP_AUTOCAST", "");
        CHECK(mp::precision_from_environment() == precision::off);
    }
    {
        const environment_variable variable("MP_AUTOCAST", "fp16");
        CHECK(mp::precision_from_environment() == precision::fp16);
        CHECK_FALSE(mp::autocast_active());
    }
    {
        const environment_variable variable("MP_AUTOCAST", "bf16");
        CHECK(mp::precision_from_environment() == precision::bf16);
    }
    {
        const environment_variable variable("MP_AUTOCAST", "off");
        CHECK(mp::precision_from_environment("MP_AUTOCAST", precision::bf16) == precision::off);
        CHECK(mp::precision_from_environment() == precision::off);
    }
    {
        const environment_variable variable("MP_TEST_AUTOCAST", "FP16");
        CHECK(
            message_of([] { (void)mp::precision_from_environment("MP_TEST_AUTOCAST"); }) ==
            "mp::precision_from_string: MP_TEST_AUTOCAST is 'FP16'; it must be one of fp16, bf16, fp8, off");
    }
}

}  // namespace
