// SPDX-License-Identifier: MIT
/// \file
/// The text of an argument_error, for tests of errors.
#pragma once

#include <mp/error.hpp>

#include <string>

template <class Call>
std::string message_of(Call call) {
    try {
        call();
    } catch (const mp::argument_error& error) {
        return error.what();
    }
    return "nothing thrown";
}
