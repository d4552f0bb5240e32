// SPDX-License-Identifier: MIT
// The main function of every benchmark program: Google Benchmark with options that suit a noisy machine (many
// short repetitions in random order, of which the median counts), printing tables of mp beside its peers.
// All options of Google Benchmark work and override these. Besides:
//   --quick        fewer and shorter repetitions, and without the longest rows
//   --table=FILE   writes the tables to a file as well, with the least and the greatest figure of each cell
//   --csv=FILE     writes all raw figures
//   --section=avx2 names the run where it is not the program's build that does
#include <cstdio>
#include <filesystem>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "../examples/common/replace_file.hpp"
#include "table_reporter.hpp"

namespace {

/// Writes a file, or says that this failed.
template <class Print>
bool write(const char* program, const std::string& path, Print print) {
    if (path.empty()) return true;
    std::ostringstream text;
    print(text);
    if (examples::replace_file(path, text.str())) return true;
    std::fprintf(stderr, "%s: cannot write %s\n", program, path.c_str());
    return false;
}

}  // namespace

int main(int argc, char** argv) {
    std::string table_file;
    std::string csv_file;
    std::string section;
    std::vector<std::string> given;
    for (int i = 1; i < argc; ++i) {
        const std::string_view argument = argv[i];
        constexpr std::string_view table_option = "--table=";
        constexpr std::string_view csv_option = "--csv=";
        constexpr std::string_view section_option = "--section=";
        if (argument.starts_with(table_option)) {
            table_file = argument.substr(table_option.size());
        } else if (argument.starts_with(csv_option)) {
            csv_file = argument.substr(csv_option.size());
        } else if (argument.starts_with(section_option)) {
            section = argument.substr(section_option.size());
        } else if (argument == "--quick") {
            bench::quick() = true;
        } else {
            given.emplace_back(argument);
        }
    }
    const int repetitions = bench::quick() ? 3 : 9;
    std::vector<std::string> arguments = {
        argv[0], "--benchmark_repetitions=" + std::to_string(repetitions),
        std::string("--benchmark_min_time=") + (bench::quick() ? "0.003" : "0.01"),
        "--benchmark_enable_random_interleaving=true"};
    arguments.insert(arguments.end(), given.begin(), given.end());
    std::vector<char*> pointers;
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    int count = static_cast<int>(arguments.size());
    benchmark::Initialize(&count, pointers.data());
    if (benchmark::ReportUnrecognizedArguments(count, pointers.data())) return 2;

    // bench_convert_native is the program convert, built natively.
    constexpr std::string_view prefix = "bench_";
    constexpr std::string_view native_suffix = "_native";
    std::string program = std::filesystem::path(argv[0]).stem().string();
    bench::progress::current().program = program;
    bench::progress::current().repetitions = repetitions;
    bench::progress::current().all_cells = given.empty();
    if (program.starts_with(prefix)) program.erase(0, prefix.size());
    const bool native = program.ends_with(native_suffix);
    if (native) program.resize(program.size() - native_suffix.size());
    if (section.empty()) section = native ? "native" : "generic";

    bench::register_benchmarks();
    bench::table_reporter reporter;
    benchmark::RunSpecifiedBenchmarks(&reporter);
    benchmark::Shutdown();
    const bool written =
        write(argv[0], table_file, [&](std::ostream& out) { reporter.print(out, true); }) &&
        write(argv[0], csv_file, [&](std::ostream& out) { reporter.print_csv(out, program, section); });
    return written ? 0 : 1;
}
