// SPDX-License-Identifier: MIT
/// \file
/// Whether a layer has a forward pass that its backward pass can follow.
#pragma once

#include <mp/config.hpp>
#include <mp/error.hpp>

#include <string>
#include <string_view>
#include <utility>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Set by a forward pass that has succeeded, and required by the backward pass. What a layer is moved from has none.
class forward_mark {
public:
    forward_mark() = default;
    forward_mark(const forward_mark&) = default;
    forward_mark& operator=(const forward_mark&) = default;
    forward_mark(forward_mark&& other) noexcept : set_(std::exchange(other.set_, false)) {}
    forward_mark& operator=(forward_mark&& other) noexcept {
        set_ = std::exchange(other.set_, false);
        return *this;
    }
    ~forward_mark() = default;

    void clear() noexcept { set_ = false; }
    void set() noexcept { set_ = true; }

    /// \param type       of the layer
    /// \param parameter  the name of one of its parameters, which is its own name and `ending`
    /// \throws state_error  there was no forward pass, or it failed
    void require(std::string_view type, std::string_view parameter, std::string_view ending,
                 std::string_view backward = "backward()", std::string_view forward = "forward()") const {
        if (set_) return;
        std::string message("mp::layers::");
        message.append(type).append(" \"");
        message.append(parameter.substr(0, parameter.size() - ending.size())).append("\": ");
        message.append(backward).append(" before ").append(forward);
        throw_error(state_error(message));
    }

private:
    bool set_ = false;
};

}}  // namespace mp::detail
