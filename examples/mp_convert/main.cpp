// SPDX-License-Identifier: MIT
/// \file
/// mp-convert: the weights of a model in a smaller format, and what that costs.
#include <mp/error.hpp>

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "conversion.hpp"
#include "options.hpp"
#include "report.hpp"

namespace mp_convert { namespace {

void print(const std::string& text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
}

void run(const options& chosen) {
    if (chosen.help) return print(std::string(usage));
    const target& format = find_target(chosen.format);
    std::error_code ignored;
    if (!chosen.dry_run && std::filesystem::equivalent(chosen.model, chosen.output, ignored)) {
        throw user_error("the output would replace the model '" + chosen.model + "'");
    }
    std::optional<examples::report_file> page;
    if (chosen.report) page.emplace(chosen.page);
    const mp::tensor_file model(chosen.model);
    file_conversion conversion(model, format, chosen);
    std::vector<tensor_result> results;
    {
        const std::size_t pieces = conversion.pieces();
        examples::progress bar(stderr, isatty(STDERR_FILENO) != 0, pieces == 0 ? 1 : pieces);
        results = conversion.run(bar);
    }
    if (chosen.report) {
        print(examples::to_text(table_of(results, format.name)) + "\n");
        page->write(page_of(results, chosen, format.name));
    }
    print(summary_of(results, format.name) + "\n");
    if (!chosen.dry_run) print("model: " + chosen.output + "\n");
    if (chosen.report) print("report: " + chosen.page + "\n");
}

}  // namespace
}  // namespace mp_convert

int main(int count, char** arguments) {
    try {
        mp_convert::run(mp_convert::parse(count, arguments));
        return 0;
    } catch (const mp_convert::user_error& error) {
        std::fprintf(stderr, "mp-convert: %s\n", error.what());
    } catch (const mp::error& error) {
        std::fprintf(stderr, "mp-convert: %s\n", error.what());
    }
    return 2;
}
