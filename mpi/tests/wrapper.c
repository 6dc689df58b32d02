/* A library that is linked to an MPI and calls it, as MPIwrapper does for MPItrampoline: what a Python opens in late.sh. */
#include <mpi.h>

/* Sums one of each rank so often; the number of wrong sums. */
int wrapped_sums(int times)
{
    int ranks, wrong = 0;
    MPI_Init(0, 0);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int i = 0; i < times; i++) {
        double one = 1, sum = 0;
        MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        wrong += sum != ranks;
    }
    return MPI_Finalize() != 0 || wrong;
}
