// SPDX-License-Identifier: MIT
// Prints every rule of the published lists as a line: list, version, op, category.
#include <mp/frontends/compat/op_lists.hpp>

#include <cstdio>
#include <string>

namespace lists = mp::autocast::lists;

int main() {
    const auto print = [](const mp::autocast::op_list& list) {
        for (const mp::autocast::op_rule& rule : list.rules) {
            std::printf("%s %s %s %s\n", std::string(list.name).c_str(),
                        list.version.empty() ? "-" : std::string(list.version).c_str(),
                        std::string(rule.op).c_str(), std::string(name_of(rule.category)).c_str());
        }
    };
    for (const mp::autocast::op_list* list : lists::all_lists) print(*list);
    for (const mp::autocast::op_list* list : lists::earlier_lists) print(*list);
}
