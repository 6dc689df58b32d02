/*
 * A program for tools and timelines: watched [CALLS [die]]. Each turn has one blocking collective of four kinds and a started one, and checks results;
 * rank 1 comes late to each barrier. With `die`, rank 1 is killed after half of the turns.
 */
#define _DEFAULT_SOURCE
#include "expect.h"
#include <signal.h>

int main(int argc, char **argv)
{
    int turns = argc > 1 ? atoi(argv[1]) : 100, die = argc > 2 && strcmp(argv[2], "die") == 0, wrong = 0;
    start_mpi(&argc, &argv, MPI_THREAD_SINGLE);
    double all = ranks * (ranks - 1) / 2.0;
    for (int i = 0; i < turns; i++) {
        double mine = rank, sum = -1, told = i;
        MPI_Request request;
        MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        wrong += sum != all;
        MPI_Bcast(&told, 1, MPI_DOUBLE, i % ranks, MPI_COMM_WORLD);
        wrong += told != i;
        if (rank == 1) usleep(1000);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Iallreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        wrong += sum != all;
        if (die && rank == 1 && i == turns / 2) raise(SIGKILL);
    }
    if (wrong) printf("rank %d: %d wrong\n", rank, wrong);
    MPI_Finalize();
    return wrong != 0;
}
