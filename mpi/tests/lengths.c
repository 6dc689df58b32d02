/*
 * Sums and broadcasts of many lengths and from all roots, for some seconds: each with its plans chosen beside the program. Prints how many
 * turns were made, and the slowest call of the second half. beside.sh looks at the report.
 *
 *   lengths [SECONDS]      2 by default
 */
#include "expect.h"

enum { FIRST = 5, LAST = 8, STEPS = 4, MOST = 1 << LAST };

static double given[MOST], taken[MOST];

/* The last element tells whether all of them are there. */
static void sum(int count, int turn)
{
    given[count - 1] = rank + turn;
    MPI_Allreduce(given, taken, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    EXPECT(taken[count - 1] == ranks * (ranks - 1) / 2.0 + (double)ranks * turn);
}

static void broadcast(int count, int turn)
{
    int root = turn % ranks;
    taken[count - 1] = rank == root ? turn : -1;
    MPI_Bcast(taken, count, MPI_DOUBLE, root, MPI_COMM_WORLD);
    EXPECT(taken[count - 1] == turn);
}

int main(int argc, char **argv)
{
    start_mpi(&argc, &argv, MPI_THREAD_SINGLE);
    double seconds = argc > 1 ? atof(argv[1]) : 2, began = MPI_Wtime(), slowest = 0;
    int goes_on = 1, turn = 0;
    for (; goes_on; turn++) {
        double now = MPI_Wtime();
        for (int power = FIRST; power < LAST; power++) {
            for (int step = 1; step <= STEPS; step++) {
                int count = (1 << power) + step * (1 << power) / STEPS;
                void (*calls[])(int, int) = {sum, broadcast};
                for (int which = 0; which < 2; which++) {
                    calls[which](count, turn);
                    double then = MPI_Wtime();
                    if (then - began > seconds / 2 && then - now > slowest) slowest = then - now;
                    now = then;
                }
            }
        }
        goes_on = now - began < seconds;
        MPI_Bcast(&goes_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    if (rank == 0) printf("lengths: %d turns, slowest of the second half %.3f ms\n", turn, slowest * 1e3);
    MPI_Finalize();
    return 0;
}
