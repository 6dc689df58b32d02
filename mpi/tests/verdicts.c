/*
 * A program that calls the same collectives again and again, so that each is compared with the MPI's, and checks every result. Its first argument is the
 * number of rounds; with another number it is another program to lineweave.
 */
#include "expect.h"

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 100000;
    start_mpi(&argc, &argv, MPI_THREAD_SINGLE);
    MPI_Comm again;
    for (int round = 0; round < rounds; round++) {
        int root = round % 2 ? 0 : ranks - 1, told = rank == root ? round : -1;
        sum_up(MPI_COMM_WORLD, round);
        EXPECT(MPI_Bcast(&told, 1, MPI_INT, root, MPI_COMM_WORLD) == MPI_SUCCESS && told == round);
        EXPECT(MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS);
    }
    /* Another communicator of these ranks knows it from the first. */
    EXPECT(MPI_Comm_dup(MPI_COMM_WORLD, &again) == MPI_SUCCESS);
    for (int round = 0; round < rounds; round++) sum_up(again, round);
    MPI_Comm_free(&again);
    MPI_Finalize();
    return 0;
}
