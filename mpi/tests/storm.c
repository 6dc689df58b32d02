/*
 * Communicators that come and go, by dup and by split, some of them long enough to get a team: neither memory nor descriptors grow with
 * their number. Prints what they grew by, which a run without lineweave gives the host's own share of.
 *
 *   storm COMMUNICATORS
 */
#include "expect.h"
#include <dirent.h>

static long resident_kib(void)
{
    long pages = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    EXPECT(file && fscanf(file, "%ld %ld", &pages, &resident) == 2);
    fclose(file);
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static int descriptors(void)
{
    int many = 0;
    DIR *directory = opendir("/proc/self/fd");
    EXPECT(directory);
    while (readdir(directory)) many++;
    closedir(directory);
    return many;
}

static void one(int i)
{
    MPI_Comm comm;
    if (i % 2) MPI_Comm_split(MPI_COMM_WORLD, i % 4 == 1 ? 0 : rank % 2, i % 3 ? rank : -rank, &comm);
    else MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    /* Some live long enough to get a team. */
    for (int call = 0; call < (i % 20 == 0 || i % 20 == 5 ? 12 : 2); call++) sum_up(comm, i + call);
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
    start_mpi(&argc, &argv, MPI_THREAD_SINGLE);
    int many = argc > 1 ? atoi(argv[1]) : 1000, warm = many / 5 + 40;
    for (int i = 0; i < warm; i++) one(i);
    long kib = resident_kib();
    int open = descriptors();
    for (int i = 0; i < many; i++) one(i);
    long grown[2] = {resident_kib() - kib, descriptors() - open}, most[2];
    MPI_Allreduce(grown, most, 2, MPI_LONG, MPI_MAX, MPI_COMM_WORLD);
    /* A communicator's own record is 19 KiB, a team's areas are more: one kept for every twentieth would show. */
    /* A descriptor for each other process is opened when a wait for it first lasts long. */
    EXPECT(most[1] <= ranks - 1);
    EXPECT(most[0] <= 2048 + many / 4);
    if (rank == 0) printf("storm: %d communicators of %d ranks: %ld KiB and %ld descriptors more\n", many, ranks, most[0], most[1]);
    MPI_Finalize();
    return 0;
}
