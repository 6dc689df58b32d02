/*
 * Every collective on communicators whose ranks lie on nodes in any order: as they come, backwards, dealt out, and without some. Each
 * root, short messages and long ones, in place too. Results are computed here. To be run with LINEWEAVE_RANKS_PER_NODE.
 */
#include "expect.h"

static MPI_Comm comm;

static int *in, *out, *spare;

/* What rank r gives at place i. */
static int given(int r, int i, int turn) { return 1000 * r + i % 611 + turn; }
static int sum_of(int first, int last, int i, int turn)
{
    int n = last - first;
    return n * (i % 611 + turn) + 1000 * ((first + last - 1) * n / 2);
}

static void fill(int n, int turn)
{
    for (int i = 0; i < n; i++) in[i] = given(rank, i, turn);
}

static void data_moves(int n, int root, int turn)
{
    for (int i = 0; i < n; i++) out[i] = rank == root ? given(root, i, turn) : -1;
    MPI_Bcast(out, n, MPI_INT, root, comm);
    for (int i = 0; i < n; i++) EXPECT(out[i] == given(root, i, turn));

    fill(n, turn);
    memset(out, 0xff, sizeof *out * (size_t)n * (size_t)ranks);
    int in_place = turn % 2 && rank == root;
    if (in_place) memcpy(out + (size_t)rank * n, in, sizeof *in * (size_t)n);
    MPI_Gather(in_place ? MPI_IN_PLACE : in, n, MPI_INT, out, n, MPI_INT, root, comm);
    if (rank == root) for (int r = 0; r < ranks; r++) for (int i = 0; i < n; i++) EXPECT(out[(size_t)r * n + i] == given(r, i, turn));

    if (rank == root) for (int r = 0; r < ranks; r++) for (int i = 0; i < n; i++) out[(size_t)r * n + i] = given(r, i, 3 * turn);
    memset(in, 0xff, sizeof *in * (size_t)n);
    MPI_Scatter(out, n, MPI_INT, in_place ? MPI_IN_PLACE : in, n, MPI_INT, root, comm);
    if (!in_place) for (int i = 0; i < n; i++) EXPECT(in[i] == given(rank, i, 3 * turn));

    fill(n, turn);
    memset(out, 0xff, sizeof *out * (size_t)n * (size_t)ranks);
    if (turn % 3 == 0) {
        memcpy(out + (size_t)rank * n, in, sizeof *in * (size_t)n);
        MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out, n, MPI_INT, comm);
    } else {
        MPI_Allgather(in, n, MPI_INT, out, n, MPI_INT, comm);
    }
    for (int r = 0; r < ranks; r++) for (int i = 0; i < n; i++) EXPECT(out[(size_t)r * n + i] == given(r, i, turn));

    int block = n / ranks + 1;
    for (int r = 0; r < ranks; r++) for (int i = 0; i < block; i++) in[r * block + i] = given(rank, r + i, turn);
    MPI_Alltoall(in, block, MPI_INT, out, block, MPI_INT, comm);
    for (int r = 0; r < ranks; r++) for (int i = 0; i < block; i++) EXPECT(out[r * block + i] == given(r, rank + i, turn));
}

static void data_combines(int n, int root, int turn)
{
    fill(n, turn);
    memset(out, 0xff, sizeof *out * (size_t)n);
    if (turn % 2) {
        memcpy(out, in, sizeof *in * (size_t)n);
        MPI_Allreduce(MPI_IN_PLACE, out, n, MPI_INT, MPI_SUM, comm);
    } else {
        MPI_Allreduce(in, out, n, MPI_INT, MPI_SUM, comm);
    }
    for (int i = 0; i < n; i++) EXPECT(out[i] == sum_of(0, ranks, i, turn));

    memset(out, 0xff, sizeof *out * (size_t)n);
    if (turn % 2 && rank == root) {
        memcpy(out, in, sizeof *in * (size_t)n);
        MPI_Reduce(MPI_IN_PLACE, out, n, MPI_INT, MPI_SUM, root, comm);
    } else {
        MPI_Reduce(in, rank == root || turn % 3 ? out : NULL, n, MPI_INT, MPI_SUM, root, comm);
    }
    if (rank == root) for (int i = 0; i < n; i++) EXPECT(out[i] == sum_of(0, ranks, i, turn));
    for (int i = 0; i < n; i++) EXPECT(in[i] == given(rank, i, turn));

    struct pair { int value, where; } *pairs = (struct pair *)spare, *least = (struct pair *)out;
    for (int i = 0; i < n / 2; i++) pairs[i].value = (rank * 5 + i) % 7, pairs[i].where = rank;
    MPI_Allreduce(pairs, least, n / 2, MPI_2INT, MPI_MINLOC, comm);
    for (int i = 0; i < n / 2; i += 17) {
        int best = 99, where = -1;
        for (int r = 0; r < ranks; r++) if ((r * 5 + i) % 7 < best) best = (r * 5 + i) % 7, where = r;
        EXPECT(least[i].value == best && least[i].where == where);
    }

    MPI_Scan(in, out, n, MPI_INT, MPI_SUM, comm);
    for (int i = 0; i < n; i++) EXPECT(out[i] == sum_of(0, rank + 1, i, turn));
    MPI_Exscan(in, out, n, MPI_INT, MPI_SUM, comm);
    if (rank > 0) for (int i = 0; i < n; i++) EXPECT(out[i] == sum_of(0, rank, i, turn));
    int block = n / ranks + 1;
    for (int i = 0; i < ranks * block; i++) in[i] = given(rank, i, turn);
    MPI_Reduce_scatter_block(in, out, block, MPI_INT, MPI_SUM, comm);
    for (int i = 0; i < block; i++) EXPECT(out[i] == sum_of(0, ranks, rank * block + i, turn));
}

static void all(int most)
{
    const int lengths[] = {1, 3, 1000, 33000, 131073, 300001};
    for (int l = 0; l < 6 && lengths[l] <= most; l++) {
        int n = lengths[l];
        size_t room = sizeof *in * ((size_t)n + 64) * ((size_t)ranks + 1);
        in = malloc(room), out = malloc(room), spare = malloc(room);
        EXPECT(in && out && spare);
        for (int turn = 0; turn < (n > 1000 ? 3 : 2 * ranks); turn++) {
            int root = (turn * (n > 1000 ? ranks / 2 + 1 : 1)) % ranks;
            MPI_Barrier(comm);
            data_moves(n, root, turn);
            data_combines(n, root, turn);
        }
        free(in), free(out), free(spare);
    }
}

int main(int argc, char **argv)
{
    start_mpi(&argc, &argv, MPI_THREAD_SINGLE);
    int place = rank, many = ranks, most = argc > 1 ? atoi(argv[1]) : 300001;
    for (int order = 0; order < 4; order++) {
        /* As they come, backwards, dealt out, and without the second. */
        int key = order == 1 ? -place : order == 2 ? place % 2 * many + place : place;
        MPI_Comm_split(MPI_COMM_WORLD, order == 3 && place == 1 ? MPI_UNDEFINED : 0, key, &comm);
        if (comm == MPI_COMM_NULL) continue;
        MPI_Comm_rank(comm, &rank);
        MPI_Comm_size(comm, &ranks);
        for (int i = 0; i < 8; i++) MPI_Barrier(comm);
        all(most);
        MPI_Comm_free(&comm);
    }
    MPI_Finalize();
    if (place == 0) printf("nodes: collectives are right among %d ranks\n", many);
    return 0;
}
