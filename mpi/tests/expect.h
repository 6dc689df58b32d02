/* What the tests under MPI hold; whoever includes this says by `rank` and `ranks` which of how many it is. */
#ifndef EXPECT_H
#define EXPECT_H

#include <mpi.h>
#include <stdio.h>

#define EXPECT(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "%s:%d: rank %d of %d: expected %s\n", __FILE__, __LINE__, rank, ranks, #condition); \
            MPI_Abort(MPI_COMM_WORLD, 1); \
        } \
    } while (0)

#endif
