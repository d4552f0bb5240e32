// SPDX-License-Identifier: MIT
// count_instructions <source> <ptx> [<sass>]: counts instructions in the listings of a source's kernels (PTX of nvcc,
// SASS of nvdisasm -c), and compares with the budgets that the source names in comments:
//
//   // budget <ptx|sass> <kernel> <loop <opcode>|function> <most|least> <count> <opcode> [per <count> <opcode>]
//
// An opcode is a regular expression, matched from its beginning. `loop X` is the shortest loop that holds an X: from
// the target of a backward branch to the branch. What is counted `per` others does not change when a loop is unrolled.
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <regex>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace {

struct kernel_code {
    std::vector<std::string> opcodes;
    std::vector<std::pair<std::size_t, std::size_t>>
        loops;  // of instructions, from the first to behind the last
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
        if (kernel_ != nullptr) labels_[name] = kernel_->opcodes.size();
    }
    // A statement: [@predicate] opcode operands.
    void add_statement(const std::string& text, const std::regex& branch) {
        std::istringstream words(text);
        std::string opcode;
        words >> opcode;
        if (!opcode.empty() && opcode[0] == '@') words >> opcode;
        if (kernel_ == nullptr || opcode.empty()) return;
        kernel_->opcodes.push_back(opcode);
        std::smatch found;
        if (!std::regex_search(text, found, branch)) return;
        const auto target = labels_.find(found[1]);
        if (target != labels_.end()) kernel_->loops.emplace_back(target->second, kernel_->opcodes.size());
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
    std::string loop;  // the opcode that it holds; empty for the whole function
    bool most = false;
    double count = 0;
    std::string opcode;
    double per = 1;
    std::string per_opcode;  // empty for a count by itself
};

std::vector<budget> read_budgets(const std::string& path) {
    const std::regex form(
        R"(^// budget (ptx|sass) (\S+) (?:loop (\S+)|function) (most|least) (\d+) (\S+)(?: per (\d+) (\S+))?$)");
    std::ifstream file = open(path);
    std::vector<budget> budgets;
    std::smatch found;
    for (std::string line; std::getline(file, line);) {
        if (line.rfind("// budget ", 0) != 0) continue;
        if (!std::regex_match(line, found, form)) {
            std::cerr << path << ": not understood: " << line << "\n";
            std::exit(2);
        }
        budgets.push_back({line.substr(3), found[1], found[2], found[3], found[4] == "most",
                           std::stod(found[5]), found[6], found[7].matched ? std::stod(found[7]) : 1,
                           found[8]});
    }
    if (budgets.empty()) {
        std::cerr << path << " names no budget\n";
        std::exit(2);
    }
    return budgets;
}

using range = std::pair<std::size_t, std::size_t>;

std::size_t count(const kernel_code& code, range part, const std::string& opcode) {
    const std::regex expression("^(?:" + opcode + ")");
    const auto begin = code.opcodes.begin();
    return static_cast<std::size_t>(std::count_if(
        begin + static_cast<std::ptrdiff_t>(part.first), begin + static_cast<std::ptrdiff_t>(part.second),
        [&](const std::string& it) { return std::regex_search(it, expression); }));
}

std::optional<range> part_of(const kernel_code& code, const std::string& loop) {
    if (loop.empty()) return range{0, code.opcodes.size()};
    std::optional<range> shortest;
    for (const range& it : code.loops) {
        if (shortest && it.second - it.first >= shortest->second - shortest->first) continue;
        if (count(code, it, loop) != 0) shortest = it;
    }
    return shortest;
}

// The counts of all opcodes without their modifiers, the most frequent ones first.
void print_opcodes(const kernel_code& code, range part) {
    std::map<std::string, std::size_t> counts;
    for (std::size_t i = part.first; i < part.second; ++i) {
        ++counts[code.opcodes[i].substr(0, code.opcodes[i].find('.'))];
    }
    std::vector<std::pair<std::size_t, std::string>> sorted;
    for (const auto& [opcode, number] : counts) sorted.emplace_back(number, opcode);
    std::sort(sorted.rbegin(), sorted.rend());
    std::cout << "    " << part.second - part.first << " instructions:";
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
    const std::optional<range> part = part_of(kernel->second, it.loop);
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
