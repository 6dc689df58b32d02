/*
 * A library below lineweave, for tests: it counts the host's functions that lineweave itself calls on communicators of several ranks. A program calls
 * them by their MPI_ names, which pass by; lineweave calls them by their PMPI_ names. At the end it says how many, and how many of them on communicators
 * with ranks that MPI_COMM_WORLD does not have, and whether lineweave started this process as a spawned one: one line on standard error.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int calls, foreign;

static void see(MPI_Comm comm)
{
    int size = 0, there[64], ranks[64];
    MPI_Group all, world;
    PMPI_Comm_size(comm, &size);
    if (size < 2 || size > 64) return;
    for (int r = 0; r < size; r++) ranks[r] = r;
    PMPI_Comm_group(comm, &all);
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    PMPI_Group_translate_ranks(all, size, ranks, world, there);
    PMPI_Group_free(&all);
    PMPI_Group_free(&world);
    int outside = 0;
    for (int r = 0; r < size; r++) outside = outside || there[r] == MPI_UNDEFINED;
    __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&foreign, outside, __ATOMIC_RELAXED);
}

#define WATCH(name, comm, parameters, arguments) \
    int PMPI_##name parameters \
    { \
        int (*next) parameters; \
        *(void **)&next = dlsym(RTLD_NEXT, "PMPI_" #name); \
        see(comm); \
        return next arguments; \
    }
WATCH(Barrier, c, (MPI_Comm c), (c))
WATCH(Bcast, c, (void *b, int n, MPI_Datatype t, int r, MPI_Comm c), (b, n, t, r, c))
WATCH(Allgather, c, (const void *s, int n, MPI_Datatype t, void *r, int m, MPI_Datatype u, MPI_Comm c), (s, n, t, r, m, u, c))
WATCH(Allreduce, c, (const void *s, void *r, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c), (s, r, n, t, o, c))
WATCH(Reduce, c, (const void *s, void *r, int n, MPI_Datatype t, MPI_Op o, int at, MPI_Comm c), (s, r, n, t, o, at, c))
WATCH(Gather, c, (const void *s, int n, MPI_Datatype t, void *r, int m, MPI_Datatype u, int at, MPI_Comm c), (s, n, t, r, m, u, at, c))
WATCH(Scatter, c, (const void *s, int n, MPI_Datatype t, void *r, int m, MPI_Datatype u, int at, MPI_Comm c), (s, n, t, r, m, u, at, c))
WATCH(Send, c, (const void *b, int n, MPI_Datatype t, int to, int g, MPI_Comm c), (b, n, t, to, g, c))
WATCH(Recv, c, (void *b, int n, MPI_Datatype t, int from, int g, MPI_Comm c, MPI_Status *s), (b, n, t, from, g, c, s))
WATCH(Comm_dup, c, (MPI_Comm c, MPI_Comm *m), (c, m))
WATCH(Comm_split, c, (MPI_Comm c, int k, int o, MPI_Comm *m), (c, k, o, m))

__attribute__((destructor)) static void say(void) 
{
    fprintf(stderr, "watch: %d calls, %d foreign, spawned %d\n", calls, foreign, getenv("LINEWEAVE_MPI_SPAWN") != NULL);
}
