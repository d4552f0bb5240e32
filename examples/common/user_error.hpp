// SPDX-License-Identifier: MIT
/// \file
/// Errors that the user of a program can mend.
#pragma once

#include <stdexcept>

namespace examples {

/// Something that the user can mend, such as a wrong option or a broken file. The program prints the message
/// in one line and ends with exit code 2.
class user_error : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

}  // namespace examples
