// SPDX-License-Identifier: MIT
/// \file
/// Training on many ranks: reduction of gradients, replicas, shares of data and of optimizer state.
///
/// Communicators: mp::mpi_communicator in <mp/frontends/interop/mpi.hpp>, mp::run_loopback for threads.
#pragma once

#include <mp/train/parallel/checkpoint.hpp>
#include <mp/train/parallel/communicator.hpp>
#include <mp/train/parallel/distributed_sampler.hpp>
#include <mp/train/parallel/gradient_reduction.hpp>
#include <mp/train/parallel/loopback.hpp>
#include <mp/train/parallel/sharded_optimizer.hpp>
#include <mp/train/parallel/wire_codec.hpp>
