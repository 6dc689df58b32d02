/*
 * Programs that end or go on in ways that MPI does not provide for: bad KIND. Each has made enough calls for a team before.
 *
 *   nofinalize   ends without MPI_Finalize
 *   abort        rank 1 calls MPI_Abort while the others are in a barrier
 *   die          rank 1 is killed while the others are in a barrier
 *   fork         each rank has a child that ends by exit, and goes on
 *   lost SEED    a rank, drawn by SEED like all that follows, is killed, stops or exits while all make calls
 *   right        only computes
 *
 * and those in which no call tells a rank that all others are in it:
 *
 *   nothing      makes no call at all
 *   ahead        the first rank broadcasts on MPI_COMM_WORLD, and sends a message that the others wait for before
 */
#include "expect.h"
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

static void compute(int turns)
{
    for (int turn = 0; turn < turns; turn++) sum_up(MPI_COMM_WORLD, turn);
}

/* Numbers that are the same at every rank: the generator of Knuth's MMIX. */
static unsigned long long drawn;

static unsigned below(unsigned n)
{
    drawn = drawn * 6364136223846793005u + 1442695040888963407u;
    return (drawn >> 33) % n;
}

static unsigned microseconds;
static int fault;

static void *ends(void *nothing)
{
    usleep(microseconds);
    if (fault == 2) _exit(3);
    kill(getpid(), fault == 0 ? SIGKILL : SIGSTOP);
    return nothing;
}

/* Says who will be lost and calls until that ends it. */
static void lost(unsigned long long seed)
{
    static int in[60000], out[60000], lengths[] = {1, 3000, 60000};
    drawn = seed;
    int victim = below(ranks);
    fault = below(3);
    microseconds = below(30000);
    MPI_Barrier(MPI_COMM_WORLD);
    pthread_t thread;
    if (rank == victim) {
        printf("bad: rank %d is lost by %s\n", victim, (const char *[]){"kill", "stop", "exit"}[fault]);
        fflush(stdout);
        if (pthread_create(&thread, NULL, ends, NULL) != 0) exit(1);
    }
    for (;;) {
        int count = lengths[below(3)], root = below(2) * (ranks - 1);
        switch (below(4)) {
        case 0: MPI_Barrier(MPI_COMM_WORLD); break;
        case 1: MPI_Bcast(in, count, MPI_INT, root, MPI_COMM_WORLD); break;
        case 2: MPI_Allreduce(in, out, count, MPI_INT, MPI_MAX, MPI_COMM_WORLD); break;
        default: MPI_Reduce(in, out, count, MPI_INT, MPI_MAX, root, MPI_COMM_WORLD);
        }
    }
}

/* Roots do not wait for short broadcasts, so this ends under an MPI alone. */
static void ahead(void)
{
    int word = 7;
    if (rank == 0) {
        for (int i = 0; i < 40; i++) MPI_Bcast(&word, 1, MPI_INT, 0, MPI_COMM_WORLD);
        for (int to = 1; to < ranks; to++) MPI_Send(&word, 1, MPI_INT, to, 0, MPI_COMM_WORLD);
    } else {
        MPI_Recv(&word, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < 40; i++) MPI_Bcast(&word, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
}

int main(int argc, char **argv)
{
    const char *kind = argc > 1 ? argv[1] : "right";
    start_mpi(&argc, &argv, MPI_THREAD_SINGLE);
    if (strcmp(kind, "nothing") == 0 || strcmp(kind, "ahead") == 0) {
        if (strcmp(kind, "ahead") == 0) ahead();
        MPI_Finalize();
        return 0;
    }
    compute(40);
    if (strcmp(kind, "lost") == 0) lost(strtoull(argv[2], NULL, 10));
    if (strcmp(kind, "nofinalize") == 0) {
        if (rank == 0) printf("bad: computed\n");
        return 0;
    }
    if (strcmp(kind, "abort") == 0 || strcmp(kind, "die") == 0) {
        if (rank == 1) {
            usleep(100000);
            if (strcmp(kind, "die") == 0) raise(SIGKILL);
            MPI_Abort(MPI_COMM_WORLD, 6);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        fprintf(stderr, "bad: rank %d left a barrier that rank 1 never came to\n", rank);
    }
    if (strcmp(kind, "fork") == 0) {
        pid_t child = fork();
        if (child == 0) exit(0);
        int status;
        waitpid(child, &status, 0);
        compute(40);
        /* A child that lives on while its parent calls. */
        child = fork();
        if (child == 0) {
            usleep(200000);
            exit(0);
        }
        compute(200);
        waitpid(child, &status, 0);
        if (status != 0) return 7;
    }
    compute(40);
    MPI_Finalize();
    if (rank == 0) printf("bad: computed\n");
    return 0;
}
