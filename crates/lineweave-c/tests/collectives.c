/* Every collective against a plain reference, in threads that lineweave starts, threads of the program, or processes.
 * collectives threads N | own N | connect PATH N | env */
#include "expect.h"

/* Element i of what rank r contributes. */
static int32_t part(int r, size_t i) { return (int32_t)(1000 * (r + 1) + 7 * (int32_t)(i % 5000)); }

static int32_t sum_of(int from, int to, size_t i) {
    int32_t sum = 0;
    for (int r = from; r < to; r++) sum += part(r, i);
    return sum;
}

static int32_t *room(size_t n) {
    int32_t *made = malloc((n + 1) * sizeof *made);
    for (size_t i = 0; i <= n; i++) made[i] = -1;
    return made;
}

static void even(lw_comm *comm, size_t n) {
    int rank = lw_comm_rank(comm), size = lw_comm_size(comm);
    size_t all = n * (size_t)size;
    int32_t *in = room(all), *out = room(all);
    int32_t *own = in + n * (size_t)rank;
    for (int root = 0; root < size; root += size > 1 ? size - 1 : 1) {
        for (size_t i = 0; i < n; i++) in[i] = rank == root ? part(root, i) : -1;
        WORKS(lw_bcast(comm, in, n, LW_I32, root));
        for (size_t i = 0; i < n; i++) EXPECT_AT(in[i] == part(root, i));

        for (size_t i = 0; i < n; i++) in[i] = part(rank, i);
        WORKS(lw_reduce(comm, in, rank == root ? out : NULL, n, LW_I32, LW_SUM, root));
        for (size_t i = 0; rank == root && i < n; i++) EXPECT_AT(out[i] == sum_of(0, size, i));
        WORKS(lw_reduce(comm, rank == root ? LW_IN_PLACE : in, in, n, LW_I32, LW_SUM, root));
        for (size_t i = 0; rank == root && i < n; i++) EXPECT_AT(in[i] == sum_of(0, size, i));

        for (size_t i = 0; i < n; i++) in[i] = part(rank, i);
        WORKS(lw_gather(comm, in, rank == root ? out : NULL, n, LW_I32, root));
        for (size_t i = 0; rank == root && i < all; i++) EXPECT_AT(out[i] == part((int)(i / n), i % n));
        memset(out, 0xff, all * sizeof *out);
        for (size_t i = 0; i < n; i++) out[n * (size_t)rank + i] = part(rank, i);
        WORKS(lw_gather(comm, rank == root ? LW_IN_PLACE : out + n * (size_t)rank, out, n, LW_I32, root));
        for (size_t i = 0; rank == root && i < all; i++) EXPECT_AT(out[i] == part((int)(i / n), i % n));

        for (size_t i = 0; i < all; i++) in[i] = part((int)(i / n), i % n);
        memset(out, 0xff, all * sizeof *out);
        WORKS(lw_scatter(comm, rank == root ? in : NULL, out, n, LW_I32, root));
        for (size_t i = 0; i < n; i++) EXPECT_AT(out[i] == part(rank, i));
        memset(out, 0xff, all * sizeof *out);
        WORKS(lw_scatter(comm, in, rank == root ? LW_IN_PLACE : out, n, LW_I32, root));
        for (size_t i = 0; i < n; i++) EXPECT_AT((rank == root ? own : out)[i] == part(rank, i));
    }
    for (size_t i = 0; i < n; i++) in[i] = part(rank, i);
    WORKS(lw_allreduce(comm, in, out, n, LW_I32, LW_SUM));
    for (size_t i = 0; i < n; i++) EXPECT_AT(out[i] == sum_of(0, size, i));
    memcpy(out, in, n * sizeof *in);
    WORKS(lw_allreduce(comm, LW_IN_PLACE, out, n, LW_I32, LW_MAX));
    for (size_t i = 0; i < n; i++) EXPECT_AT(out[i] == part(size - 1, i));

    WORKS(lw_allgather(comm, in, out, n, LW_I32));
    for (size_t i = 0; i < all; i++) EXPECT_AT(out[i] == part((int)(i / n), i % n));
    memset(out, 0xff, all * sizeof *out);
    memcpy(out + n * (size_t)rank, in, n * sizeof *in);
    WORKS(lw_allgather(comm, LW_IN_PLACE, out, n, LW_I32));
    for (size_t i = 0; i < all; i++) EXPECT_AT(out[i] == part((int)(i / n), i % n));

    WORKS(lw_scan(comm, in, out, n, LW_I32, LW_SUM));
    for (size_t i = 0; i < n; i++) EXPECT_AT(out[i] == sum_of(0, rank + 1, i));
    memcpy(out, in, n * sizeof *in);
    WORKS(lw_scan(comm, LW_IN_PLACE, out, n, LW_I32, LW_SUM));
    for (size_t i = 0; i < n; i++) EXPECT_AT(out[i] == sum_of(0, rank + 1, i));
    memset(out, 0xff, all * sizeof *out);
    WORKS(lw_exscan(comm, in, out, n, LW_I32, LW_SUM));
    for (size_t i = 0; i < n; i++) EXPECT_AT(out[i] == (rank == 0 ? -1 : sum_of(0, rank, i)));
    memcpy(out, in, n * sizeof *in);
    WORKS(lw_exscan(comm, LW_IN_PLACE, out, n, LW_I32, LW_SUM));
    for (size_t i = 0; i < n; i++) EXPECT_AT(out[i] == (rank == 0 ? in[i] : sum_of(0, rank, i)));

    for (size_t i = 0; i < all; i++) in[i] = part(rank, i);
    WORKS(lw_reduce_scatter_block(comm, in, out, n, LW_I32, LW_SUM));
    for (size_t i = 0; i < n; i++) EXPECT_AT(out[i] == sum_of(0, size, n * (size_t)rank + i));
    memcpy(out, in, all * sizeof *in);
    WORKS(lw_reduce_scatter_block(comm, LW_IN_PLACE, out, n, LW_I32, LW_SUM));
    for (size_t i = 0; i < n; i++) EXPECT_AT(out[i] == sum_of(0, size, n * (size_t)rank + i));

    WORKS(lw_alltoall(comm, in, out, n, LW_I32));
    for (size_t i = 0; i < all; i++) EXPECT_AT(out[i] == part((int)(i / n), n * (size_t)rank + i % n));
    WORKS(lw_alltoall(comm, LW_IN_PLACE, in, n, LW_I32));
    EXPECT_AT(memcmp(in, out, all * sizeof *in) == 0);
    EXPECT_AT(in[all] == -1 && out[all] == -1);
    free(in);
    free(out);
}

/* Rank r has scale * r elements; between ranks i and j, scale * (i + j) % 3 in both directions. */
static void uneven(lw_comm *comm, size_t scale) {
    int rank = lw_comm_rank(comm), size = lw_comm_size(comm), root = size - 1;
    size_t counts[64], at[65] = {0};
    for (int r = 0; r < size; r++) {
        counts[r] = scale * (size_t)r;
        at[r + 1] = at[r] + counts[r];
    }
    size_t n = counts[rank], all = at[size];
    int32_t *in = room(all), *out = room(all);
    for (size_t i = 0; i < n; i++) in[i] = part(rank, i);
    WORKS(lw_gatherv(comm, in, rank == root ? out : NULL, counts, LW_I32, root));
    for (int r = 0; rank == root && r < size; r++)
        for (size_t i = 0; i < counts[r]; i++) EXPECT_AT(out[at[r] + i] == part(r, i));
    memset(out, 0xff, all * sizeof *out);
    WORKS(lw_allgatherv(comm, in, out, counts, LW_I32));
    for (int r = 0; r < size; r++)
        for (size_t i = 0; i < counts[r]; i++) EXPECT_AT(out[at[r] + i] == part(r, i));
    memset(out, 0xff, all * sizeof *out);
    memcpy(out + at[rank], in, n * sizeof *in);
    WORKS(lw_allgatherv(comm, LW_IN_PLACE, out, counts, LW_I32));
    for (int r = 0; r < size; r++)
        for (size_t i = 0; i < counts[r]; i++) EXPECT_AT(out[at[r] + i] == part(r, i));
    WORKS(lw_scatterv(comm, rank == root ? out : NULL, rank == root ? LW_IN_PLACE : in, counts, LW_I32, root));
    for (size_t i = 0; rank != root && i < n; i++) EXPECT_AT(in[i] == part(rank, i));

    for (size_t i = 0; i < all; i++) in[i] = part(rank, i);
    WORKS(lw_reduce_scatter(comm, in, out, counts, LW_I32, LW_SUM));
    for (size_t i = 0; i < n; i++) EXPECT_AT(out[i] == sum_of(0, size, at[rank] + i));
    WORKS(lw_reduce_scatter(comm, LW_IN_PLACE, in, counts, LW_I32, LW_SUM));
    for (size_t i = 0; i < n; i++) EXPECT_AT(in[i] == sum_of(0, size, at[rank] + i));
    free(in);
    free(out);

    size_t pairs[64], from[65] = {0};
    for (int r = 0; r < size; r++) {
        pairs[r] = scale * (size_t)((rank + r) % 3);
        from[r + 1] = from[r] + pairs[r];
    }
    in = room(from[size]);
    out = room(from[size]);
    for (int r = 0; r < size; r++)
        for (size_t i = 0; i < pairs[r]; i++) in[from[r] + i] = part(100 * rank + r, i);
    WORKS(lw_alltoallv(comm, in, pairs, out, pairs, LW_I32));
    for (int r = 0; r < size; r++)
        for (size_t i = 0; i < pairs[r]; i++) EXPECT_AT(out[from[r] + i] == part(100 * r + rank, i));
    WORKS(lw_alltoallv(comm, LW_IN_PLACE, NULL, in, pairs, LW_I32));
    EXPECT_AT(memcmp(in, out, from[size] * sizeof *in) == 0);
    EXPECT_AT(in[from[size]] == -1 && out[from[size]] == -1);
    free(in);
    free(out);
}

#define TYPE(c, lw)                                                          \
    do {                                                                     \
        c one[3] = {1, 2, (c)(rank + 1)}, two[3] = {0};                      \
        WORKS(lw_allreduce(comm, one, two, 3, lw, LW_SUM));                  \
        EXPECT_AT(two[0] == (c)size && two[1] == (c)(2 * size));                \
        WORKS(lw_allreduce(comm, one, two, 3, lw, LW_MAX));                  \
        EXPECT_AT(two[0] == 1 && two[2] == (c)size);                            \
    } while (0)

static void types(lw_comm *comm) {
    int rank = lw_comm_rank(comm), size = lw_comm_size(comm);
    TYPE(int8_t, LW_I8);
    TYPE(int16_t, LW_I16);
    TYPE(int32_t, LW_I32);
    TYPE(int64_t, LW_I64);
    TYPE(uint8_t, LW_U8);
    TYPE(uint16_t, LW_U16);
    TYPE(uint32_t, LW_U32);
    TYPE(uint64_t, LW_U64);
    TYPE(float, LW_F32);
    TYPE(double, LW_F64);
    uint16_t half[2] = {0x3c00, 0xbc00}, brain[2] = {0x3f80, 0xbf80}, got[2];
    WORKS(lw_allreduce(comm, half, got, 2, LW_F16, LW_AVG));
    EXPECT_AT(got[0] == 0x3c00 && got[1] == 0xbc00);
    WORKS(lw_allreduce(comm, brain, got, 2, LW_BF16, LW_MIN));
    EXPECT_AT(got[0] == 0x3f80 && got[1] == 0xbf80);
    uint32_t bits = 1u << rank, all;
    WORKS(lw_allreduce(comm, &bits, &all, 1, LW_U32, LW_BOR));
    EXPECT_AT(all == (1u << size) - 1);
    WORKS(lw_allreduce(comm, &bits, &all, 1, LW_U32, LW_LAND));
    EXPECT_AT(all == 1);
}

static void count_up(void *arg) { ++*(long *)arg; }

static lw_status everything(lw_comm *comm, void *arg) {
    int rank = lw_comm_rank(comm), size = lw_comm_size(comm);
    (void)arg;
    EXPECT_AT(rank >= 0 && rank < size);
    for (int i = 0; i < 100; i++) WORKS(lw_barrier(comm));
    even(comm, 1);
    even(comm, 1000);
    even(comm, 40000);
    uneven(comm, 3);
    uneven(comm, 5000);
    types(comm);
    /* Rank 0 comes late, so that the others wait long enough for the function to be called. On a busy machine they may come later
       still, so it tries again, and later each time. */
    int32_t waited = 0, all = 0;
    for (int tries = 0; tries < 50 && !all; tries++) {
        long called = 0;
        WORKS(lw_comm_set_progress(comm, count_up, &called));
        if (rank == 0) usleep((useconds_t)(20000 * (1 + tries)));
        WORKS(lw_barrier(comm));
        WORKS(lw_comm_set_progress(comm, NULL, NULL));
        waited |= rank == 0 || called > 0;
        WORKS(lw_allreduce(comm, &waited, &all, 1, LW_I32, LW_MIN));
    }
    EXPECT_AT(all == 1);
    WORKS(lw_barrier(comm));
    return LW_OK;
}

struct own {
    lw_team *team;
    int rank;
};

static void *own_thread(void *arg) {
    struct own *own = arg;
    int rank = own->rank, size = 0;
    lw_comm *comm = NULL;
    WORKS(lw_team_join(own->team, rank, &comm));
    EXPECT_AT(lw_comm_rank(comm) == rank);
    everything(comm, NULL);
    WORKS(lw_comm_free(comm));
    return NULL;
}

int main(int argc, char **argv) {
    int rank = 0, size = argc > 2 ? atoi(argv[argc - 1]) : 0;
    WORKS(lw_check_version(LW_VERSION));
    if (argc < 2 || strcmp(argv[1], "own") != 0) return run_team(argc, argv, everything);
    lw_team *team;
    pthread_t threads[64];
    struct own own[64];
    WORKS(lw_team_create(size, &team));
    for (int r = 0; r < size; r++) {
        own[r] = (struct own){team, r};
        EXPECT_AT(pthread_create(&threads[r], NULL, own_thread, &own[r]) == 0);
    }
    for (int r = 0; r < size; r++) pthread_join(threads[r], NULL);
    WORKS(lw_team_free(team));
    return 0;
}
