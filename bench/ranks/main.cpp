// SPDX-License-Identifier: MIT
// Simulates training on many ranks from the measured times of one:
//
//     python3 bench/torch/ddp.py --layers 6 --width 384 --heads 6 --batch 8 --timeline > times.txt
//     bench_ranks times.txt [page.html [speed,speed...]]
//
// Prints tables in Markdown; a speed is how many times as fast as the measured one a rank is (1,32).
#include <cstdio>
#include <exception>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "../../examples/common/replace_file.hpp"
#include "page.hpp"
#include "scenarios.hpp"

namespace bench::ranks { namespace {

void run(const std::string& times, const std::string& target, const std::vector<double>& speeds) {
    const measured_rank one = read_times(times);
    if (!one.two.empty()) std::printf("%s\n", markdown(validation_head, validation_rows(one)).c_str());
    for (const double speed : speeds) {
        for (const named_link& by : links) {
            std::printf("%s, ranks %g times as fast as measured:\n\n%s\n", std::string(by.name).c_str(),
                        speed, markdown(step_head, step_rows(faster(one, speed), by)).c_str());
        }
    }
    if (target.empty()) return;
    if (!examples::replace_file(target, page(one, speeds)))
        throw std::runtime_error("cannot write '" + target + "'");
    std::printf("The page is %s\n", target.c_str());
}

}  // namespace
}  // namespace bench::ranks

int main(int argc, char** argv) {
    try {
        if (argc < 2 || argc > 4)
            throw std::runtime_error("usage: bench_ranks times.txt [page.html [speed,speed...]]");
        std::vector<double> speeds;
        std::istringstream list(argc > 3 ? argv[3] : "1,32");
        for (std::string word; std::getline(list, word, ',');) speeds.push_back(std::stod(word));
        bench::ranks::run(argv[1], argc > 2 ? argv[2] : "", speeds);
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
        return 1;
    }
}
