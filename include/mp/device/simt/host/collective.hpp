// SPDX-License-Identifier: MIT
/// \file
/// Operations for which the threads of a warp or warpgroup come together on the host.
#pragma once

#include <mp/device/simt/host/cluster.hpp>
#include <mp/device/simt/host/thread_state.hpp>
#include <mp/device/simt/kernel_error.hpp>
#include <mp/device/simt/launch_shape.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace mp::simt::detail { inline namespace MP_ISA_NAMESPACE {

/// An operation for which all threads of a warp (or warpgroup) come together: the last one that comes calls
/// execute(operands), with a pointer to the operands of each, and all go on. All of them have to come to the
/// same line. Lanes that have left the kernel are not waited for, and have null for operands, where
/// `who` says so; else all have to be there.
template <class Operands, class Execute>
void collective_operation(thread_state& me, collective_slot& slot, const char* operation, const site& where,
                          Operands& mine, Execute execute, participation who = participation::all) {
    cluster& owner = *me.owner;
    const std::size_t threads = slot.operands.size();
    if (who == participation::all && slot.left != 0) {
        owner.fail(me, where, kernel_violation::divergence,
                   std::string("comes to ") + operation + " after others of its warp" +
                       (threads > warp_size ? "group" : "") + " left the kernel");
    }
    if (slot.arrived == 0) {
        slot.operation = operation;
        slot.where = where;
        slot.first = me.number;
        slot.who = who;
    } else if ((slot.operation != operation && std::string_view(slot.operation) != operation) ||
               !same_site(slot.where, where)) {
        owner.fail(me, where, kernel_violation::divergence,
                   std::string("comes to ") + operation + " while " +
                       owner.name_of(owner.thread(slot.first)) + " waits for this thread in " +
                       slot.operation + " at " + place_of(slot.where));
    }
    slot.operands[static_cast<std::size_t>(me.number) % threads] = &mine;
    ++slot.arrived;
    if (!slot.complete()) {
        owner.wait(me, operation, where);
        // The last one that was waited for may have left the kernel; then the first one that came goes on.
        if (slot.arrived == 0 || slot.first != me.number || !slot.complete()) return;
    }
    execute(reinterpret_cast<Operands* const*>(slot.operands.data()));
    slot.arrived = 0;
    const int begin = me.number / static_cast<int>(threads) * static_cast<int>(threads);
    for (std::size_t i = 0; i < threads; ++i) {
        const int number = begin + static_cast<int>(i);
        if (number != me.number && slot.operands[i] != nullptr) owner.wake(number);
    }
}

}}  // namespace mp::simt::detail
