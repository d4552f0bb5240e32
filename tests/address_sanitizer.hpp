// SPDX-License-Identifier: MIT
/// \file
/// Defines MP_ADDRESS_SANITIZER where AddressSanitizer is on, as g++ and clang say it.
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#define MP_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MP_ADDRESS_SANITIZER 1
#endif
#endif
