// SPDX-License-Identifier: MIT
// count_instructions <source> <ptx> [<sass>]: counts instructions in the listings of a source's kernels (PTX of nvcc,
// SASS of nvdisasm -c), and compares with the budgets that the source names in comments:
//
//   // budget <ptx|sass> <kernel> <loop <opcode> [through <opcode>]|function> <most|least> <count> <opcode>
//       [per <count> <opcode>]
//
// An opcode is a regular expression, matched from its beginning. `loop X` is the shortest loop that holds an X: from
// the target of a backward branch to the branch; `through Y`, the shortest way through it on which there is a Y: what
// is executed, where the rest is for exceptions. What is counted `per` others does not change when a loop is unrolled.
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace {

struct kernel_code {
    std::vector<std::string> opcodes;
    std::vector<std::pair<std::size_t, std::size_t>>
        loops;                                    // of instructions, from the first to behind the last
    std::map<std::size_t, std::string> branches;  // what forward branches go to
    std::set<std::size_t> unconditional;
    std::map<std::string, std::size_t> labels;
};

using listing = std::map<std::string, kernel_code>;

// Reads instructions in the order of the text. A label may be used again in an inner scope: the nearest one before
// the branch is meant.
class listing_reader {
public:
    void begin_kernel(const std::string& name) {
        kernel_ = &kernels_[name];
        labels_.clear();
    }
    void end_kernel() { kernel_ = nullptr; }
    void add_label(const std::string& name) {
        if (kernel_ != nullptr) kernel_->labels[name] = labels_[name] = kernel_->opcodes.size();
    }
    // A statement: [@predicate] opcode operands.
    void add_statement(const std::string& text, const std::regex& branch) {
        std::istringstream words(text);
        std::string opcode;
        words >> opcode;
        const bool predicated = !opcode.empty() && opcode[0] == '@';
        if (predicated) words >> opcode;
        if (kernel_ == nullptr || opcode.empty()) return;
        kernel_->opcodes.push_back(opcode);
        std::smatch found;
        if (!std::regex_search(text, found, branch)) return;
        const auto target = labels_.find(found[1]);
        if (target != labels_.end()) {
            kernel_->loops.emplace_back(target->second, kernel_->opcodes.size());
        } else {
            kernel_->branches[kernel_->opcodes.size() - 1] = found[1];
        }
        // A predicate may also stand before the target.
        if (!predicated && text.find("BRA `") != std::string::npos) {
            kernel_->unconditional.insert(kernel_->opcodes.size() - 1);
        }
    }
    [[nodiscard]] listing take() { return std::move(kernels_); }

private:
    listing kernels_;
    kernel_code* kernel_ = nullptr;
    std::map<std::string, std::size_t> labels_;
};

std::ifstream open(const std::string& path) {
    std::ifstream file(path);
    if (!file) {
        std::cerr << "count_instructions: cannot read " << path << "\n";
        std::exit(2);
    }
    return file;
}

listing read_ptx(const std::string& path) {
    const std::regex entry(R"(\.entry\s+([\w$]+))");
    const std::regex label(R"(^\s*([\w$]+):\s*$)");
    const std::regex branch(R"(\bbra(?:\.uni)?\s+([\w$]+))");
    std::ifstream file = open(path);
    listing_reader reader;
    std::smatch found;
    for (std::string line; std::getline(file, line);) {
        line.erase(std::min(line.find("//"), line.size()));
        if (std::regex_search(line, found, entry)) {
            reader.begin_kernel(found[1]);
        } else if (std::regex_search(line, found, label)) {
            reader.add_label(found[1]);
        } else {
            if (line.rfind("}", 0) == 0) reader.end_kernel();
            std::istringstream statements(line);
            for (std::string statement; std::getline(statements, statement, ';');) {
                const std::size_t begin = statement.find_first_not_of(" \t{}");
                if (begin == std::string::npos || statement[begin] == '.' || statement[begin] == ')')
                    continue;
                reader.add_statement(statement.substr(begin), branch);
            }
        }
    }
    return reader.take();
}

listing read_sass(const std::string& path) {
    const std::regex section(R"(^\s*\.section\s+\.text\.([\w$]+))");
    const std::regex label(R"(^(\.L\w+):)");
    const std::regex instruction(R"(^\s*/\*[0-9a-f]+\*/\s+(.*?)\s*;)");
    const std::regex branch(R"(\b(?:BRA|JMP)\S*\s.*`\((\.L\w+)\))");
    std::ifstream file = open(path);
    listing_reader reader;
    std::smatch found;
    for (std::string line; std::getline(file, line);) {
        if (std::regex_search(line, found, section))
            reader.begin_kernel(found[1]);
        else if (std::regex_search(line, found, label))
            reader.add_label(found[1]);
        else if (std::regex_search(line, found, instruction))
            reader.add_statement(found[1], branch);
    }
    return reader.take();
}

struct budget {
    std::string text;
    std::string listing;
    std::string kernel;
    std::string loop;     // the opcode that it holds; empty for the whole function
    std::string through;  // the opcode on the way through the loop; empty for the whole loop
    bool most = false;
    double count = 0;
    std::string opcode;
    double per = 1;
    std::string per_opcode;  // empty for a count by itself
};

std::vector<budget> read_budgets(const std::string& path) {
    const std::regex form(
        R"(^// budget (ptx|sass) (\S+) (?:loop (\S+)(?: through (\S+))?|function) (most|least) (\d+) (\S+)(?: per (\d+) (\S+))?$)");
    std::ifstream file = open(path);
    std::vector<budget> budgets;
    std::smatch found;
    for (std::string line; std::getline(file, line);) {
        if (line.rfind("// budget ", 0) != 0) continue;
        if (!std::regex_match(line, found, form)) {
            std::cerr << path << ": not understood: " << line << "\n";
            std::exit(2);
        }
        budgets.push_back({line.substr(3), found[1], found[2], found[3], found[4], found[5] == "most",
                           std::stod(found[6]), found[7], found[8].matched ? std::stod(found[8]) : 1,
                           found[9]});
    }
    if (budgets.empty()) {
        std::cerr << path << " names no budget\n";
        std::exit(2);
    }
    return budgets;
}

using range = std::pair<std::size_t, std::size_t>;
using instructions = std::vector<std::size_t>;  // their numbers

bool is(const kernel_code& code, std::size_t instruction, const std::regex& opcode) {
    return std::regex_search(code.opcodes[instruction], opcode, std::regex_constants::match_continuous);
}

std::size_t count(const kernel_code& code, const instructions& part, const std::string& opcode) {
    const std::regex expression(opcode);
    return static_cast<std::size_t>(
        std::count_if(part.begin(), part.end(), [&](std::size_t i) { return is(code, i, expression); }));
}

instructions all_of(const range& part) {
    instructions result(part.second - part.first);
    std::iota(result.begin(), result.end(), part.first);
    return result;
}

// The shortest way through a loop on which there is the opcode, by its forward branches; empty if there is none.
instructions path_through(const kernel_code& code, const range& loop, const std::string& opcode) {
    const std::regex wanted(opcode);
    // Length and next instruction of the shortest way from each instruction to the end; a second time for ways on which
    // there is the opcode.
    constexpr std::size_t none = std::numeric_limits<std::size_t>::max();
    const std::size_t size = loop.second - loop.first;
    struct way {
        std::size_t length = none;
        std::size_t next = none;
    };
    std::vector<way> any(size + 1), with(size + 1);
    any[size].length = 0;
    for (std::size_t n = size; n-- > 0;) {
        const std::size_t instruction = loop.first + n;
        std::vector<std::size_t> successors;
        if (code.unconditional.count(instruction) == 0 || n + 1 == size) successors.push_back(n + 1);
        if (const auto branch = code.branches.find(instruction); branch != code.branches.end()) {
            const auto target = code.labels.find(branch->second);
            if (target != code.labels.end() && target->second > instruction && target->second < loop.second) {
                successors.push_back(target->second - loop.first);
            }
        }
        for (const std::size_t next : successors) {
            if (any[next].length < any[n].length) any[n] = {any[next].length, next};
            if (with[next].length < with[n].length) with[n] = {with[next].length, next};
        }
        if (is(code, instruction, wanted)) with[n] = any[n];
        if (any[n].length != none) ++any[n].length;
        if (with[n].length != none) ++with[n].length;
    }
    instructions result;
    if (with[0].length == none) return result;
    bool seen = false;
    for (std::size_t n = 0; n < size;) {
        result.push_back(loop.first + n);
        seen = seen || is(code, loop.first + n, wanted);
        n = seen ? any[n].next : with[n].next;
    }
    return result;
}

std::optional<instructions> part_of(const kernel_code& code, const budget& it) {
    if (it.loop.empty()) return all_of({0, code.opcodes.size()});
    std::optional<range> shortest;
    for (const range& loop : code.loops) {
        if (shortest && loop.second - loop.first >= shortest->second - shortest->first) continue;
        if (count(code, all_of(loop), it.loop) != 0) shortest = loop;
    }
    if (!shortest) return std::nullopt;
    return it.through.empty() ? all_of(*shortest) : path_through(code, *shortest, it.through);
}

// The counts of all opcodes without their modifiers, the most frequent ones first.
void print_opcodes(const kernel_code& code, const instructions& part) {
    std::map<std::string, std::size_t> counts;
    for (const std::size_t i : part) ++counts[code.opcodes[i].substr(0, code.opcodes[i].find('.'))];
    std::vector<std::pair<std::size_t, std::string>> sorted;
    for (const auto& [opcode, number] : counts) sorted.emplace_back(number, opcode);
    std::sort(sorted.rbegin(), sorted.rend());
    std::cout << "    " << part.size() << " instructions:";
    for (const auto& [number, opcode] : sorted) std::cout << " " << number << " " << opcode;
    std::cout << "\n";
}

bool within(const budget& it, const listing& kernels) {
    std::cout << it.text << "\n";
    const auto kernel = kernels.find(it.kernel);
    if (kernel == kernels.end()) {
        std::cout << "    FAILED: there is no such kernel\n";
        return false;
    }
    const std::optional<instructions> part = part_of(kernel->second, it);
    if (!part) {
        std::cout << "    FAILED: there is no such loop\n";
        return false;
    }
    double number = static_cast<double>(count(kernel->second, *part, it.opcode));
    if (!it.per_opcode.empty()) {
        number *= it.per / static_cast<double>(count(kernel->second, *part, it.per_opcode));
    }
    const bool holds = it.most ? number <= it.count : number >= it.count;
    std::cout << "    " << number << (holds ? "" : ": FAILED") << "\n";
    if (!holds || it.opcode == ".") print_opcodes(kernel->second, *part);
    return holds;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3 && argc != 4) {
        std::cerr << "count_instructions <source> <ptx> [<sass>]\n";
        return 2;
    }
    const listing ptx = read_ptx(argv[2]);
    const listing sass = argc == 4 ? read_sass(argv[3]) : listing{};
    bool good = true;
    bool left_out = false;
    for (const budget& it : read_budgets(argv[1])) {
        if (it.listing == "sass" && argc == 3) {
            left_out = true;
        } else {
            good = within(it, it.listing == "sass" ? sass : ptx) && good;
        }
    }
    if (left_out) std::cout << "there is no nvdisasm: budgets of SASS were left out\n";
    return good ? 0 : 1;
}
