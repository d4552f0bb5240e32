// SPDX-License-Identifier: MIT
// The main function of every benchmark program: Google Benchmark with options that suit a noisy machine (many
// short repetitions in random order, of which the median counts), printing tables of mp beside its peers.
// All options of Google Benchmark work and override these; --table=FILE writes the tables to a file as well.
#include "table_reporter.hpp"

#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

int main(int argc, char** argv) {
    std::vector<std::string> arguments = {argv[0], "--benchmark_repetitions=9", "--benchmark_min_time=0.01",
                                          "--benchmark_enable_random_interleaving=true"};
    std::string table_file;
    for (int i = 1; i < argc; ++i) {
        constexpr std::string_view option = "--table=";
        const std::string argument = argv[i];
        if (argument.starts_with(option)) {
            table_file = argument.substr(option.size());
        } else {
            arguments.push_back(argument);
        }
    }
    std::vector<char*> pointers;
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    int count = static_cast<int>(arguments.size());
    benchmark::Initialize(&count, pointers.data());
    if (benchmark::ReportUnrecognizedArguments(count, pointers.data())) return 2;

    bench::register_benchmarks();
    bench::table_reporter reporter;
    benchmark::RunSpecifiedBenchmarks(&reporter);
    benchmark::Shutdown();
    if (table_file.empty()) return 0;
    std::ofstream file(table_file);
    reporter.print(file);
    file.close();
    if (!file) {
        std::fprintf(stderr, "%s: cannot write %s\n", argv[0], table_file.c_str());
        return 1;
    }
    return 0;
}
