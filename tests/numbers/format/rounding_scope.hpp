// SPDX-License-Identifier: MIT
#pragma once

#include <cfenv>

/// While it lives, the thread's float and double arithmetic rounds in the given direction (FE_UPWARD ...).
class rounding_scope {
public:
    explicit rounding_scope(int direction) : before_(std::fegetround()) { std::fesetround(direction); }
    ~rounding_scope() { std::fesetround(before_); }
    rounding_scope(const rounding_scope&) = delete;
    rounding_scope& operator=(const rounding_scope&) = delete;

private:
    int before_;
};

inline constexpr int every_direction[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
