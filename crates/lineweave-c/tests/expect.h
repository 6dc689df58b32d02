/* What the C tests share. */
#ifndef EXPECT_H
#define EXPECT_H

#include "lineweave.h"
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* A condition that does not hold ends the program with its place and lineweave's last error. */
#define EXPECT(what)                                                                         \
    do {                                                                                     \
        if (!(what)) {                                                                       \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #what, lw_last_error());  \
            exit(1);                                                                         \
        }                                                                                    \
    } while (0)

/* The same where `rank` and `size` say which of how many ranks it is. */
#define EXPECT_AT(what)                                                                      \
    do {                                                                                     \
        if (!(what)) {                                                                       \
            fprintf(stderr, "rank %d of %d: ", rank, size);                                  \
            EXPECT(what);                                                                    \
        }                                                                                    \
    } while (0)
#define WORKS(call) EXPECT_AT((call) == LW_OK)

/* Runs a function at each rank of a team, as the arguments say: threads N | connect PATH N | env. Returns the program's status. */
static inline int run_team(int argc, char **argv, lw_status (*everything)(lw_comm *, void *)) {
    int rank = 0, size = argc > 2 ? atoi(argv[argc - 1]) : 1, status, bad = 0;
    lw_comm *comm;
    EXPECT(argc > 1);
    if (strcmp(argv[1], "threads") == 0) {
        EXPECT(lw_team_threads(size, everything, NULL) == LW_OK);
        return 0;
    }
    if (strcmp(argv[1], "connect") == 0) {
        /* Children come before rank 0, which is this process, listens. */
        for (rank = size - 1; rank > 0; rank--)
            if (fork() == 0) break;
        if (rank == 0) usleep(20000);
        WORKS(lw_comm_connect(argv[2], rank, size, &comm));
        EXPECT_AT(lw_comm_rank(comm) == rank && lw_comm_size(comm) == size);
    } else {
        WORKS(lw_comm_from_env(&comm));
    }
    WORKS(everything(comm, NULL));
    status = lw_comm_free(comm);
    EXPECT_AT(status == LW_OK || status == LW_ERR_HANDLE);
    while (rank == 0 && wait(&status) > 0) bad |= status;
    return bad != 0;
}

#endif
