/*
 * Communicators on which no call tells a rank that all others are in it: rooted KIND [CALLS].
 *
 *   rooted    bcast, reduce, gather, scatter alone, roots in turn or one that runs ahead; on communicators made in each way
 *   started   calls that are started and completed by each function in turn, and nothing else
 *   late      ranks are late for calls in turn, by longer than others wait for a team
 *   message   a root sends a message after its bcast that a rank waits for before its own: hosts bear that
 *   refused   a rank is refused a bcast once, and no team is ever made
 */
#include "kinds.h"

static int calls;

static void one(MPI_Comm comm, int kind, int turn, int root)
{
    static const int kinds[] = {BCAST, REDUCE, GATHER, SCATTER};
    int in[64], out[64];
    EXPECT(try_call(job_of(kinds[kind], 1, root, turn, false, in, out, comm), BLOCKING) == 0);
}

static void rooted(void)
{
    MPI_Comm comm[7], grid;
    MPI_Group group;
    int sizes[2] = {0, 0}, periods[2] = {0, 0}, rows[2] = {0, 1};
    MPI_Comm_dup(MPI_COMM_WORLD, &comm[0]);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm[1]);
    MPI_Comm_group(MPI_COMM_WORLD, &group);
    MPI_Comm_create(MPI_COMM_WORLD, group, &comm[2]);
    MPI_Comm_create_group(MPI_COMM_WORLD, group, 3, &comm[3]);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &comm[4]);
    MPI_Dims_create(ranks, 2, sizes);
    MPI_Cart_create(MPI_COMM_WORLD, 2, sizes, periods, 0, &grid);
    MPI_Cart_sub(grid, rows, &comm[5]);
    comm[6] = MPI_COMM_WORLD;
    for (int turn = 0; turn < calls; turn++) {
        for (int i = 0; i < 7; i++) {
            int size;
            MPI_Comm_size(comm[i], &size);
            one(comm[i], i % 4, turn, i % 2 ? turn % size : 0);
        }
    }
    MPI_Comm_free(&grid);
    for (int i = 0; i < 6; i++) MPI_Comm_free(&comm[i]);
    MPI_Group_free(&group);
}

static void started(void)
{
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int turn = 0; turn < calls; turn++) {
        int own = rank + turn, sum = -1, word = rank == turn % ranks ? turn : -1, index, flag = 0, many;
        MPI_Request r[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
        MPI_Iallreduce(&own, &sum, 1, MPI_INT, MPI_SUM, comm, &r[0]);
        /* Some turns have one more under way when the first is completed. */
        if (turn % 3 == 2) MPI_Ibcast(&word, 1, MPI_INT, turn % ranks, comm, &r[1]);
        switch (turn / 3 % 8) {
        case 0: MPI_Wait(&r[0], MPI_STATUS_IGNORE); break;
        case 1: while (!flag) MPI_Test(&r[0], &flag, MPI_STATUS_IGNORE); break;
        case 2: MPI_Waitall(2, r, MPI_STATUSES_IGNORE); break;
        case 3: while (!flag) MPI_Testall(2, r, &flag, MPI_STATUSES_IGNORE); break;
        case 4: MPI_Waitany(2, r, &index, MPI_STATUS_IGNORE); break;
        case 5: while (!flag) MPI_Testany(2, r, &index, &flag, MPI_STATUS_IGNORE); break;
        case 6: MPI_Waitsome(2, r, &many, (int[2]){0}, MPI_STATUSES_IGNORE); break;
        case 7: do MPI_Testsome(2, r, &many, (int[2]){0}, MPI_STATUSES_IGNORE); while (many == 0); break;
        }
        MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
        EXPECT(sum == ranks * turn + ranks * (ranks - 1) / 2);
        EXPECT(turn % 3 != 2 || word == turn);
    }
    MPI_Comm_free(&comm);
}

static void late(void)
{
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int turn = 0; turn < calls; turn++) {
        /* The first two attempts, with LINEWEAVE_MPI_AFTER=4. */
        if ((turn == 3 && rank == ranks - 1) || (turn == 15 && rank == 0)) usleep(300000);
        one(comm, 0, turn, turn / 8 % 2 ? ranks - 1 : 0);
    }
    MPI_Comm_free(&comm);
}

static void message(void)
{
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int turn = 0; turn < calls; turn++) {
        int word = turn;
        if (rank == ranks - 1) MPI_Recv(&word, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        one(comm, 0, turn, 0);
        if (rank == 0) MPI_Send(&word, 1, MPI_INT, ranks - 1, 5, MPI_COMM_WORLD);
    }
    MPI_Comm_free(&comm);
}

static void refused(void)
{
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    for (int turn = 0; turn < calls; turn++) {
        int word = turn;
        if (turn == 2 && rank == ranks - 1) EXPECT(MPI_Bcast(&word, 1, MPI_DATATYPE_NULL, 0, comm) != MPI_SUCCESS);
        one(comm, turn % 2, turn, 0);
    }
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
    const char *kind = argc > 1 ? argv[1] : "rooted";
    calls = argc > 2 ? atoi(argv[2]) : 200;
    start_mpi(&argc, &argv, argc > 3 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE);
    EXPECT(ranks >= 2);
    if (strcmp(kind, "rooted") == 0) rooted();
    else if (strcmp(kind, "started") == 0) started();
    else if (strcmp(kind, "late") == 0) late();
    else if (strcmp(kind, "message") == 0) message();
    else refused();
    return end_mpi("rooted: completed");
}
