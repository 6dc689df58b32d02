/*
 * Programs that end or go on in ways that MPI does not provide for: bad KIND. Each has made enough calls for a team before.
 *
 *   nofinalize   ends without MPI_Finalize
 *   abort        rank 1 calls MPI_Abort while the others are in a barrier
 *   die          rank 1 is killed while the others are in a barrier
 *   fork         each rank has a child that ends by exit, and goes on
 *   right        only computes
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int rank, ranks;

static void compute(int turns)
{
    for (int turn = 0; turn < turns; turn++) {
        int mine = rank + turn, sum = 0;
        MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        if (sum != ranks * turn + ranks * (ranks - 1) / 2) {
            fprintf(stderr, "bad: rank %d: %d is wrong\n", rank, sum);
            MPI_Abort(MPI_COMM_WORLD, 5);
        }
    }
}

int main(int argc, char **argv)
{
    const char *kind = argc > 1 ? argv[1] : "right";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    compute(40);
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
