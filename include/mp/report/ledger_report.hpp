// SPDX-License-Identifier: MIT
/// \file
/// Deprecated path of <mp/frontends/report/ledger_report.hpp>; to be removed in 0.3.
#pragma once
#include <mp/frontends/report/ledger_report.hpp>
