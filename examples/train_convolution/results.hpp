// SPDX-License-Identifier: MIT
/// \file
/// What became of the trainings, as a table and in sentences.
#pragma once

#include <mp/frontends/compat/presets.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../common/table.hpp"
#include "../common/text.hpp"
#include "training.hpp"

namespace examples::train_convolution {

/// The training under one preset.
struct result {
    const mp::autocast::preset* preset;
    training_record record;
};

/// A short name of a format, for a narrow column.
inline std::string short_name(std::string_view format) {
    if (format == "bfloat16") return "bf16";
    if (format.starts_with("float8_e4m3")) return "e4m3";
    if (format.starts_with("float8_e5m2")) return "e5m2";
    return std::string(format);
}

/// The format that an op computed in during the last step. Under float8 that is the format to which its
/// factors were rounded.
inline std::string computed_in(const training_record& record, std::string_view op) {
    for (const mp::autocast::cast_record& it : record.casts) {
        if (it.op == op && it.to.starts_with("float8")) return short_name(it.to);
    }
    for (const mp::autocast::op_record& it : record.ops) {
        if (it.op == op) return short_name(it.compute_type);
    }
    return short_name(record.stored_type);  // nothing is cast, and nothing on record
}

/// Share of the numbers other than zero that casts of the last step made zero; 0 where nothing was cast.
inline double flushed_fraction(const training_record& record) {
    std::uint64_t flushed = 0;
    std::uint64_t numbers = 0;
    for (const mp::autocast::cast_record& it : record.casts) {
        flushed += it.losses.flushed;
        numbers += it.losses.elements - it.losses.zeros;
    }
    return numbers == 0 ? 0.0 : static_cast<double>(flushed) / static_cast<double>(numbers);
}

/// The ops of the network: the heading of their column, and their names.
struct op_column {
    std::array<std::string_view, 2> head;
    std::string_view op;
    std::string_view backward = op;  ///< of what computes its gradient
};
inline constexpr std::array<op_column, 6> op_columns = {
    {{{"", "conv2d"}, "conv2d", "conv2d_backward"},
     {{"", "relu"}, "relu", "relu_backward"},
     {{"max", "pool"}, "max_pool2d", "max_pool2d_backward"},
     {{"layer", "norm"}, "layer_norm", "layer_norm_backward"},
     {{"", "linear"}, "linear", "linear_backward"},
     {{"cross", "entropy"}, "softmax_cross_entropy_with_gradient"}}};

/// What was measured, a line for each preset.
inline table results_table(const std::vector<result>& results) {
    table lines;
    lines.head = {{"", "preset"},       {"test", "accuracy"}, {"final", "loss"},
                  {"skipped", "steps"}, {"final", "scale"},   {"flushed", "to zero"}};
    for (const op_column& it : op_columns)
        lines.head.push_back({std::string(it.head[0]), std::string(it.head[1])});
    lines.head.push_back({"", "seconds"});
    for (const auto& [preset, record] : results) {
        std::vector<std::string> row = {std::string(preset->name),
                                        fixed(100 * record.accuracy, 1) + "%",
                                        formatted("%.3g", record.losses.back()),
                                        std::to_string(record.skipped.size()),
                                        scales_loss(*preset) ? power_text(record.final_scale) : "-",
                                        percent(flushed_fraction(record))};
        for (const op_column& it : op_columns) row.push_back(computed_in(record, it.op));
        row.push_back(fixed(record.seconds, 2));
        lines.rows.push_back(std::move(row));
    }
    return lines;
}

/// What the columns mean, and what the presets have in common.
inline std::vector<std::string> table_notes(const std::vector<result>& results) {
    std::vector<std::string> notes = {
        "final loss: the mean over the batches of the last epoch.",
        "final scale: the loss scale, which only presets in half have. It starts at 2^16 and doubles after " +
            std::to_string(growth_interval) +
            " clean steps instead of PyTorch's 2000, since the training is short.",
        "flushed: of the numbers that autocast casts in the last step, those that become zero.",
        "conv2d to cross entropy: what the op computes in, from the ledger of the last step; e4m3 stands for "
        "factors in float8_e4m3fn (gradients in float8_e5m2) and bfloat16 around them. Weights and "
        "activations are stored in float, those of presets without master weights in half.",
        "seconds: one thread of this CPU, which multiplies in float and converts on the way in and out. The "
        "time that 16 bits save needs hardware that multiplies them."};
    for (const auto& [preset, record] : results) {
        std::string differing;
        for (const op_column& it : op_columns) {
            const std::string backward = computed_in(record, it.backward);
            if (backward == computed_in(record, it.op)) continue;
            differing += (differing.empty() ? "" : ", ") + std::string(it.op) + " in " + backward;
        }
        if (!differing.empty()) {
            notes.push_back(std::string(preset->name) + ", backward: " + differing + ".");
        }
    }
    return notes;
}

/// The preset without autocast, if it was among them; null otherwise.
inline const result* reference_among(const std::vector<result>& results) {
    for (const result& it : results) {
        if (it.preset->value == mp::precision::off) return &it;
    }
    return nullptr;
}

/// Trainings that were the same in every bit, since their presets agree about each op of this network.
struct group {
    std::string names;    ///< of the presets, with commas
    std::size_t size;     ///< how many
    const result* first;  ///< any of them
};

/// The trainings, with those that were the same in the same precision taken together.
inline std::vector<group> groups_of(const std::vector<result>& results) {
    std::vector<group> groups;
    for (const result& it : results) {
        const auto same = [&](const group& other) {
            return other.first->preset->value == it.preset->value &&
                   other.first->record.losses == it.record.losses &&
                   other.first->record.scales == it.record.scales;
        };
        const auto found = std::find_if(groups.begin(), groups.end(), same);
        if (found == groups.end()) {
            groups.push_back({std::string(it.preset->name), 1, &it});
        } else {
            found->names.append(", ").append(it.preset->name);
            ++found->size;
        }
    }
    return groups;
}

/// What the numbers say, in sentences.
inline std::vector<std::string> findings(const std::vector<result>& results) {
    std::vector<std::string> sentences;
    std::string same;
    for (const group& it : groups_of(results)) {
        if (it.size > 1) same += (same.empty() ? "" : "; ") + it.names;
    }
    if (!same.empty()) {
        sentences.push_back(
            "Trainings that were the same in every bit, since their presets agree about each op of this "
            "network: " +
            same + ".");
    }
    const result* reference = reference_among(results);
    const result* farthest = nullptr;
    const auto distance = [&](const result& it) {
        const double behind = reference->record.accuracy - it.record.accuracy;
        return behind < 0 ? -behind : behind;
    };
    for (const result& it : results) {
        if (reference == nullptr || it.preset->value == mp::precision::off) continue;
        if (farthest == nullptr || distance(it) > distance(*farthest)) farthest = &it;
    }
    if (farthest != nullptr) {
        sentences.push_back("Of all test accuracies that of " + std::string(farthest->preset->name) + ", " +
                            fixed(100 * farthest->record.accuracy, 1) +
                            "%, is farthest from the one without autocast, " +
                            fixed(100 * reference->record.accuracy, 1) + "%.");
    }
    return sentences;
}

}  // namespace examples::train_convolution
