// SPDX-License-Identifier: MIT
/// \file
/// All operations of IEEE P3109 4.0 on numbers of any formats, on scaled numbers and on blocks, by the names
/// of the report: docs/p3109.md.
#pragma once

#include <mp/numbers/format/p3109/blocks.hpp>
#include <mp/numbers/format/p3109/conformance.hpp>
#include <mp/numbers/format/p3109/queries.hpp>
#include <mp/p3109.hpp>
