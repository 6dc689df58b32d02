/*
 * Threads that make, use and free communicators at the same time: crowd [THREADS [COMMUNICATORS [ROUNDS [team]]]], 8, 800 and 2 by default.
 *
 * Each thread has a communicator of its own, of all ranks, from which it makes its share of the others. In even rounds it frees each before it makes
 * the next; in odd ones all threads have made all of theirs before the first is used. Each is used long enough to get a team. Threads of two
 * ranks come to their communicators in orders of their own. `team`: all that were used long enough have one, and some are freed with a call under
 * way, which Open MPI by itself does not bear.
 */
#include "kinds.h"
#include <pthread.h>

enum { MOST = 64 };

static int threads, share, rounds, team;
static MPI_Comm parents[MOST];
static pthread_barrier_t all_have;

/* `i` is the same at all ranks. */
static void use(MPI_Comm comm, int i)
{
    static const int kinds[] = {ALLREDUCE, BCAST, ALLGATHER};
    int in[MOST], out[MOST];
    for (int call = 0; call < (i % 3 ? 18 : 6); call++) {
        int turn = i + call / 3;
        EXPECT(try_call(job_of(kinds[call % 3], 1, turn, turn, false, in, out, comm), BLOCKING) == 0);
    }
}

static void make(int i, MPI_Comm parent, MPI_Comm *comm)
{
    if (i % 4 == 3) MPI_Comm_split(parent, rank % 2, -rank, comm);
    else MPI_Comm_dup(parent, comm);
}

static void leave(int i, MPI_Comm *comm)
{
    int own = i, most = -1;
    MPI_Request request = MPI_REQUEST_NULL;
    if (i % 5 == 0) MPI_Iallreduce(&own, &most, 1, MPI_INT, MPI_MAX, *comm, &request);
    if (!team || i % 3 == 0 || i % 10) MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Comm_free(comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    EXPECT(i % 5 || most == i);
}

static void *work(void *argument)
{
    int me = *(int *)argument;
    MPI_Comm *mine = malloc(sizeof *mine * (size_t)share);
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < share; i++) {
            make(i, parents[me], &mine[i]);
            if (round % 2) continue;
            use(mine[i], i);
            leave(i, &mine[i]);
        }
        if (round % 2 == 0) continue;
        pthread_barrier_wait(&all_have);
        for (int i = 0; i < share; i++) use(mine[i], i);
        for (int i = 0; i < share; i++) leave(i, &mine[i]);
    }
    free(mine);
    return NULL;
}

int main(int argc, char **argv)
{
    start_mpi(&argc, &argv, MPI_THREAD_MULTIPLE);
    threads = argc > 1 ? atoi(argv[1]) : 8;
    share = (argc > 2 ? atoi(argv[2]) : 800) / threads;
    rounds = argc > 3 ? atoi(argv[3]) : 2;
    team = argc > 4;
    EXPECT(threads <= MOST);
    pthread_t ids[MOST];
    int numbers[MOST];
    pthread_barrier_init(&all_have, NULL, (unsigned)threads);
    for (int t = 0; t < threads; t++) MPI_Comm_dup(MPI_COMM_WORLD, &parents[t]);
    for (int t = 0; t < threads; t++) {
        /* Another one first at each rank. */
        numbers[t] = (t + rank) % threads;
        EXPECT(pthread_create(&ids[t], NULL, work, &numbers[t]) == 0);
    }
    for (int t = 0; t < threads; t++) pthread_join(ids[t], NULL);
    for (int t = 0; t < threads; t++) MPI_Comm_free(&parents[t]);
    MPI_Finalize();
    if (rank == 0) printf("crowd: %d threads of %d ranks, %d communicators\n", threads, ranks, threads * share * rounds);
    return 0;
}
