// std::barrier of C++20.
#include "peer.h"

#include <barrier>

static void batch(void *state, int, long count) {
    auto *barrier = static_cast<std::barrier<> *>(state);
    for (long i = 0; i < count; i++) barrier->arrive_and_wait();
}

int main(int argc, char **argv) {
    peer_options options = peer_arguments(argc, argv);
    peer_threads_only(&options, argv[0]);
    std::barrier<> barrier(options.ranks);
    peer_team *team = peer_team_new(&options);
    peer_run(&options, team, batch, &barrier);
    peer_print(&options, team, "std-barrier", "default", "libstdc++");
    return 0;
}
