// SPDX-License-Identifier: MIT
/// \file
/// The processes that mpirun has started, where the program is built with MPI.
#pragma once

#include <chrono>

#include <mp/parallel.hpp>

#include "../common/arguments.hpp"

#if defined(MP_EXAMPLE_MPI)
#include <mp/frontends/interop/mpi.hpp>

#if defined(OPEN_MPI) && __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif

#include <cstdio>
#include <exception>
#endif

namespace examples::train_gpt {

#if defined(MP_EXAMPLE_MPI)
/// Whether messages may lie in the memory of a CUDA device, as far as is known.
inline bool mpi_takes_device_memory() {
#if defined(MPIX_CUDA_AWARE_SUPPORT)
    return MPIX_Query_cuda_support() == 1;
#else
    return true;
#endif
}

/// Calls train(ranks) in every process. One that fails ends the others.
template <class Train>
void run_on_mpi(bool device_memory, std::chrono::seconds timeout, const Train& train) {
    int level = MPI_THREAD_SINGLE;
    mp::check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &level), "MPI_Init_thread");
    try {
        if (device_memory && !mpi_takes_device_memory()) {
            throw user_error("--ranks mpi: this MPI does not take the memory of CUDA devices");
        }
        mp::mpi_communicator world(MPI_COMM_WORLD, timeout);
        mp::any_communicator ranks(world);
        train(ranks);
    } catch (const std::exception& problem) {
        std::fprintf(stderr, "train_gpt: %s\n", problem.what());
        MPI_Abort(MPI_COMM_WORLD, dynamic_cast<const user_error*>(&problem) != nullptr ? 2 : 1);
    }
    MPI_Finalize();
}
#else
template <class Train>
void run_on_mpi(bool /*device_memory*/, std::chrono::seconds /*timeout*/, const Train& /*train*/) {
    throw user_error("--ranks is 'mpi', and this program was built where there is no MPI");
}
#endif

}  // namespace examples::train_gpt
