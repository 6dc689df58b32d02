/*
 * What the library costs: a call that passes, over the same call of the host; and an intercepted barrier, over lw_barrier of a team
 * of the same ranks. Two ranks. Prints medians of batches in ns, taken in turns. Linked with lineweave's static library.
 *
 * The host's functions are those of its library: calls of PMPI_x by their names are lineweave's, too.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <lineweave.h>
#include <link.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BATCHES = 41, CALLS = 20000 };

static int rank, ranks;
static lw_comm *team;

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static __typeof__(&PMPI_Barrier) host_barrier;
static __typeof__(&PMPI_Allreduce) host_allreduce;
static __typeof__(&PMPI_Wait) host_wait;

static int find_host(struct dl_phdr_info *info, size_t size, void *library)
{
    (void)size;
    if (!info->dlpi_name || !strstr(info->dlpi_name, "/libmpi.so")) return 0;
    *(void **)library = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
    return 1;
}

static void passed(void) { MPI_Barrier(MPI_COMM_SELF); }
static void passed_plain(void) { host_barrier(MPI_COMM_SELF); }
static double word = 1, sum;
static void fold(void) { MPI_Allreduce(&word, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_SELF); }
static void fold_plain(void) { host_allreduce(&word, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_SELF); }
static void waited(void)
{
    MPI_Request none = MPI_REQUEST_NULL;
    MPI_Wait(&none, MPI_STATUS_IGNORE);
}
static void waited_plain(void)
{
    MPI_Request none = MPI_REQUEST_NULL;
    host_wait(&none, MPI_STATUS_IGNORE);
}
static void barrier(void) { MPI_Barrier(MPI_COMM_WORLD); }
static void barrier_plain(void) { lw_barrier(team); }

static void compare(const char *what, void (*ours)(void), void (*plain)(void), const char *over)
{
    double times[2][BATCHES];
    for (int b = 0; b < BATCHES; b++) {
        for (int side = 0; side < 2; side++) {
            void (*call)(void) = side ? plain : ours;
            for (int i = 0; i < 100; i++) call();
            double start = now_ns();
            for (int i = 0; i < CALLS; i++) call();
            times[side][b] = (now_ns() - start) / CALLS;
        }
    }
    for (int side = 0; side < 2; side++) qsort(times[side], BATCHES, sizeof(double), by_size);
    double a = times[0][BATCHES / 2], p = times[1][BATCHES / 2];
    if (rank == 0) printf("%-28s %7.1f ns  %-10s %7.1f ns  above it %6.1f ns\n", what, a, over, p, a - p);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    char name[64];
    int mine = rank == 0 ? (int)time(NULL) : 0;
    MPI_Bcast(&mine, 1, MPI_INT, 0, MPI_COMM_WORLD);
    snprintf(name, sizeof name, "@lineweave-overhead-%d", mine);
    if (lw_comm_connect(name, rank, ranks, &team) != LW_OK) {
        fprintf(stderr, "overhead: %s\n", lw_last_error());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    void *library = NULL;
    dl_iterate_phdr(find_host, &library);
    if (library) {
        *(void **)&host_barrier = dlsym(library, "PMPI_Barrier");
        *(void **)&host_allreduce = dlsym(library, "PMPI_Allreduce");
        *(void **)&host_wait = dlsym(library, "PMPI_Wait");
    }
    if (!host_barrier || !host_allreduce || !host_wait) {
        fprintf(stderr, "overhead: no library of an MPI is loaded\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    for (int i = 0; i < 200; i++) MPI_Barrier(MPI_COMM_WORLD);
    compare("a barrier that passes", passed, passed_plain, "the MPI");
    compare("an allreduce that passes", fold, fold_plain, "the MPI");
    compare("a wait that passes", waited, waited_plain, "the MPI");
    compare("an intercepted barrier", barrier, barrier_plain, "lw_barrier");
    lw_comm_free(team);
    MPI_Finalize();
    return 0;
}
