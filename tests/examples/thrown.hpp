// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "common/data.hpp"

namespace examples_test {

/// The message of the user_error that the call throws, which must be one line; empty if it throws none.
template <class Call>
std::string user_error_of(Call call) {
    try {
        call();
    } catch (const examples::user_error& error) {
        const std::string message = error.what();
        return message.find('\n') == std::string::npos ? message : "more than one line: " + message;
    }
    return {};
}

}  // namespace examples_test
