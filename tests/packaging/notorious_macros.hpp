// SPDX-License-Identifier: MIT
// Included before the headers of the library: what a header of a system or of a project may have made a macro
// by then. The standard library's headers come first; they have to fight for themselves.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <charconv>
#include <chrono>
#include <climits>
#include <cmath>
#include <compare>
#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <exception>
#include <initializer_list>
#include <istream>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <numeric>
#include <optional>
#include <ostream>
#include <ranges>
#include <regex>
#include <set>
#include <source_location>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <tuple>
#include <type_traits>
#include <typeindex>
#include <utility>
#include <variant>
#include <vector>
#include <version>

#if __has_include(<unistd.h>)
#include <sys/mman.h>
#include <unistd.h>
#endif
#if __has_include(<ucontext.h>)
#include <ucontext.h>
#endif

// <windows.h> and what it includes
#define min(a, b) (((a) < (b)) ? (a) : (b))
#define max(a, b) (((a) > (b)) ? (a) : (b))
#define near
#define far
#define small char
#define hyper long
#define interface struct
#define IN
#define OUT
#define OPTIONAL
#define ERROR 0
#define DELETE 0x00010000L
#define STRICT 1
#define ABSOLUTE 1
#define RELATIVE 2
#define VOID void
#define CONST const
#define BOOL int
#define TRUE 1
#define FALSE 0
#define NO_ERROR 0
// <math.h> of some systems, and before C++11 of all
#undef DOMAIN
#undef SING
#undef OVERFLOW
#undef UNDERFLOW
#undef PLOSS
#undef TLOSS
#define DOMAIN 1
#define SING 2
#define OVERFLOW 3
#define UNDERFLOW 4
#define PLOSS 5
#define TLOSS 6
// <complex.h>
#undef I
#undef complex
#define I _Complex_I
#define complex _Complex
// <sys/sysmacros.h>, <sys/param.h>, <termios.h>, <ctype.h>, and g++ without -std=c++20
#define major(dev) gnu_dev_major(dev)
#define minor(dev) gnu_dev_minor(dev)
#define makedev(maj, min) gnu_dev_makedev(maj, min)
#define MIN(a, b) (((a) < (b)) ? (a) : (b))
#define MAX(a, b) (((a) > (b)) ? (a) : (b))
#define B0 0000000
#define ECHO 0000010
#define _U 01
#define _L 02
#define _N 04
#define _S 010
#define _P 020
#define _C 040
#define _X 0100
#define _B 0200
#define linux 1
#define unix 1
// X11
#define None 0L
#define Bool int
#define Status int
#define Success 0
#define Always 2
#define True 1
#define False 0
// Qt
#define signals public
#define slots
#define emit
#define foreach for
#define forever for (;;)
// projects
#define CHECK(x) (x)
#define REQUIRE(x) (x)
#define LOG(x) (x)
#define ASSERT(x) (x)
#define PI 3.14159265358979
#define EPSILON 1e-5
