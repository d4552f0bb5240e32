// SPDX-License-Identifier: MIT
/// \file
/// Training on many ranks: reduction of gradients, replicas, shares of data and of optimizer state.
///
/// Communicators: mp::mpi_communicator in <mp/interop/mpi.hpp>, mp::run_loopback for threads.
#pragma once

#include <mp/parallel/amax_reduction.hpp>
#include <mp/parallel/any_communicator.hpp>
#include <mp/parallel/checkpoint.hpp>
#include <mp/parallel/communicator.hpp>
#include <mp/parallel/distributed_sampler.hpp>
#include <mp/parallel/gradient_reduction.hpp>
#include <mp/parallel/loopback.hpp>
#include <mp/parallel/replicas.hpp>
#include <mp/parallel/sharded_optimizer.hpp>
#include <mp/parallel/wire_format.hpp>
