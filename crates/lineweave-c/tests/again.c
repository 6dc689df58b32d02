/* Calls that two ranks make again and again, and others between them: what is known of the last call must not serve another. */
#include "expect.h"

static int size = 2;

/* Comes late now and then, sometimes later than a peer looks before it sleeps. */
static void dawdle(int rank, int turn) {
    if (turn % 16 == rank) usleep(turn % 32 < 16 ? 100 : 3000);
}

static void repeat(struct lw_comm *comm, int rank) {
    double in[2], out[2], both;
    for (int turn = 0; turn < 200; turn++) {
        dawdle(rank, turn);
        in[turn % 2] = turn + rank;
        EXPECT_AT(lw_allreduce(comm, &in[turn % 2], &out[turn / 2 % 2], 1, LW_F64, LW_SUM) == LW_OK);
        EXPECT_AT(out[turn / 2 % 2] == 2 * turn + 1);
    }
    for (int turn = 0; turn < 200; turn++) {
        dawdle(rank, turn);
        both = turn + rank;
        EXPECT_AT(lw_allreduce(comm, LW_IN_PLACE, &both, 1, LW_F64, LW_SUM) == LW_OK);
        EXPECT_AT(both == 2 * turn + 1);
    }
    for (int turn = 0; turn < 200; turn++) {
        dawdle(rank, turn);
        EXPECT_AT(lw_barrier(comm) == LW_OK);
    }
}

/* Another length, type or operator each time. */
static void change(struct lw_comm *comm, int rank) {
    for (int turn = 0; turn < 50; turn++) {
        for (int again = 0; again < turn % 3 + 1; again++) {
            int32_t in[2] = {turn + rank, turn - rank}, out[2] = {-1, -1};
            EXPECT_AT(lw_allreduce(comm, in, out, 1, LW_I32, LW_SUM) == LW_OK && out[0] == 2 * turn + 1 && out[1] == -1);
            EXPECT_AT(lw_allreduce(comm, in, out, 2, LW_I32, LW_SUM) == LW_OK && out[1] == 2 * turn - 1);
            EXPECT_AT(lw_allreduce(comm, in, out, 1, LW_I32, LW_MAX) == LW_OK && out[0] == turn + 1);
            EXPECT_AT(lw_allreduce(comm, in, out, 1, LW_I32, LW_MIN) == LW_OK && out[0] == turn);
            if (turn % 2) EXPECT_AT(lw_barrier(comm) == LW_OK);
            int64_t wide = (int64_t)(rank + 1) << 40, sum;
            EXPECT_AT(lw_allreduce(comm, &wide, &sum, 1, LW_I64, LW_SUM) == LW_OK && sum == (int64_t)3 << 40);
        }
    }
}

/* What is wrong is found also where it is the last call but for that. */
static void refuse(struct lw_comm *comm, int rank) {
    union { double aligned; char bytes[24]; } in = {.aligned = rank}, out;
    double *odd = (double *)(in.bytes + 4), *sum = &out.aligned;
    for (int turn = 0; turn < 3; turn++) {
        EXPECT_AT(lw_allreduce(comm, &in, sum, 1, LW_F64, LW_SUM) == LW_OK && *sum == 1);
        EXPECT_AT(lw_allreduce(comm, odd, sum, 1, LW_F64, LW_SUM) == LW_ERR_ALIGN);
        EXPECT_AT(lw_allreduce(comm, NULL, sum, 1, LW_F64, LW_SUM) == LW_ERR_NULL);
        EXPECT_AT(lw_allreduce(comm, &in, NULL, 1, LW_F64, LW_SUM) == LW_ERR_NULL);
        EXPECT_AT(lw_allreduce(comm, &in, LW_IN_PLACE, 1, LW_F64, LW_SUM) == LW_ERR_BUFFER);
        EXPECT_AT(lw_allreduce(NULL, &in, sum, 1, LW_F64, LW_SUM) == LW_ERR_NULL);
        EXPECT_AT(lw_allreduce((struct lw_comm *)((char *)comm + 1), &in, sum, 1, LW_F64, LW_SUM) == LW_ERR_HANDLE);
        EXPECT_AT(lw_barrier(NULL) == LW_ERR_NULL);
        EXPECT_AT(lw_allreduce(comm, &in, sum, 1, LW_F64, LW_SUM) == LW_OK && *sum == 1);
        EXPECT_AT(lw_allreduce(comm, &in, sum, 1, LW_F64, -1) == LW_ERR_OP);
        EXPECT_AT(lw_allreduce(comm, in.bytes, out.bytes, 8, LW_U8, LW_MAX) == LW_OK);
        EXPECT_AT(lw_allreduce(comm, in.bytes, in.bytes + 4, 8, LW_U8, LW_MAX) == LW_ERR_BUFFER);
        EXPECT_AT(lw_allreduce(comm, in.bytes, out.bytes, 8, LW_U8, LW_MAX) == LW_OK);
    }
}

static int body(struct lw_comm *comm, void *unused) {
    int rank = lw_comm_rank(comm);
    (void)unused;
    struct lw_comm *other;
    EXPECT_AT(lw_comm_dup(comm, &other) == LW_OK);
    repeat(comm, rank);
    change(comm, rank);
    refuse(comm, rank);
    double one = 1, sum;
    for (int turn = 0; turn < 20; turn++) {
        EXPECT_AT(lw_allreduce(comm, &one, &sum, 1, LW_F64, LW_SUM) == LW_OK && sum == 2);
        EXPECT_AT(lw_allreduce(other, &sum, &one, 1, LW_F64, LW_MAX) == LW_OK && one == 2);
        one = 1;
        EXPECT_AT(lw_barrier(other) == LW_OK && lw_barrier(comm) == LW_OK);
    }
    EXPECT_AT(lw_comm_free(other) == LW_OK);
    EXPECT_AT(lw_barrier(other) == LW_ERR_HANDLE);
    EXPECT_AT(lw_allreduce(other, &one, &sum, 1, LW_F64, LW_MAX) == LW_ERR_HANDLE);
    /* Rank 1 leaves; rank 0 has begun its call before it finds out. */
    EXPECT_AT(lw_allreduce(comm, &one, &sum, 1, LW_F64, LW_SUM) == LW_OK);
    if (rank == 0) {
        EXPECT_AT(lw_allreduce(comm, &one, &sum, 1, LW_F64, LW_SUM) == LW_ERR_PEER);
        EXPECT_AT(lw_allreduce(comm, &one, &sum, 1, LW_F64, LW_SUM) == LW_ERR_FAILED);
        EXPECT_AT(lw_barrier(comm) == LW_ERR_FAILED);
    }
    return 0;
}

int main(void) {
    int status = lw_team_threads(size, body, NULL);
    EXPECT(status == LW_OK);
    return 0;
}
