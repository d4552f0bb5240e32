// SPDX-License-Identifier: MIT
#include "address_sanitizer.hpp"

// AddressSanitizer's handler prints the stack of a signal, doctest's only the name of the test case.
#if defined(MP_ADDRESS_SANITIZER)
#define DOCTEST_CONFIG_NO_POSIX_SIGNALS
// A check of UndefinedBehaviorSanitizer that fails is an illegal instruction.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() {
    return "handle_sigill=1";
}
#endif

#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
