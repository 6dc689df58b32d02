/*
 * Exchanges of parts of arrays, as in a transform of fields, and of types made by functions with large counts: parts that lie in a row, parts that do
 * not, and what is between stays. Calls block, or are started and completed later: several are under way, each rank completes them in its own
 * order, and changes what it gave only then. Types are freed before the calls are over.
 */
#include "expect.h"
#include "parts.h"

enum { LINES = 2, DEPTH = 3, MANY = 4 };

/* What is at a place of the rank's rows, or columns, of the whole array; below 0 between the parts. */
static int cell(int at, int deep, bool rows, int mark)
{
    int all = LINES * ranks, k = at % deep, line = at / deep;
    int row = rows ? rank * LINES + line / all : line / LINES, column = rows ? line % all : rank * LINES + line % LINES;
    return k < DEPTH ? mark * 1000000 + row * 1000 + column * 10 + k : -1;
}

/* Makes a call that blocks where that is asked for, or starts it. */
#define CALL(blocks, name, started, request, arguments...) \
    (blocks ? (*(request) = MPI_REQUEST_NULL, name(arguments, MPI_COMM_WORLD)) : started(arguments, MPI_COMM_WORLD, request))

static void give_back(MPI_Datatype type) { MPI_Type_free(&type); }

/* Rows become columns, and columns rows. */
static void transpose(int how, int turn)
{
    bool gaps = how & 1, fortran = how & 2, large = how & 4, blocks = how & 8, from_rows = turn % 2 == 0;
    int all = LINES * ranks, deep = DEPTH + gaps, cells = LINES * all * deep, ones[ranks], zeros[ranks], given[MANY][cells], taken[MANY][cells];
    MPI_Datatype of_rows[ranks], of_columns[ranks];
    MPI_Request requests[MANY];
    for (int i = 0; i < ranks; i++) {
        const int part[] = {LINES, LINES, DEPTH};
        ones[i] = 1, zeros[i] = 0;
        of_rows[i] = part_of((int[]){LINES, all, deep}, part, (int[]){0, i * LINES, 0}, fortran, large);
        of_columns[i] = part_of((int[]){all, LINES, deep}, part, (int[]){i * LINES, 0, 0}, fortran, large);
    }
    MPI_Datatype *give = from_rows ? of_rows : of_columns, *take = from_rows ? of_columns : of_rows;
    for (int one = 0; one < MANY; one++) {
        for (int at = 0; at < cells; at++) given[one][at] = cell(at, deep, from_rows, MANY * turn + one), taken[one][at] = -1;
        CALL(blocks, MPI_Alltoallw, MPI_Ialltoallw, &requests[one], given[one], ones, zeros, give, taken[one], ones, zeros, take);
    }
    /* The lists stay until the calls are over. */
    for (int i = 0; i < ranks; i++) give_back(give[i]), give_back(take[i]);
    sum_up(MPI_COMM_WORLD, turn);
    for (int next = 0; next < MANY; next++) {
        int one = (next * 3 + rank) % MANY;
        MPI_Wait(&requests[one], MPI_STATUS_IGNORE);
        for (int at = 0; at < cells; at++) {
            given[one][at] = -2;
            EXPECT(taken[one][at] == cell(at, deep, !from_rows, MANY * turn + one));
        }
    }
}

/* Three numbers, given from within four and taken one after another; none, one or two of them a rank. */
static void exchange(int how, int turn)
{
    bool fortran = how & 2, large = how & 4, blocks = how & 8;
    int counts[MANY][ranks], places[ranks], given[MANY][ranks * 8], taken[MANY][ranks * 6], told[MANY][3];
    MPI_Datatype within = part_of((int[]){1, 1, 4}, (int[]){1, 1, 3}, (int[]){0, 0, 1}, fortran, large), three = three_of(large);
    MPI_Request requests[2 * MANY];
    for (int one = 0; one < MANY; one++) {
        int root = (turn + one) % ranks;
        for (int r = 0; r < ranks; r++) counts[one][r] = (rank + r + turn + one) % 3, places[r] = 2 * r;
        for (int at = 0; at < ranks * 8; at++) given[one][at] = at % 4 ? 10000 * one + 1000 * rank + 3 * (at / 4) + at % 4 + turn : -3;
        for (int at = 0; at < ranks * 6; at++) taken[one][at] = -1;
        for (int i = 0; i < 3; i++) told[one][i] = rank == root ? 7 * i + turn + one : -1;
        CALL(blocks, MPI_Alltoallv, MPI_Ialltoallv, &requests[2 * one], given[one], counts[one], places, within, taken[one], counts[one], places, three);
        CALL(blocks, MPI_Bcast, MPI_Ibcast, &requests[2 * one + 1], told[one], 1, three, root);
    }
    give_back(within);
    give_back(three);
    for (int next = 0; next < MANY; next++) {
        int one = (next + rank) % MANY;
        MPI_Wait(&requests[2 * one], MPI_STATUS_IGNORE);
        for (int at = 0; at < ranks * 8; at++) given[one][at] = -2;
        for (int at = 0; at < ranks * 6; at++) {
            int from = at / 6, which = at / 3 % 2;
            int want = 10000 * one + 1000 * from + 3 * (2 * rank + which) + at % 3 + 1 + turn;
            EXPECT(taken[one][at] == (which < counts[one][from] ? want : -1));
        }
        MPI_Wait(&requests[2 * one + 1], MPI_STATUS_IGNORE);
        for (int i = 0; i < 3; i++) EXPECT(told[one][i] == 7 * i + turn + one);
    }
}

int main(int argc, char **argv)
{
    start_mpi(&argc, &argv, MPI_THREAD_SINGLE);
    get_team(MPI_COMM_WORLD);
    for (int how = 0; how < 16; how++) {
        for (int turn = 0; turn < 6; turn++) {
            transpose(how, turn);
            exchange(how, turn);
        }
    }
    return end_mpi("exchanges: completed");
}
