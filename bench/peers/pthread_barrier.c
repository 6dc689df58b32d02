/* pthread_barrier_t: the C library's barrier, among threads and (process-shared) among processes. */
#include "peer.h"

static void batch(void *state, int rank, long count) {
    (void)rank;
    for (long i = 0; i < count; i++) pthread_barrier_wait((pthread_barrier_t *)state);
}

int main(int argc, char **argv) {
    struct peer_options options = peer_arguments(argc, argv);
    pthread_barrierattr_t attributes;
    pthread_barrier_t *barrier = peer_shared(sizeof *barrier);
    pthread_barrierattr_init(&attributes);
    if (options.processes && (errno = pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED)) != 0)
        peer_fail("a process-shared barrier");
    if ((errno = pthread_barrier_init(barrier, &attributes, (unsigned)options.ranks)) != 0)
        peer_fail("pthread_barrier_init");
    struct peer_team *team = peer_team_new(&options);
    peer_run(&options, team, batch, barrier);
    peer_print(&options, team, "pthread", "default", "libc");
    return 0;
}
