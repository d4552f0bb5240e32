// SPDX-License-Identifier: MIT
// Prints what the library declares about IEEE P3109 4.0: formats, projections and operations as YAML, and
// every operation specialization that section 4.5 of the report demands, in the notation of section 4.6.
//
//     p3109_conformance > declaration.yaml
#include <mp/numbers/format/p3109/conformance.hpp>

#include <initializer_list>
#include <iostream>
#include <string>
#include <string_view>

namespace {

namespace p3109 = mp::p3109_operations;

constexpr std::string_view f4_f8[]{"Binary4p2sf", "Binary8p4se", "Binary8p3se"};
constexpr std::string_view external[]{"binary32", "binary16", "BFloat16"};
constexpr std::string_view f8_external[]{"Binary8p4se", "Binary8p3se", "binary32", "binary16", "BFloat16"};
constexpr std::string_view all[]{"Binary4p2sf", "Binary8p4se", "Binary8p3se",
                                 "binary32",    "binary16",    "BFloat16"};

int missing = 0;

/// One line: the function's name and the specialization.
void declare(std::string_view operation, const std::string& parameters) {
    const std::string specialization = std::string(operation) + "<" + parameters + ">";
    const bool provided = p3109::provides(specialization);
    if (!provided) ++missing;
    std::cout << (provided ? "  - " : "  # missing: ") << specialization << '\n';
}

std::string joined(std::initializer_list<std::string_view> parts) {
    std::string result;
    for (const std::string_view part : parts) {
        if (!result.empty()) result += ", ";
        result += part;
    }
    return result;
}

constexpr std::string_view projection = "(NearestTiesToEven, SatNone)";

void declare_sums_and_products(std::string_view prefix, std::string_view scale) {
    const auto scaled = [&](std::string_view format) {
        return scale.empty() ? std::string(format) : "(" + joined({scale, format}) + ")";
    };
    for (const std::string_view operation : {"Add", "Subtract", "Multiply"}) {
        for (const std::string_view x : f4_f8) {
            for (const std::string_view y : f4_f8) {
                for (const std::string_view r : f8_external)
                    declare(std::string(prefix) + std::string(operation),
                            joined({scaled(x), scaled(y), r, projection}));
            }
        }
    }
}

void declare_mandatory() {
    for (const std::string_view x : all) {
        for (const std::string_view r : all) {
            declare("Convert", joined({x, r, projection}));
            declare("Recip", joined({x, r, projection}));
        }
    }
    for (const std::string_view f : f4_f8) {
        for (const std::string_view operation : {"Negate", "Abs"})
            declare(operation, joined({f, f, projection}));
    }
    declare_sums_and_products("", "");
    for (const std::string_view operation : {"FMA", "FAA"}) {
        for (const std::string_view x : f4_f8) {
            for (const std::string_view y : f4_f8) {
                for (const std::string_view r : external)
                    declare(operation, joined({x, y, r, r, projection}));
            }
        }
    }
    for (const std::string_view f : f4_f8) {
        for (const p3109::standard_operation& op : p3109::standard_operations) {
            const bool extremum = op.name.substr(0, 7) == "Minimum" || op.name.substr(0, 7) == "Maximum";
            if (extremum) declare(op.name, joined({f, f, f, projection}));
            if (op.name.substr(0, 7) == "Compare") declare(op.name, joined({f, f}));
            if (op.name.substr(0, 2) == "Is" || op.name.substr(0, 4) == "Next")
                declare(op.name, std::string(f));
        }
    }
    for (const std::string_view f : all) {
        for (const p3109::standard_operation& op : p3109::standard_operations) {
            if (op.group == p3109::operation_group::meta) declare(op.name, std::string(f));
        }
    }
    declare_sums_and_products("Scaled", "Binary8p1uf");
}

void print_group(std::string_view title, p3109::operation_group group) {
    std::cout << "  " << title << ": [";
    bool first = true;
    for (const p3109::standard_operation& op : p3109::standard_operations) {
        if (op.group != group) continue;
        std::cout << (first ? "" : ", ") << op.name;
        first = false;
    }
    std::cout << "]\n";
}

}  // namespace

int main() {
    std::cout
        << "---\n"
           "Metadata:\n"
           "  conformance: IEEE SA P3109\n"
           "  version: 4.0\n"
           "  implementation:\n"
           "    name: mp\n"
           "    version: "
        << MP_VERSION / 10000 << '.' << MP_VERSION / 100 % 100 << '.' << MP_VERSION % 100
        << "\n"
           "Formats:\n"
           "  - \"Binary{K, P, Signedness, Domain} for 2 <= K <= 16, every P, signedness and domain\"\n"
           "  - external: [binary32, binary16, BFloat16]\n"
           "  # functions of groups B and C but Divide, Sqrt, Recip, RSqrt, Hypot: formats of up to 16 bits\n"
           "Projections:\n"
           "  Rounding: [NearestTiesToEven, NearestTiesToAway, TowardPositive, TowardNegative, TowardZero, "
           "ToOdd,\n"
           "             StochasticA, StochasticB, StochasticC]\n"
           "  StochasticBits: 1 to 32\n"
           "  Saturation: [SatNone, SatFinite, SatPropagate]\n"
           "BlockSizes: 1 to 8192\n"
           "Operations:\n";
    print_group("A", p3109::operation_group::core);
    print_group("B", p3109::operation_group::basic);
    print_group("C", p3109::operation_group::full);
    print_group("M", p3109::operation_group::meta);
    print_group("E", p3109::operation_group::reductions);
    print_group("KA", p3109::operation_group::block_core);
    std::cout << "  # and with Scaled and Block before their names all elementwise ones of A, B and C\n"
                 "Kappas:\n"
                 "  Empty: true  # no operation is approximate\n"
                 "Specializations:  # those of section 4.5\n";
    declare_mandatory();
    return missing == 0 ? 0 : 1;
}
