// SPDX-License-Identifier: MIT
#pragma once

#include <string>

/// The message of the Error that `function` throws; another text if it throws none.
template <class Error, class Function>
std::string thrown(Function&& function) {
    try {
        function();
    } catch (const Error& error) {
        return error.what();
    }
    return "(nothing was thrown)";
}

/// Whether a message holds a text.
inline bool holds(const std::string& message, const char* text) {
    return message.find(text) != std::string::npos;
}
