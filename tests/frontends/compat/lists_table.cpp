// SPDX-License-Identifier: MIT
// The published lists side by side: builds tests/frontends/compat/lists.md from the lists and compares it with the
// file. With the environment variable MP_WRITE_DOCUMENTS set, it writes the file instead.
#include "frontends/compat/lists_families.hpp"

#include <doctest/doctest.h>
#include <mp/frontends/compat/op_lists.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#if !defined(MP_LISTS_DOCUMENT) && defined(MP_SOURCE_DIR)
#define MP_LISTS_DOCUMENT MP_SOURCE_DIR "/tests/frontends/compat/lists.md"
#endif

namespace {

namespace ac = mp::autocast;
namespace lists = mp::autocast::lists;
using mp::op_category;
using mp_test::families;
using mp_test::family;

struct column {
    std::string_view title;
    const ac::op_list& list;
    std::string_view family::* names;
};

constexpr column columns[] = {
    {"PyTorch CUDA", lists::pytorch_cuda, &family::pytorch},
    {"PyTorch CPU", lists::pytorch_cpu, &family::pytorch},
    {"PyTorch Metal", lists::pytorch_mps, &family::pytorch},
    {"TensorFlow float16", lists::tensorflow, &family::tensorflow},
    {"TensorFlow bfloat16", lists::tensorflow_bfloat16, &family::tensorflow},
    {"Apex", lists::apex, &family::apex},
    {"MXNet float16", lists::mxnet, &family::mxnet},
    {"MXNet bfloat16", lists::mxnet_bfloat16, &family::mxnet},
    {"NVIDIA", lists::nvidia, &family::pytorch},
};
static_assert(std::size(columns) == lists::all_lists.size());

constexpr std::string_view family::* systems[] = {&family::pytorch, &family::tensorflow, &family::mxnet,
                                                  &family::apex};

/// One word for a category, for narrow columns.
constexpr std::string_view word_for(op_category category) {
    switch (category) {
        case op_category::lower_precision:
            return "low";
        case op_category::full_precision:
            return "full";
        case op_category::full_precision_output:
            return "full output";
        case op_category::append_output_type:
            return "append type";
        case op_category::promote:
            return "promote";
        case op_category::promote_widest:
            return "widest";
        case op_category::pass_through:
            return "keep";
        case op_category::banned:
            return "banned";
    }
    return "";
}

std::vector<std::string> words_of(std::string_view text) {
    std::istringstream stream{std::string(text)};
    return {std::istream_iterator<std::string>(stream), {}};
}

std::string treatment(const ac::op_rule& rule) {
    std::string text(word_for(rule.category));
    if (!rule.parameter.empty()) {
        text += " if " + std::string(rule.parameter) + " is " + std::string(rule.value);
    }
    return text;
}

/// The treatments that a list has for these names, each once.
std::vector<std::string> treatments(const ac::op_list& list, std::string_view names) {
    std::vector<std::string> result;
    for (const std::string& name : words_of(names)) {
        for (const ac::op_rule& rule : ac::find_rules(list, name)) {
            if (std::find(result.begin(), result.end(), treatment(rule)) == result.end()) {
                result.push_back(treatment(rule));
            }
        }
    }
    return result;
}

/// Whether two lists that name an operation treat it differently.
bool differs(const family& operation) {
    std::set<std::vector<std::string>> seen;
    for (const column& system : columns) {
        const auto found = treatments(system.list, operation.*system.names);
        if (!found.empty()) seen.insert(found);
    }
    return seen.size() > 1;
}

std::string joined(const std::vector<std::string>& parts, std::string_view separator) {
    std::string text;
    for (const std::string& part : parts) text += (text.empty() ? "" : std::string(separator)) + part;
    return text;
}

std::string overview() {
    std::string text = "| list | rules |";
    for (int i = 0; i <= static_cast<int>(op_category::banned); ++i) {
        text += ' ' + std::string(word_for(static_cast<op_category>(i))) + " |";
    }
    text += " an op without a rule |\n|---|---|---|---|---|---|---|---|---|---|---|\n";
    for (const column& system : columns) {
        text += "| " + std::string(system.title) + ", `lists::" + std::string(system.list.name) + "` | " +
                std::to_string(system.list.rules.size());
        for (int i = 0; i <= static_cast<int>(op_category::banned); ++i) {
            text +=
                " | " + std::to_string(std::count_if(system.list.rules.begin(), system.list.rules.end(),
                                                     [&](const ac::op_rule& rule) {
                                                         return rule.category == static_cast<op_category>(i);
                                                     }));
        }
        text += " | " + std::string(word_for(system.list.unlisted)) + " |\n";
    }
    return text;
}

std::string table() {
    std::string text = "| operation |";
    for (const column& system : columns) text += ' ' + std::string(system.title) + " |";
    text += " | names |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n";
    for (const family& operation : families) {
        text += "| " + std::string(operation.name);
        for (const column& system : columns) {
            const auto found = treatments(system.list, operation.*system.names);
            text += " | " + (found.empty() ? "-" : joined(found, ", "));
        }
        std::vector<std::string> names;
        for (const auto system : systems) {
            for (const std::string& name : words_of(operation.*system)) {
                if (std::find(names.begin(), names.end(), '`' + name + '`') == names.end()) {
                    names.push_back('`' + name + '`');
                }
            }
        }
        text += std::string(" | ") + (differs(operation) ? "≠" : "") + " | " + joined(names, " ") + " |\n";
    }
    return text;
}

/// The ops of a list that belong to none of the families, by category.
std::string rest(const column& system) {
    std::set<std::string> known;
    for (const family& operation : families) {
        for (const std::string& name : words_of(operation.*system.names)) known.insert(name);
    }
    std::map<op_category, std::vector<std::string>> ops;
    std::size_t count = 0;
    for (const ac::op_rule& rule : system.list.rules) {
        if (known.count(std::string(rule.op)) != 0) continue;
        ops[rule.category].push_back('`' + std::string(rule.op) + '`');
        ++count;
    }
    std::string text = "\n### " + std::string(system.title) + ", " + std::to_string(count) + " of " +
                       std::to_string(system.list.rules.size()) + " rules\n";
    for (const auto& [category, names] : ops) {
        text += "\n" + std::string(word_for(category)) + ": " + joined(names, " ") + "\n";
    }
    return text;
}

constexpr std::string_view opening = R"(# Lists of ops, side by side

Which op runs in which precision is a matter of opinion. These are the opinions of the systems for mixed
precision, as data: the lists in `include/mp/frontends/compat/`, where each names its source. This file is built
from them by the test `tests/frontends/compat/lists_table.cpp`.

| word | category of mp | what happens to arguments and results |
|---|---|---|
| low | `lower_precision` | arguments are cast to half or bfloat16 |
| full | `full_precision` | arguments are cast to float |
| full output | `full_precision_output` | arguments stay, the result is float |
| append type | `append_output_type` | the same, by calling the form of the op that has a result type |
| promote | `promote` | arguments are cast to float if one is float, else to half or bfloat16 |
| widest | `promote_widest` | arguments are cast to the widest of their types |
| keep | `pass_through` | arguments stay as they are |
| banned | `banned` | the call is refused |

)";

constexpr std::string_view disagreements = R"(
## The disagreements that matter

**Softmax.** Apex, MXNet in float16 and PyTorch on Metal cast the argument to float. PyTorch on CUDA leaves
the argument in half and makes the result float. TensorFlow lets it follow its neighbours, so it runs in
half after a matrix product. On the CPU PyTorch has no rule for it, and MXNet in bfloat16 keeps it: there
the probabilities are bfloat16. The same model run under two of these lists does not give the same numbers.

**Logarithm.** Full in every list that names it but TensorFlow's, where it follows its neighbours. Its
result cannot leave the range of half, since the logarithms of positive half numbers lie between -17 and 12;
an argument that was rounded to zero gives minus infinity, though.

**Exponential and power.** Full wherever float16 is meant: the exponential of anything above 11.1 is
infinite in half. In bfloat16 TensorFlow still denies both, MXNet keeps the exponential of its NumPy
interface, and PyTorch on the CPU has a rule for neither.

**Binary cross entropy.** PyTorch on CUDA and Apex refuse it, because the sigmoid before it rounds to
exactly 0 or 1 in half. PyTorch on the CPU runs it in float, which does not bring back what the sigmoid
lost. The form with logits is in float in every list that names it.

**Sum and mean.** A sum is full in Apex, in MXNet and TensorFlow in float16 and on Metal, full output on
CUDA, and follows its neighbours or stays as it is in the lists for bfloat16. PyTorch has no rule for the
mean, Apex dropped its own; TensorFlow and MXNet in float16 run it in float.

**Layer normalisation.** Full in every list for float16 that names it, keep in MXNet for bfloat16, no rule
in PyTorch on the CPU. Batch normalisation is full on Metal and in what NVIDIA writes. The others give half
to its kernels, which keep the statistics in float themselves.

**Matrix product.** Low, except for MXNet in bfloat16: there layers and convolutions are low, the bare products
of matrices and recurrent networks full. Batched products take the widest type in MXNet.

**Concatenation.** PyTorch on CUDA and Metal leaves it to the native promotion of types; on the CPU it has a
rule. Apex and MXNet take the widest type, TensorFlow keeps. MXNet in bfloat16 takes the widest type to
concatenate and keeps to stack.

)";

[[maybe_unused]] std::string document() {
    std::string text(opening);
    text += overview();
    text += disagreements;
    text += "## By operation\n\n";
    text +=
        "A dash means that the list has no rule; the table above says what happens then. Two of the lists "
        "that\n"
        "name an operation treat it differently where ≠ stands: in ";
    text += std::to_string(std::count_if(std::begin(families), std::end(families), differs)) + " of " +
            std::to_string(std::size(families)) +
            " operations. Where a system has several\nnames for an operation and treats them differently, "
            "all the "
            "treatments are given.\n\n";
    text += table();
    text += "\n## Ops that belong to none of these\n";
    for (const column& system : columns) text += rest(system);
    return text;
}

}  // namespace

TEST_CASE("the document says what the lists say") {
#ifdef MP_LISTS_DOCUMENT
    const std::string wanted = document();
    if (std::getenv("MP_WRITE_DOCUMENTS") != nullptr) {
        std::ofstream file(MP_LISTS_DOCUMENT, std::ios::binary);
        file << wanted;
        REQUIRE(file.good());
    }
    std::ifstream file(MP_LISTS_DOCUMENT, std::ios::binary);
    REQUIRE_MESSAGE(file.good(), "cannot read " MP_LISTS_DOCUMENT);
    const std::string found{std::istreambuf_iterator<char>(file), {}};
    CHECK_MESSAGE(found == wanted, MP_LISTS_DOCUMENT
                  " is out of date: run this test with MP_WRITE_DOCUMENTS=1 in the environment");
#else
    MESSAGE("skipped: MP_LISTS_DOCUMENT does not say where the document is");
#endif
}

TEST_CASE("every name in the table is that of an op in a list of its system, and every operation joins two") {
    static_assert(std::size(families) >= 80);
    std::set<std::string_view> operations;
    for (const family& operation : families) {
        CAPTURE(operation.name);
        CHECK(operations.insert(operation.name).second);
        CHECK(std::count_if(std::begin(systems), std::end(systems),
                            [&](auto system) { return !(operation.*system).empty(); }) >= 2);
        for (const auto system : systems) {
            for (const std::string& name : words_of(operation.*system)) {
                CAPTURE(name);
                // NVIDIA's list goes by the names of PyTorch, but does not make a name known.
                CHECK(std::any_of(std::begin(columns), std::end(columns), [&](const column& other) {
                    return other.names == system && &other.list != &lists::nvidia &&
                           !ac::find_rules(other.list, name).empty();
                }));
            }
        }
    }
}

TEST_CASE("ops with the same name in two systems are one operation in the table") {
    // Different ops in spite of their names: TensorFlow's gives the places of what is not zero.
    const std::set<std::string> unlike{"where"};
    const auto plain = [](std::string_view name) {
        std::string result;
        for (const char character : name) {
            if (character != '_') {
                result += static_cast<char>(std::tolower(static_cast<unsigned char>(character)));
            }
        }
        return result;
    };
    std::map<std::string, std::array<std::set<std::string>, std::size(systems)>> names;
    for (const column& system : columns) {
        if (&system.list == &lists::nvidia) continue;
        const auto index = static_cast<std::size_t>(
            std::find(std::begin(systems), std::end(systems), system.names) - std::begin(systems));
        for (const ac::op_rule& rule : system.list.rules) {
            names[plain(rule.op)][index].insert(std::string(rule.op));
        }
    }
    std::size_t shared = 0;
    for (const auto& [name, by_system] : names) {
        if (std::count_if(by_system.begin(), by_system.end(), [](const auto& s) { return !s.empty(); }) < 2)
            continue;
        if (unlike.count(name) != 0) continue;
        ++shared;
        CAPTURE(name);
        // One operation has a name of each of these systems.
        CHECK(std::any_of(std::begin(families), std::end(families), [&](const family& operation) {
            for (std::size_t i = 0; i < std::size(systems); ++i) {
                const auto known = words_of(operation.*systems[i]);
                const auto in_family = [&](const std::string& op) {
                    return std::find(known.begin(), known.end(), op) != known.end();
                };
                if (!by_system[i].empty() &&
                    !std::any_of(by_system[i].begin(), by_system[i].end(), in_family)) {
                    return false;
                }
            }
            return true;
        }));
    }
    CHECK(shared > 100);
}
