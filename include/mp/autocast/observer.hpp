// SPDX-License-Identifier: MIT
/// \file
/// Who looks on while the dispatcher casts: nobody, or the cache and the ledger of a region.
#pragma once

#include <mp/autocast/cast_cache.hpp>
#include <mp/autocast/cast_ledger.hpp>
#include <mp/autocast/op_names.hpp>
#include <mp/autocast/operand.hpp>
#include <mp/autocast/types.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace mp::detail {

/// Elements for a dense copy of an array; uninitialised.
template <class Element>
class staging_buffer {
public:
    explicit staging_buffer(std::size_t size)
        : elements_(std::make_unique_for_overwrite<Element[]>(size)), size_(size) {}
    Element* data() const { return elements_.get(); }
    std::span<const Element> elements() const { return {elements_.get(), size_}; }

private:
    std::unique_ptr<Element[]> elements_;
    std::size_t size_;
};

/// The observer of a call whose policy is known at compile time. It costs nothing.
struct nobody {
    static constexpr bool looks = false;
};

/// The observer of a call in a region.
class region_observer {
public:
    static constexpr bool looks = true;

    /// \param arguments_of  names the arguments of the op by their places
    region_observer(autocast::cast_cache* cache, autocast::cast_ledger* ledger, std::string_view op,
                    std::string_view (*arguments_of)(std::size_t), std::string_view layer)
        : cache_(cache), ledger_(ledger), op_(op), name_of_argument_(arguments_of), layer_(layer) {}

    autocast::cast_cache* cache() const { return cache_; }

    /// Whether anybody wants to see the numbers.
    bool counts() const { return ledger_ != nullptr; }

    void called(const autocast::op_record& call) {
        if (ledger_ != nullptr) call_ = ledger_->count_call(call);
    }

    void multiplied(autocast::product_size size, std::string_view type) const {
        if (ledger_ != nullptr) {
            ledger_->count_product({std::string(op_), std::string(type), size.m, size.n, size.k, 0});
        }
    }

    /// A cast of the argument at `index`; numbers as floats.
    void cast(std::size_t index, autocast::cast_direction direction, std::string_view from,
              std::size_t from_bytes, const autocast::cast_target& to, std::span<const float> before,
              std::span<const float> after, bool scaled) const {
        const bool into = direction == autocast::cast_direction::input;
        ledger_->count_cast({std::string(op_), argument_text(index), std::string(from), std::string(to.name),
                             direction, 1, 0, before.size() * (from_bytes + to.bytes),
                             autocast::count_losses(before, after, to), scaled});
        look_at(index, before, into ? autocast::value_origin::argument : autocast::value_origin::kernel);
        look_at(index, after, into ? autocast::value_origin::cast : autocast::value_origin::result);
    }

    /// A cast that was found in the cache.
    void reused(std::size_t index, std::string_view from, std::string_view to, bool scaled) const {
        if (ledger_ == nullptr) return;
        ledger_->count_cast({.op = std::string(op_),
                             .argument = argument_text(index),
                             .from = std::string(from),
                             .to = std::string(to),
                             .reused = 1,
                             .losses = {},
                             .scaled = scaled});
    }

    /// Values that the op reads without a cast.
    template <class Element, std::floating_point Value>
    void read(std::size_t index, std::span<const Value> values) const {
        if constexpr (autocast::eligible<Element>) {
            constexpr auto target = autocast::cast_target_of<Element>();
            const autocast::cast_losses range = autocast::count_losses(values, values, target);
            ledger_->count_input({std::string(op_), argument_text(index), std::string(target.name), 1,
                                  range.elements, range.zeros, range.largest, range.smallest});
        }
        look_at(index, values, autocast::value_origin::argument);
    }

    /// Whether the first value that is not finite has still to be found.
    bool searches() const { return ledger_ != nullptr && !ledger_->has_non_finite(); }

    /// Looks for the first value that is not finite.
    template <std::floating_point Value>
    void look_at(std::size_t index, std::span<const Value> values, autocast::value_origin origin) const {
        if (!searches()) return;
        std::size_t at = 0;
        while (at < values.size() && isfinite(values[at])) ++at;
        if (at == values.size()) return;
        ledger_->see_non_finite({std::string(op_), argument_text(index), std::string(layer_), at,
                                 isnan(values[at]), origin, call_});
    }

private:
    std::string argument_text(std::size_t index) const {
        const std::string_view name = name_of_argument_(index);
        if (!name.empty()) return std::string(name);
        return index == returned ? std::string("result") : "argument " + error_text(index);
    }

public:
    /// Stands for the number that a kernel returns, in place of an argument's index.
    static constexpr std::size_t returned = ~std::size_t{0};

private:
    autocast::cast_cache* cache_;
    autocast::cast_ledger* ledger_;
    std::string_view op_;
    std::string_view (*name_of_argument_)(std::size_t);
    std::string_view layer_;
    std::uint64_t call_ = 0;
};

}  // namespace mp::detail
