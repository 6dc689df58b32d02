/* What the programs of the tests under MPI share. */
#ifndef EXPECT_H
#define EXPECT_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The rank of how many this is, in MPI_COMM_WORLD unless the program says otherwise. */
static int rank, ranks;

#define EXPECT(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "%s:%d: rank %d of %d: expected %s\n", __FILE__, __LINE__, rank, ranks, #condition); \
            MPI_Abort(MPI_COMM_WORLD, 1); \
        } \
    } while (0)

/* Starts MPI for one thread, or for threads of another level. */
static inline void start_mpi(int *argc, char ***argv, int level)
{
    int got = level;
    if (level == MPI_THREAD_SINGLE) MPI_Init(argc, argv);
    else MPI_Init_thread(argc, argv, level, &got);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    EXPECT(got >= level && ranks <= 64);
}

/* Ends MPI; rank 0 says what the ranks did. */
static inline int end_mpi(const char *what)
{
    MPI_Finalize();
    if (rank == 0) printf("%s by %d ranks\n", what, ranks);
    return 0;
}

/* Sums up a number of each rank of a communicator, by which a call differs from those before. */
static inline void sum_up(MPI_Comm comm, int turn)
{
    int place, size, sum = -1;
    MPI_Comm_rank(comm, &place);
    MPI_Comm_size(comm, &size);
    int own = place + turn;
    EXPECT(MPI_Allreduce(&own, &sum, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS);
    EXPECT(sum == size * turn + size * (size - 1) / 2);
}

/* Enough calls for a team, whatever LINEWEAVE_MPI_AFTER is by default. */
static inline void get_team(MPI_Comm comm)
{
    for (int i = 0; i < 20; i++) MPI_Barrier(comm);
}

#endif
