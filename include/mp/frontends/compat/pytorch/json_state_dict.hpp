// SPDX-License-Identifier: MIT
/// \file
/// The state_dict() of an optimizer of PyTorch as JSON. Needs nlohmann-json 3.
#pragma once

#include <mp/arrays/io/text_excerpt.hpp>
#include <mp/config.hpp>
#include <mp/error.hpp>
#include <mp/numbers/format/classification.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

[[noreturn]] inline void throw_json_state(std::string_view what) {
    throw_error(file_error(std::string("mp::json_state_dict: ").append(what)));
}

/// Collects the numbers of state.<i>.<name>, whatever lists they are nested in. Its functions are the events of
/// nlohmann's parser, which does not recurse.
class json_state_reader {
public:
    std::map<std::string, std::vector<double>, std::less<>> tensors;
    std::string problem;
    bool has_state = false;  ///< whether there is an object "state"

    bool start_object(std::size_t /*size*/) {
        if (keys_.size() == 1 && keys_[0] == "state") has_state = true;
        if (lists_ != 0 && in_state()) return refuse("an object in the list");
        keys_.emplace_back();
        return true;
    }
    bool key(std::string& name) {
        keys_.back() = std::move(name);
        return true;
    }
    bool end_object() {
        keys_.pop_back();
        return true;
    }
    bool start_array(std::size_t /*size*/) {
        if (!keys_.empty() && keys_.size() < 3 && keys_[0] == "state") {
            problem = "there is no object " +
                      quoted_excerpt(keys_.size() == 1 ? "state" : "state." + keys_[1]) + ", but a list";
            return false;
        }
        if (lists_ == 0 && in_state() && !begin()) return false;
        if (in_state()) ++lists_;
        return true;
    }
    bool end_array() {
        if (in_state()) --lists_;
        return true;
    }
    bool number_float(double value, const std::string& /*text*/) { return number(value); }
    bool number_integer(std::int64_t value) { return number(static_cast<double>(value)); }
    bool number_unsigned(std::uint64_t value) { return number(static_cast<double>(value)); }
    bool null() { return lists_ == 0 || refuse("null in the list"); }
    bool boolean(bool /*value*/) { return lists_ == 0 || refuse("a truth value in the list"); }
    bool string(std::string& /*value*/) { return lists_ == 0 || refuse("a text in the list"); }
    bool binary(std::vector<std::uint8_t>& /*value*/) { return true; }
    template <class Exception>
    bool parse_error(std::size_t /*position*/, const std::string& /*token*/, const Exception& exception) {
        problem = exception.what();
        return false;
    }

private:
    [[nodiscard]] bool in_state() const { return keys_.size() == 3 && keys_[0] == "state"; }
    [[nodiscard]] std::string name() const { return keys_[0] + "." + keys_[1] + "." + keys_[2]; }
    bool refuse(std::string_view what) {
        problem = std::string(what) + " " + quoted_excerpt(name());
        return false;
    }
    /// A tensor or number of this name begins.
    bool begin() {
        const auto [at, made] = tensors.try_emplace(name());
        if (!made) return refuse("there are two of");
        values_ = &at->second;
        return true;
    }
    bool number(double value) {
        if (!in_state()) return true;
        if (lists_ == 0 && !begin()) return false;
        values_->push_back(value);
        return true;
    }

    std::vector<std::string> keys_;  ///< of the objects that are open
    std::size_t lists_ = 0;          ///< that are open in a tensor
    std::vector<double>* values_ = nullptr;
};

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// What state_dict() of an optimizer of PyTorch has under "state", from JSON that has tensors as lists, for
/// import_pytorch_optimizer():
///
///     # Python: json.dump(optimizer.state_dict(), file, default=lambda tensor: tensor.tolist())
///     mp::import_pytorch_optimizer(mp::json_state_dict(text_of_file), optimizer);
///
/// A tensor is "state.<i>.<name>", with its elements in the order of the lists; null is none. Python writes
/// every digit of a float, so that no bit is lost. "param_groups" is not looked at.
class json_state_dict {
public:
    /// \throws file_error  the text is no JSON (NaN and Infinity, which Python writes, are not JSON), a list has
    ///                     something else than numbers, there are two of one name, or no "state"
    explicit json_state_dict(std::string_view text) {
        detail::json_state_reader reader;
        if (!nlohmann::json::sax_parse(text.begin(), text.end(), &reader)) {
            detail::throw_json_state(reader.problem);
        }
        if (!reader.has_state) detail::throw_json_state("there is no object 'state' in the outermost one");
        tensors_ = std::move(reader.tensors);
    }

    /// By name.
    [[nodiscard]] const std::map<std::string, std::vector<double>, std::less<>>& tensors() const noexcept {
        return tensors_;
    }

    /// Copies a tensor, each element rounded once.
    ///
    /// \throws file_error  there is none of this name, their number is another, or one is too large for the type
    ///                     of `values`, which are then as before
    template <class To>
    void read_converted(std::string_view name, To&& values) const {
        const std::span to(values);
        using value = typename decltype(to)::element_type;
        const auto found = tensors_.find(name);
        if (found == tensors_.end()) {
            detail::throw_json_state("there is no " + detail::quoted_excerpt(name));
        }
        const std::vector<double>& from = found->second;
        if (from.size() != to.size()) {
            detail::throw_json_state(detail::quoted_excerpt(name) + " has " +
                                     detail::error_text(from.size()) + " elements, and " +
                                     detail::error_text(to.size()) + " were expected");
        }
        for (const double it : from) {
            if (!isfinite(static_cast<value>(it))) {
                detail::throw_json_state(detail::quoted_excerpt(name) + " has " + detail::error_text(it) +
                                         ", which is too large");
            }
        }
        for (std::size_t i = 0; i < to.size(); ++i) to[i] = static_cast<value>(from[i]);
    }

private:
    std::map<std::string, std::vector<double>, std::less<>> tensors_;
};

}}  // namespace mp
