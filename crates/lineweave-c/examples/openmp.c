/* Threads of an OpenMP region meet at lineweave's barrier: a prefix sum in rounds.
 * cc -fopenmp openmp.c $(pkg-config --cflags --libs lineweave) */
#include <lineweave.h>
#include <omp.h>
#include <stdio.h>

#define N 100

int main(void) {
    static int sums[2][N];
    int threads = 3, from = 0;
    lw_barrier_t barrier;
    if (lw_barrier_init(&barrier, threads) != LW_OK) {
        fprintf(stderr, "%s\n", lw_last_error());
        return 1;
    }
    for (int i = 0; i < N; i++) sums[0][i] = i + 1;
    omp_set_dynamic(0);
#pragma omp parallel num_threads(threads) firstprivate(from)
    {
        int me = omp_get_thread_num();
        for (int step = 1; step < N; step *= 2) {
            for (int i = me; i < N; i += threads)
                sums[1 - from][i] = sums[from][i] + (i >= step ? sums[from][i - step] : 0);
            /* What the others wrote is seen behind it. */
            if (lw_barrier_wait_at(&barrier, me) != LW_OK) fprintf(stderr, "%s\n", lw_last_error());
            from = 1 - from;
        }
        if (me == 0) printf("%d\n", sums[from][N - 1]);
    }
    return lw_barrier_destroy(&barrier) == LW_OK ? 0 : 1;
}
