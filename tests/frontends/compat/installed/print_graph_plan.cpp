// SPDX-License-Identifier: MIT
// Reads graphs and prints which types of their nodes get the low precision, and the casts. A graph is lines of words, and a
// line "plan f16" or "plan bf16" behind them:
//     node <name> <op> <type> <flags> <input>...
// where the flags are letters: e is eligible, p preserved, s stateful, k with a kernel, d defined for the low precision; and
// an input is "<source>:<output>", with "!" before it if it is read in its own type; outputs with types of their own are
// "=<output>,<type>".
#include <mp/frontends/compat/tensorflow/graph_rewrite.hpp>
#include <mp/frontends/compat/tensorflow/op_lists.hpp>

#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace ac = mp::autocast;

int main() {
    std::vector<ac::graph_node> nodes;
    std::map<std::string, std::string> flags;
    for (std::string line; std::getline(std::cin, line);) {
        std::istringstream words(line);
        std::string kind;
        std::string word;
        words >> kind;
        if (kind == "plan") {
            words >> word;
            ac::graph_rewrite_options options;
            if (word == "bf16") options.low_precision = mp::element_format::bf16;
            const auto has = [&](char flag) {
                return [&, flag](const ac::graph_node& node) {
                    return flags[node.name].find(flag) != std::string::npos;
                };
            };
            const auto& list = word == "bf16" ? ac::lists::tensorflow_bfloat16 : ac::lists::tensorflow;
            const auto plan = ac::plan_graph_rewrite(nodes, list, options, has('k'), has('d'));
            for (const ac::planned_node& node : plan.nodes) {
                if (node.low_precision) std::cout << node.name << ' ';
                for (const ac::planned_type& other : node.others) {
                    if (other.low_precision) std::cout << node.name << '/' << other.name << ' ';
                }
            }
            for (const ac::planned_cast& cast : plan.casts) std::cout << cast.name << ' ';
            std::cout << '\n';
            nodes.clear();
            flags.clear();
            continue;
        }
        ac::graph_node node;
        words >> node.name >> node.op >> word;
        node.element = mp::find_element_format(word).value();
        words >> flags[node.name];
        node.eligible = flags[node.name].find('e') != std::string::npos;
        node.preserve = flags[node.name].find('p') != std::string::npos;
        node.stateful = flags[node.name].find('s') != std::string::npos;
        while (words >> word) {
            if (word.starts_with('=')) {
                const std::size_t comma = word.find(',');
                node.fixed_outputs.push_back({std::stoi(word.substr(1, comma - 1)),
                                              mp::find_element_format(word.substr(comma + 1)).value()});
            } else if (word.starts_with('!')) {
                node.inputs.push_back(ac::fixed_input(ac::graph_input(word.substr(1))));
            } else {
                node.inputs.emplace_back(word);
            }
        }
        nodes.push_back(node);
    }
}
