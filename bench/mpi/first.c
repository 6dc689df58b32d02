/*
 * Times each call of a program that makes many different ones, as `lineweave bench first --mpi` starts it: with and without lineweave before it.
 *
 *   first LENGTHS ROOTS BYTES,..
 *
 * First come two allreduces of each of BYTES, then reduces of 1, 2, 3 doubles and so on, LENGTHS of them to ROOTS roots each, twice. A call's time is the
 * slowest rank's. Rank 0 prints lines: `allreduce`, bytes, and the ns of the first call and of the second; `sweep` and `again`, the number of calls, and
 * their median, the time that a thousandth of them exceeds, and the longest.
 */
#include "calls.h"

static void sweep(const char *name, struct set set, int lengths, int roots, double *times)
{
    int calls = lengths * roots;
    MPI_Barrier(world);
    for (int i = 0; i < calls; i++) {
        double start = now_ns();
        MPI_Reduce(set.in, set.out, i / roots + 1, real, sum, i % roots, world);
        times[i] = now_ns() - start;
    }
    MPI_Allreduce(times, times + calls, calls, real, maximum, world);
    double *last = times + calls, middle = median(last, calls);
    if (rank == 0) printf("%s %d %.1f %.1f %.1f\n", name, calls, middle, last[calls - 1 - calls / 1000], last[calls - 1]);
}

int main(int argc, char **argv)
{
    start_mpi(&argc, &argv);
    if (argc != 4) {
        fprintf(stderr, "first: expected a number of lengths, a number of roots, sizes\n");
        MPI_Abort(world, 2);
    }
    int lengths = atoi(argv[1]), roots = atoi(argv[2]) < ranks ? atoi(argv[2]) : ranks;
    char *list = argv[3];
    while (*list) {
        size_t bytes = strtoull(list, &list, 10);
        struct set set = make_set(bytes, bytes);
        double took[2], last[2];
        for (int i = 0; i < 2; i++) {
            MPI_Barrier(world);
            double start = now_ns();
            call(ALLREDUCE, set, bytes);
            took[i] = now_ns() - start;
        }
        MPI_Allreduce(took, last, 2, real, maximum, world);
        if (rank == 0) printf("allreduce %zu %.1f %.1f\n", bytes, last[0], last[1]);
        free(set.in);
        free(set.out);
        if (*list == ',') list++;
        else if (*list) MPI_Abort(world, 2);
    }
    struct set set = make_set(8 * (size_t)lengths, 8 * (size_t)lengths);
    double *times = malloc(2 * sizeof *times * (size_t)(lengths * roots));
    if (!times) MPI_Abort(world, 4);
    sweep("sweep", set, lengths, roots, times);
    sweep("again", set, lengths, roots, times);
    check(REDUCE, set, 8 * (size_t)lengths);
    MPI_Finalize();
    return 0;
}
