// SPDX-License-Identifier: MIT
/// \file
/// Memory of a layer for the time of one call, and whether it has a forward pass that its backward pass can follow.
#pragma once

#include <mp/config.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/matrix_view.hpp>
#include <mp/train/training/tensor.hpp>
#include <mp/workspace.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// An uninitialised row-major matrix from the executor's workspace, given back at the end; allocated
/// where it has none.
template <class Element>
class layer_scratch {
public:
    template <executor Executor>
    layer_scratch(const Executor& exec, std::ptrdiff_t rows, std::ptrdiff_t columns)
        : frame_(exec.workspace) {
        if (exec.workspace == nullptr) {
            own_.resize(exec, rows, columns);
            view_ = own_.view();
        } else {
            const std::size_t count = checked_element_count("mp::layers", rows, columns, sizeof(Element));
            view_ = row_major(exec.workspace->template allocate<Element>(count), rows, columns);
        }
    }
    [[nodiscard]] matrix_view<Element> view() const { return view_; }

private:
    workspace::frame frame_;
    tensor<Element> own_;
    matrix_view<Element> view_;
};

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
