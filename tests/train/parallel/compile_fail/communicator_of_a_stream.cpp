// expects: mp::any_communicator: calls of this communicator are enqueued on a stream
// SPDX-License-Identifier: MIT
#include <mp/parallel.hpp>

struct enqueued : mp::single_rank {
    void fork() {}
    void join() {}
};

void f(enqueued& ranks) {
    mp::any_communicator any(ranks);
}
