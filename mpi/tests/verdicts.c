/*
 * A program that calls the same collectives again and again, so that each is compared with the MPI's, and checks every result. Its first argument is the
 * number of rounds; with another number it is another program to lineweave.
 */
#include "expect.h"
#include <mpi.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int rank, ranks, rounds = argc > 1 ? atoi(argv[1]) : 100000;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm again;
    for (int round = 0; round < rounds; round++) {
        long long give = round + rank, sum = 0;
        int root = round % 2 ? 0 : ranks - 1, told = rank == root ? round : -1;
        EXPECT(MPI_Allreduce(&give, &sum, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS);
        EXPECT(sum == (long long)ranks * round + (long long)ranks * (ranks - 1) / 2);
        EXPECT(MPI_Bcast(&told, 1, MPI_INT, root, MPI_COMM_WORLD) == MPI_SUCCESS && told == round);
        EXPECT(MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS);
    }
    /* Another communicator of these ranks knows it from the first. */
    EXPECT(MPI_Comm_dup(MPI_COMM_WORLD, &again) == MPI_SUCCESS);
    for (int round = 0; round < rounds; round++) {
        long long give = round + rank, sum = 0;
        EXPECT(MPI_Allreduce(&give, &sum, 1, MPI_LONG_LONG, MPI_SUM, again) == MPI_SUCCESS);
        EXPECT(sum == (long long)ranks * round + (long long)ranks * (ranks - 1) / 2);
    }
    MPI_Comm_free(&again);
    MPI_Finalize();
    return 0;
}
