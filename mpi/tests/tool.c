/*
 * A profiler as tools on PMPI are made, for tests: it counts what the program calls, and in MPI_Finalize adds the counts of all ranks up, by calls of its
 * own. With TOOL_NEXT it goes on by the next definition of MPI_x, as preloaded wrappers do that are no tools on PMPI.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

enum { BARRIER, BCAST, ALLREDUCE, STARTED, WAIT, KINDS };
static long counts[KINDS];

#ifdef TOOL_NEXT
#define GO_ON(name, parameters, arguments) \
    int (*next) parameters; \
    *(void **)&next = dlsym(RTLD_NEXT, "MPI_" #name); \
    return next arguments;
#else
#define GO_ON(name, parameters, arguments) return PMPI_##name arguments;
#endif
#define COUNT(kind, name, parameters, arguments) \
    int MPI_##name parameters \
    { \
        counts[kind]++; \
        GO_ON(name, parameters, arguments) \
    }
COUNT(BARRIER, Barrier, (MPI_Comm c), (c))
COUNT(BCAST, Bcast, (void *b, int n, MPI_Datatype t, int root, MPI_Comm c), (b, n, t, root, c))
COUNT(ALLREDUCE, Allreduce, (const void *s, void *r, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c), (s, r, n, t, o, c))
COUNT(STARTED, Iallreduce, (const void *s, void *r, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c, MPI_Request *q), (s, r, n, t, o, c, q))
COUNT(WAIT, Wait, (MPI_Request *q, MPI_Status *s), (q, s))

int MPI_Finalize(void)
{
    long all[KINDS];
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Reduce(counts, all, KINDS, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) fprintf(stderr, "tool: %ld %ld %ld %ld %ld\n", all[BARRIER], all[BCAST], all[ALLREDUCE], all[STARTED], all[WAIT]);
    GO_ON(Finalize, (void), ())
}
