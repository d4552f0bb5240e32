// SPDX-License-Identifier: MIT
/// \file
/// The conversion of a file.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../common/jobs.hpp"
#include "../common/progress.hpp"
#include "targets.hpp"

namespace mp_convert {

/// What became of a tensor.
struct tensor_result {
    std::string name;
    std::string shape;
    std::string from;          ///< the dtype before
    std::string kept_because;  ///< empty if it was converted
    std::uint64_t bytes_before = 0;
    std::uint64_t bytes_after = 0;
    losses lost;
};

inline std::string shape_text(const std::vector<std::size_t>& shape) {
    std::string text;
    for (const std::size_t it : shape) text += (text.empty() ? "" : "x") + std::to_string(it);
    return text.empty() ? "1" : text;
}

inline bool is_floating(std::string_view dtype) {
    return dtype == "F64" || dtype == "F32" || dtype == "F16" || dtype == "BF16";
}

/// Elements as floats. Doubles are rounded to odd, so that what they are rounded to from there is what they would have
/// been rounded to themselves: a float has more than two bits more than all targets.
inline void read_floats(const mp::tensor_file::tensor& from, std::size_t first, std::span<float> to) {
    const auto read_as = [&]<class Source>(Source /*type*/) {
        constexpr std::size_t most = 4096;
        Source block[most];
        for (std::size_t i = 0; i < to.size(); i += most) {
            const std::size_t count = std::min(most, to.size() - i);
            // Files of others need not be aligned.
            std::memcpy(static_cast<void*>(block), from.bytes.data() + (first + i) * sizeof(Source),
                        count * sizeof(Source));
            constexpr mp::projection to_odd{mp::rounding::to_odd, mp::saturation::propagate};
            mp::convert(mp::cpu{}, std::span<const Source>(block, count), to.subspan(i, count), to_odd);
        }
    };
    if (from.dtype == "F64") {
        read_as(double{});
    } else if (from.dtype == "F32") {
        read_as(float{});
    } else if (from.dtype == "F16") {
        read_as(mp::half{});
    } else {
        read_as(mp::bfloat16{});
    }
}

class file_conversion {
public:
    file_conversion(const mp::tensor_file& model, const target& format, const options& chosen)
        : model_(model), format_(format), chosen_(chosen) {
        std::vector<mp::tensor_description> tensors;
        for (const auto& [name, tensor] : model.tensors()) {
            plan it;
            it.tensor = &tensor;
            it.result.name = name;
            it.result.shape = shape_text(tensor.shape);
            it.result.from = tensor.dtype;
            it.result.kept_because = reason_to_keep(name, tensor);
            it.result.bytes_before = tensor.bytes.size();
            const std::size_t before = tensors.size();
            if (it.result.kept_because.empty()) {
                it.names = describe(format, chosen.arrangement, name, tensor.shape, tensors);
            } else {
                tensors.push_back({name, tensor.dtype, tensor.shape});
            }
            for (std::size_t i = before; i < tensors.size(); ++i) it.result.bytes_after += tensors[i].bytes();
            plans_.push_back(std::move(it));
        }
        std::vector<std::pair<std::string, std::string>> metadata(model.metadata().begin(),
                                                                  model.metadata().end());
        metadata.emplace_back("mp-convert.format", format.name);
        if (!chosen.dry_run) out_.emplace(chosen.output, tensors, metadata);
    }

    /// Units of progress.
    [[nodiscard]] std::size_t pieces() const {
        std::size_t count = 0;
        for (const plan& it : plans_) count += it.result.kept_because.empty() ? piece_count(*it.tensor) : 1;
        return count;
    }

    std::vector<tensor_result> run(examples::progress& bar) {
        std::vector<tensor_result> results;
        for (plan& it : plans_) {
            if (it.result.kept_because.empty()) {
                convert(it, bar);
            } else {
                if (out_) out_->write(it.result.name, it.tensor->bytes);
                bar.advance(it.result.name);
            }
            results.push_back(std::move(it.result));
        }
        if (out_) out_->commit();
        return results;
    }

private:
    struct plan {
        const mp::tensor_file::tensor* tensor = nullptr;
        tensor_result result;
        array_names names;
    };
    /// Elements of a piece, about; the sums of losses do not depend on the number of threads.
    static constexpr std::size_t piece_size = std::size_t{1} << 18;

    [[nodiscard]] std::string reason_to_keep(const std::string& name,
                                             const mp::tensor_file::tensor& it) const {
        if (it.dtype.starts_with("F8_") || it.dtype.starts_with("F6_") || it.dtype == "F4")
            return "small already";
        if (!is_floating(it.dtype)) return "not floating point";
        if (!chosen_.wants(name)) return "by name";
        if (it.shape.size() < 2 && !chosen_.all) return "one dimension";
        const std::size_t last = it.shape.empty() ? 1 : it.shape.back();
        if (it.count == 0) return "empty";
        if (last % format_.block != 0) return "row of " + std::to_string(last);
        return {};
    }
    static std::size_t columns(const mp::tensor_file::tensor& it) {
        return it.shape.empty() ? 1 : it.shape.back();
    }
    /// Whole rows.
    static std::size_t elements_of_piece(const mp::tensor_file::tensor& it) {
        return std::max<std::size_t>(1, piece_size / columns(it)) * columns(it);
    }
    static std::size_t piece_count(const mp::tensor_file::tensor& it) {
        return (it.count + elements_of_piece(it) - 1) / elements_of_piece(it);
    }

    void convert(plan& it, examples::progress& bar) {
        const mp::tensor_file::tensor& tensor = *it.tensor;
        const std::size_t size = elements_of_piece(tensor);
        const std::size_t count = piece_count(tensor);
        const auto read = [&](std::size_t i) {
            std::vector<float> values(std::min(size, tensor.count - i * size));
            read_floats(tensor, i * size, values);
            return values;
        };
        float tensor_scale = 0;
        if (format_.has_tensor_scale) {
            std::vector<float> largest(count);
            examples::run_jobs(chosen_.threads, count, [&](std::size_t i) {
                for (const float x : read(i)) {
                    if (std::isfinite(x)) largest[i] = std::max(largest[i], std::abs(x));
                }
            });
            tensor_scale = format_.tensor_scale(*std::max_element(largest.begin(), largest.end()));
            if (out_) out_->write_elements(it.names.tensor_scale, tensor_scale);
        }
        // As many pieces at a time as keep all threads busy, written in order.
        const std::size_t batch = 4 * static_cast<std::size_t>(chosen_.threads);
        for (std::size_t first = 0; first < count; first += batch) {
            std::vector<piece> pieces(std::min(batch, count - first));
            examples::run_jobs(chosen_.threads, pieces.size(), [&](std::size_t i) {
                pieces[i] = format_.convert(read(first + i), columns(tensor), tensor_scale);
            });
            for (const piece& done : pieces) {
                it.result.lost += done.lost;
                if (out_) {
                    out_->write(it.names.codes, done.codes);
                    if (!done.scales.empty()) out_->write(it.names.scales, done.scales);
                }
                bar.advance(it.result.name);
            }
        }
    }

    const mp::tensor_file& model_;
    const target& format_;
    const options& chosen_;
    std::vector<plan> plans_;
    std::optional<mp::safetensors_writer> out_;
};

}  // namespace mp_convert
