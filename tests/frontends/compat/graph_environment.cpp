// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <mp/error.hpp>
#include <mp/frontends/compat/tensorflow/graph_rewrite_options.hpp>

#include <cstdlib>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace {

namespace ac = mp::autocast;
using level = ac::graph_rewrite_level;
using words = std::vector<std::string>;

/// Variables by what follows TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_.
ac::graph_rewrite_options read(const std::map<std::string, std::string>& variables) {
    return ac::tensorflow_options_from_environment([&](const char* name) -> const char* {
        const std::string_view prefix = "TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_";
        const std::string_view full = name;
        if (!full.starts_with(prefix)) return nullptr;
        const auto found = variables.find(std::string(full.substr(prefix.size())));
        return found == variables.end() ? nullptr : found->second.c_str();
    });
}

std::string message_of(const std::map<std::string, std::string>& variables) {
    try {
        (void)read(variables);
    } catch (const mp::argument_error& error) {
        return error.what();
    }
    return "nothing was thrown";
}

bool names_all(const std::string& text, std::initializer_list<std::string_view> parts) {
    for (const std::string_view part : parts) {
        if (text.find(part) == std::string::npos) return false;
    }
    return true;
}

}  // namespace

TEST_CASE("without variables the rewrite works as published") {
    const auto options = read({});
    CHECK(options.level == level::standard);
    CHECK(options.low_precision == mp::element_format::f16);
    CHECK_FALSE(options.infer_follows_allow.has_value());
    for (const auto* changes : {&options.allow, &options.infer, &options.deny, &options.clear}) {
        CHECK(changes->add.empty());
        CHECK(changes->remove.empty());
    }
}

TEST_CASE("the level is read in capitals or not, and an unknown one is an error naming the variable") {
    CHECK(read({{"LEVEL", ""}}).level == level::standard);
    CHECK(read({{"LEVEL", "TENSOR_CORES_ONLY"}}).level == level::tensor_cores_only);
    CHECK(read({{"LEVEL", "unsafe_force_all"}}).level == level::unsafe_force_all);
    CHECK(read({{"LEVEL", "Treat_Infer_As_Deny"}}).level == level::treat_infer_as_deny);
    for (const char* const text : {"TENSOR_CORES", "0", " ", "UNSAFE_FORCE_ALL "}) {
        CHECK(names_all(message_of({{"LEVEL", text}}),
                        {"TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_LEVEL is '" + std::string(text) + "'",
                         "TENSOR_CORES_ONLY"}));
    }
}

TEST_CASE("lists of ops are read under their new and their old names") {
    const auto options = read({{"ALLOWLIST_ADD", "B,A"},
                               {"ALLOWLIST_REMOVE", "C"},
                               {"WHITELIST_ADD", "D,C"},
                               {"WHITELIST_REMOVE", "A"},
                               {"INFERLIST_ADD", ",E,,F,"},
                               {"GRAYLIST_REMOVE", "F"},
                               {"DENYLIST_REMOVE", "G,H"},
                               {"BLACKLIST_ADD", "H"},
                               {"CLEARLIST_ADD", "I"},
                               {"CLEARLIST_REMOVE", "J"}});
    // Later variables win: C is removed, then added again under the old name.
    CHECK(options.allow.add == words{"B", "C", "D"});
    CHECK(options.allow.remove == words{"A"});
    CHECK(options.infer.add == words{"E"});
    CHECK(options.infer.remove == words{"F"});
    CHECK(options.deny.add == words{"H"});
    CHECK(options.deny.remove == words{"G"});
    CHECK(options.clear.add == words{"I"});
    CHECK(options.clear.remove == words{"J"});
}

TEST_CASE("an op that is added to two lists is an error naming it and both variables") {
    CHECK(names_all(message_of({{"ALLOWLIST_ADD", "A,B"}, {"BLACKLIST_ADD", "C,B"}}),
                    {"TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_BLACKLIST_ADD", "'B'",
                     "TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_ALLOWLIST_ADD"}));
    CHECK(names_all(message_of({{"INFERLIST_ADD", "A"}, {"CLEARLIST_ADD", "A"}}),
                    {"REWRITE_CLEARLIST_ADD is 'A'", "REWRITE_INFERLIST_ADD"}));
    CHECK(message_of({{"ALLOWLIST_ADD", "A"}, {"WHITELIST_ADD", "A"}}) == "nothing was thrown");
    CHECK(message_of({{"ALLOWLIST_ADD", "A"}, {"ALLOWLIST_REMOVE", "A"}, {"DENYLIST_ADD", "A"}}) ==
          "nothing was thrown");
}

TEST_CASE("with the allow list alone the variables of the others are not looked at") {
    const auto options =
        read({{"LEVEL", "TENSOR_CORES_ONLY"}, {"ALLOWLIST_ADD", "A"}, {"DENYLIST_ADD", "A,B"}});
    CHECK(options.allow.add == words{"A"});
    CHECK(options.deny.add.empty());
}

TEST_CASE("the process's own environment is read without an argument") {
    const auto by_hand =
        ac::tensorflow_options_from_environment([](const char* name) { return std::getenv(name); });
    CHECK(ac::tensorflow_options_from_environment().level == by_hand.level);
}
