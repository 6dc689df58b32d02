/*
 * Every collective on communicators whose ranks lie on nodes in any order: as they come, backwards, dealt out, and without some. Each
 * root, short messages and long ones, in place too. Results are computed here. To be run with LINEWEAVE_RANKS_PER_NODE.
 */
#include "kinds.h"

static MPI_Comm comm;

static void least_and_where(int n)
{
    struct pair { int value, where; } *pairs = malloc(sizeof *pairs * (size_t)n), *least = malloc(sizeof *pairs * (size_t)n);
    for (int i = 0; i < n; i++) pairs[i].value = (rank * 5 + i) % 7, pairs[i].where = rank;
    MPI_Allreduce(pairs, least, n, MPI_2INT, MPI_MINLOC, comm);
    for (int i = 0; i < n; i += 17) {
        int best = 99, where = -1;
        for (int r = 0; r < ranks; r++) if ((r * 5 + i) % 7 < best) best = (r * 5 + i) % 7, where = r;
        EXPECT(least[i].value == best && least[i].where == where);
    }
    free(pairs), free(least);
}

static void all(int most)
{
    const int lengths[] = {1, 3, 1000, 33000, 131073, 300001};
    for (int l = 0; l < 6 && lengths[l] <= most; l++) {
        int n = lengths[l];
        size_t room = sizeof(int) * ((size_t)n + 64) * (size_t)ranks;
        int *in = malloc(room), *out = malloc(room);
        EXPECT(in && out);
        for (int turn = 0; turn < (n > 1000 ? 3 : 2 * ranks); turn++) {
            int root = (turn * (n > 1000 ? ranks / 2 + 1 : 1)) % ranks;
            least_and_where(n / 2 + 1);
            for (int kind = 0; kind < KINDS; kind++) {
                bool parts = kind == ALLTOALL || kind == REDUCE_SCATTER_BLOCK || kind >= GATHERV;
                struct job job = job_of(kind, parts ? n / ranks + 1 : n, root, turn, true, in, out, comm);
                job.in_place = turn % 2;
                EXPECT(try_call(job, BLOCKING) == 0);
            }
        }
        free(in), free(out);
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
