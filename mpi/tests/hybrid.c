/*
 * MPI and OpenMP in one program: the threads of each rank meet at barriers, and the first one of each meets the other ranks. Both are taken over, each by
 * its own library.
 */
#include "expect.h"
#include <omp.h>

enum { THREADS = 2, ROUNDS = 300 };

int main(int argc, char **argv)
{
    int sum = 0, parts[THREADS] = {0};
    start_mpi(&argc, &argv, MPI_THREAD_FUNNELED);
    omp_set_dynamic(0);
    for (int region = 0; region < 4; region++) {
#pragma omp parallel num_threads(THREADS)
        for (int round = 0; round < ROUNDS; round++) {
            int me = omp_get_thread_num();
            parts[me] = round * me + rank;
#pragma omp barrier
#pragma omp master
            {
                int own = 0;
                for (int t = 0; t < THREADS; t++) own += parts[t];
                MPI_Allreduce(&own, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
            }
#pragma omp barrier
            EXPECT(sum == ranks * round + THREADS * ranks * (ranks - 1) / 2);
#pragma omp barrier
        }
    }
    return end_mpi("hybrid: completed");
}
