// SPDX-License-Identifier: MIT
/// \file
/// What the tensor cores of several GPUs would return for one matrix product, and how far each of them is
/// from exact arithmetic. No GPU is needed.
#include <mp/block_scaled.hpp>
#include <mp/check.hpp>
#include <mp/frontends/report/chart.hpp>
#include <mp/gemm.hpp>
#include <mp/tensor_core.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/arguments.hpp"
#include "common/page.hpp"
#include "common/random.hpp"
#include "common/table.hpp"
#include "common/text.hpp"
#include "common/user_error.hpp"

namespace {

using mp::arch;

constexpr std::string_view usage = R"(usage: mp-tensor-cores [options]

Shows how far tensor cores are from exact arithmetic: multiplies two matrices as those of V100, A100, L40S, H100 and B200
do, bit for bit, and as a CPU does with float sums, and compares each result with the exact one. Prints a table, and draws the error against the number
of products on a page for the browser.

  --format NAME   of the factors: half (the default), bfloat16, tfloat32, float8_e4m3fn, float8_e5m2; or block-scaled, as only
                  B200 multiplies them: mxfp8_e4m3, mxfp4, nvfp4
  --k K           products of each sum, 1 to 65536 (4096)
  --size M        rows and columns of the result, 1 to 256 (16)
  --values NAME   uniform (between 0 and 1), normal, or both (the default)
  --threads N     1 to 256 (1)
  --html FILE     where the page goes (tensor_cores.html)
  --help          this text

)";

struct options {
    bool help = false;
    std::string format = "half";
    std::ptrdiff_t k = 4096;
    std::ptrdiff_t size = 16;
    std::string values = "both";
    int threads = 1;
    std::string html = "tensor_cores.html";
};

options parse(int count, char** arguments) {
    constexpr std::string_view formats[] = {"half",        "bfloat16",   "tfloat32", "float8_e4m3fn",
                                            "float8_e5m2", "mxfp8_e4m3", "mxfp4",    "nvfp4"};
    constexpr std::string_view kinds[] = {"uniform", "normal", "both"};
    const auto one_of = [](std::string_view name, std::string_view value, auto& known) {
        std::vector<std::string> chosen;
        examples::add_names(name, value, known, chosen);
        if (chosen.size() != 1) throw examples::user_error(std::string(name) + " takes one name");
        return chosen.front();
    };
    options result;
    for (int i = 1; i < count; ++i) {
        const std::string_view argument = arguments[i];
        if (argument == "--help" || argument == "-h") {
            result.help = true;
            continue;
        }
        const std::size_t equals = argument.find('=');
        const std::string_view name = argument.substr(0, equals);
        constexpr std::string_view known[] = {"--format", "--k", "--size", "--values", "--threads", "--html"};
        if (std::find(std::begin(known), std::end(known), name) == std::end(known)) {
            throw examples::user_error("unknown option '" + std::string(name) + "'; --help lists them");
        }
        if (equals == std::string_view::npos && i + 1 == count) {
            throw examples::user_error(std::string(name) + " needs a value");
        }
        const std::string_view value =
            equals == std::string_view::npos ? arguments[++i] : argument.substr(equals + 1);
        if (name == "--format") result.format = one_of(name, value, formats);
        if (name == "--values") result.values = one_of(name, value, kinds);
        if (name == "--k") result.k = examples::parse_integer<std::ptrdiff_t>(name, value, 1, 65536);
        if (name == "--size") result.size = examples::parse_integer<std::ptrdiff_t>(name, value, 1, 256);
        if (name == "--threads") result.threads = examples::parse_integer<int>(name, value, 1, 256);
        if (name == "--html") {
            if (value.empty()) throw examples::user_error("--html needs the name of a file");
            result.html = value;
        }
    }
    return result;
}

/// A result against the exact one, in units of the root mean square of the exact one's elements.
struct error_summary {
    float first = 0;  ///< the first element, as computed
    double mean = 0;  ///< with its sign: cutting off gives a drift
    double rms = 0;
    double largest = 0;
};

/// One line of the table, and one in the picture with errors for several k.
struct contender {
    std::string name;
    std::string style;
    std::vector<std::pair<std::ptrdiff_t, error_summary>> by_k;
};

/// Factors, stored so that the first k columns of A and rows of B are a product of their own.
template <class Value>
struct problem {
    std::ptrdiff_t size;
    std::vector<Value> a;  ///< size x k, row after row
    std::vector<Value> b;  ///< k x size, column after column
    std::ptrdiff_t k_stride;

    [[nodiscard]] auto left(std::ptrdiff_t k) const { return mp::row_major(a.data(), size, k, k_stride); }
    [[nodiscard]] auto right(std::ptrdiff_t k) const { return mp::column_major(b.data(), k, size, k_stride); }

    /// The exact product of the first k columns and rows, rounded to double.
    [[nodiscard]] std::vector<double> exact(std::ptrdiff_t k) const {
        std::vector<double> result;
        const auto length = static_cast<std::size_t>(k);
        for (std::ptrdiff_t i = 0; i < size; ++i) {
            for (std::ptrdiff_t j = 0; j < size; ++j) {
                const std::span row(a.data() + i * k_stride, length);
                const std::span column(b.data() + j * k_stride, length);
                result.push_back(mp::exact_dot(row, column).template convert_to<double>());
            }
        }
        return result;
    }
};

template <class Value>
problem<Value> random_problem(const options& chosen, std::string_view kind) {
    examples::random_numbers random(1);
    const auto uniform = [&] { return static_cast<double>(random.next() >> 40) * 0x1p-24; };
    const auto draw = [&] {
        if (kind == "uniform") return uniform();
        // Twelve uniform numbers, less six: nearly normal, and the same on every machine.
        double sum = -6;
        for (int i = 0; i < 12; ++i) sum += uniform();
        return sum;
    };
    problem<Value> result{chosen.size, {}, {}, chosen.k};
    for (std::ptrdiff_t i = 0; i < chosen.size * chosen.k; ++i) {
        result.a.push_back(Value(draw()));
        result.b.push_back(Value(draw()));
    }
    return result;
}

error_summary compare(const std::vector<float>& computed, const std::vector<double>& exact) {
    error_summary result;
    double squares = 0;
    const auto count = static_cast<double>(exact.size());
    for (std::size_t i = 0; i < exact.size(); ++i) {
        const double error = static_cast<double>(computed[i]) - exact[i];
        squares += exact[i] * exact[i] / count;
        result.mean += error / count;
        result.rms += error * error / count;
        result.largest = std::max(result.largest, std::fabs(error));
    }
    const double unit = squares > 0 ? std::sqrt(squares) : 1.0;
    result.first = computed.front();
    result.mean /= unit;
    result.rms = std::sqrt(result.rms) / unit;
    result.largest /= unit;
    return result;
}

/// All contenders over k = 16, 32, ... and the one that was asked for.
template <class Value>
std::vector<contender> results_for(const options& chosen, std::string_view kind) {
    const problem<Value> it = random_problem<Value>(chosen, kind);
    std::vector<std::ptrdiff_t> lengths;
    for (std::ptrdiff_t k = 16; k < chosen.k; k *= 2) lengths.push_back(k);
    lengths.push_back(chosen.k);
    std::vector<contender> all;
    const auto add = [&](std::string name, std::string style) {
        all.push_back({std::move(name), std::move(style), {}});
        return all.size() - 1;
    };
    for (const std::ptrdiff_t k : lengths) {
        const std::vector<double> exact = it.exact(k);
        std::size_t index = 0;
        const auto run = [&](const char* name, const char* style, auto exec) {
            if (index == all.size()) add(name, style);
            std::vector<float> c(static_cast<std::size_t>(it.size * it.size));
            mp::gemm(exec, 1.0F, it.left(k), it.right(k), 0.0F, mp::row_major(c.data(), it.size, it.size));
            all[index++].by_k.emplace_back(k, compare(c, exact));
        };
        const int threads = chosen.threads;
        constexpr bool is_half = std::is_same_v<Value, mp::half>;
        constexpr bool is_small = sizeof(Value) == 1;
        if constexpr (is_half) run("V100", "v100", mp::emulated<arch::sm_70>{.threads = threads});
        if constexpr (!is_small) run("A100", "a100", mp::emulated<arch::sm_80>{.threads = threads});
        run("L40S", "l40s", mp::emulated<arch::sm_89>{.threads = threads});
        run("H100", "h100", mp::emulated<arch::sm_90>{.threads = threads});
        if constexpr (is_small) {
            run("H100, not promoted", "h100 plain",
                mp::emulated<arch::sm_90>{.threads = threads, .promotion_interval = 0});
        }
        run("B200", "b200", mp::emulated<arch::sm_100>{.threads = threads});
        run("CPU, float sums", "cpu", mp::cpu{.threads = threads, .products = mp::accumulation::ordered});
    }
    return all;
}

/// The same for matrices that are quantised in blocks; what that loses is not counted.
template <class Matrix>
std::vector<contender> block_scaled_results(const options& chosen, std::string_view kind) {
    const problem<float> all = random_problem<float>(chosen, kind);
    const mp::cpu host{.threads = chosen.threads, .products = mp::accumulation::ordered};
    constexpr float one = Matrix::has_tensor_scale ? 1.0F : 0.0F;
    std::vector<contender> results = {{"B200, by published models", "b200", {}},
                                      {"CPU, float sums", "cpu", {}}};
    for (std::ptrdiff_t k = 16;; k *= 2) {
        k = std::min(k, chosen.k);
        const auto a = mp::quantize<Matrix>(host, all.left(k), {.tensor_scale = one});
        const auto b = mp::quantize<Matrix>(
            host, all.right(k), {.direction = mp::block_direction::along_columns, .tensor_scale = one});
        const auto count = static_cast<std::size_t>(chosen.size * k);
        problem<float> values{chosen.size, std::vector<float>(count), std::vector<float>(count), k};
        mp::dequantize(host, a, mp::row_major(values.a.data(), chosen.size, k));
        mp::dequantize(host, b, mp::column_major(values.b.data(), k, chosen.size));
        const std::vector<double> exact = values.exact(k);
        std::vector<float> c(exact.size());
        const auto to = mp::row_major(c.data(), chosen.size, chosen.size);
        mp::gemm(mp::emulated<arch::sm_100>{.threads = chosen.threads}, 1.0F, a, b, 0.0F, to);
        results[0].by_k.emplace_back(k, compare(c, exact));
        mp::gemm(host, 1.0F, values.left(k), values.right(k), 0.0F, to);
        results[1].by_k.emplace_back(k, compare(c, exact));
        if (k == chosen.k) return results;
    }
}

constexpr std::string_view style_sheet = R"(
.v100 { stroke: #c8283c; } .a100 { stroke: #d98b0b; } .l40s { stroke: #8a63c9; stroke-dasharray: 7 4; }
.h100 { stroke: #2a9d6f; } .plain { stroke-dasharray: 2 3; } .b200 { stroke: #4d7ea8; stroke-dasharray: 7 4; }
.cpu { stroke: var(--dim); }
)";

std::string picture(const std::vector<contender>& all, const std::string& title) {
    double low = std::numeric_limits<double>::infinity();
    double high = -low;
    for (const contender& it : all) {
        for (const auto& [k, error] : it.by_k) {
            if (!(error.rms > 0)) continue;
            low = std::min(low, std::floor(std::log10(error.rms)));
            high = std::max(high, std::ceil(std::log10(error.rms)));
        }
    }
    if (!(low <= high)) return {};  // all are exact
    high = std::max(high, low + 1);
    const auto& lengths = all.front().by_k;
    const double first = std::log2(static_cast<double>(lengths.front().first));
    const double last = std::max(std::log2(static_cast<double>(lengths.back().first)), first + 1);
    mp::report::chart chart(title, {first, low}, {last, high});
    for (const auto& length : lengths) {
        chart.x_tick(std::log2(static_cast<double>(length.first)), std::to_string(length.first), true);
    }
    for (double y = low; y <= high; y += 1) chart.y_tick(y, "1e" + examples::fixed(y, 0));
    chart.x_title("products of a sum, k");
    chart.y_title("root mean square error");
    std::string legend = "<div class=\"legend\">";
    for (const contender& it : all) {
        std::vector<mp::report::chart_point> points;
        for (const auto& [k, error] : it.by_k) {
            points.push_back(
                {std::log2(static_cast<double>(k)),
                 error.rms > 0 ? std::log10(error.rms) : std::numeric_limits<double>::quiet_NaN()});
        }
        chart.polyline("line " + it.style, points);
        for (std::size_t i = 0; i < points.size(); ++i) {
            chart.hover(points[i], it.name + ", k = " + std::to_string(it.by_k[i].first) + ": " +
                                       examples::formatted("%.2e", it.by_k[i].second.rms));
        }
        legend += examples::legend_line(it.style, it.name);
    }
    return examples::figure(title, legend + "</div>\n" + chart.html(),
                            "Error over the root mean square of the exact elements. Where a line is missing, "
                            "all results are exact.");
}

examples::table table_of(const std::vector<contender>& all) {
    examples::table result;
    result.head = {{"", ""},
                   {"first element", "as returned"},
                   {"mean error", "with its sign"},
                   {"error, root", "mean square"},
                   {"largest", "error"}};
    for (const contender& it : all) {
        const error_summary& error = it.by_k.back().second;
        result.rows.push_back({it.name, examples::formatted("%.9g", static_cast<double>(error.first)),
                               examples::formatted("%+.2e", error.mean),
                               examples::formatted("%.2e", error.rms),
                               examples::formatted("%.2e", error.largest)});
    }
    return result;
}

std::vector<contender> results_for(const options& chosen, std::string_view kind) {
    if (chosen.format == "bfloat16") return results_for<mp::bfloat16>(chosen, kind);
    if (chosen.format == "tfloat32") return results_for<mp::tfloat32>(chosen, kind);
    if (chosen.format == "float8_e4m3fn") return results_for<mp::float8_e4m3fn>(chosen, kind);
    if (chosen.format == "float8_e5m2") return results_for<mp::float8_e5m2>(chosen, kind);
    if (chosen.format == "mxfp8_e4m3") return block_scaled_results<mp::mxfp8_e4m3>(chosen, kind);
    if (chosen.format == "mxfp4") return block_scaled_results<mp::mxfp4>(chosen, kind);
    if (chosen.format == "nvfp4") return block_scaled_results<mp::nvfp4>(chosen, kind);
    return results_for<mp::half>(chosen, kind);
}

int run(int count, char** arguments) {
    const options chosen = parse(count, arguments);
    if (chosen.help) {
        std::fputs(usage.data(), stdout);
        return 0;
    }
    const examples::report_file report(chosen.html);
    const std::string size = std::to_string(chosen.size);
    const std::string title =
        size + " x " + size + " sums of " + std::to_string(chosen.k) + " products of " + chosen.format;
    std::string page = examples::page_begin(title, style_sheet);
    std::printf(
        "%s, compared with exact arithmetic; errors over the root mean square of the exact elements\n",
        title.c_str());
    for (const std::string_view kind : {"uniform", "normal"}) {
        if (chosen.values != "both" && chosen.values != kind) continue;
        const std::vector<contender> all = results_for(chosen, kind);
        const std::string heading =
            kind == "uniform" ? "Numbers uniform in [0, 1)" : "Numbers of a normal distribution";
        const examples::table table = table_of(all);
        std::printf("\n%s\n\n%s", heading.c_str(), examples::to_text(table).c_str());
        page += "<h2>" + heading + "</h2>\n" + examples::html_table(table) + picture(all, "Error against k");
    }
    report.write(page + examples::page_end("mp-tensor-cores", "The model is in mp/tensor_core.hpp."));
    std::printf("\nThe picture is in %s\n", chosen.html.c_str());
    if (std::fflush(stdout) != 0) throw std::runtime_error("cannot write to the output");
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return run(argc, argv);
    } catch (const examples::user_error& problem) {
        std::fprintf(stderr, "mp-tensor-cores: %s\n", problem.what());
        return 2;
    } catch (const std::exception& problem) {
        std::fprintf(stderr, "mp-tensor-cores: %s\n", problem.what());
        return 1;
    }
}
