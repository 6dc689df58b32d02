/* Started and persistent calls. */
#include "expect.h"

enum { MOST = 8, N = 3 };

/* Every collective at once, each against what it must give. */
static lw_status everything(lw_comm *comm, void *arg) {
    int persistent = *(int *)arg, rank = lw_comm_rank(comm), P = lw_comm_size(comm), ones = 0;
    int32_t mine[N], all[MOST * N], many[MOST * N], out[16][MOST * N];
    size_t counts[MOST];
    lw_request *r[16];
    for (int i = 0; i < N; i++) mine[i] = rank * 10 + i;
    for (int q = 0; q < P; q++) {
        counts[q] = N;
        ones += q;
        for (int i = 0; i < N; i++) all[q * N + i] = q * 10 + i, many[q * N + i] = 100 * rank + q * 10 + i;
    }
    for (int turn = 0; turn < 3; turn++) {
        memset(out, 0, sizeof out);
        memcpy(out[1], mine, sizeof mine);
        int k = 0;
#define CALL(name, ...)                                                      \
    do {                                                                     \
        if (persistent && turn == 0) EXPECT(lw_##name##_init(comm, __VA_ARGS__, &r[k]) == LW_OK); \
        if (persistent) EXPECT(lw_start(r[k]) == LW_OK);                     \
        else EXPECT(lw_i##name(comm, __VA_ARGS__, &r[k]) == LW_OK);          \
        k++;                                                                 \
    } while (0)
        if (!persistent) EXPECT(lw_ibarrier(comm, &r[k]) == LW_OK);
        else {
            if (turn == 0) EXPECT(lw_comm_barrier_init(comm, &r[k]) == LW_OK);
            EXPECT(lw_start(r[k]) == LW_OK);
            EXPECT(lw_start(r[k]) == LW_ERR_BUSY);
        }
        k++;
        CALL(bcast, out[1], N, LW_I32, P - 1);
        CALL(reduce, mine, out[2], N, LW_I32, LW_SUM, 0);
        CALL(allreduce, mine, out[3], N, LW_I32, LW_SUM);
        CALL(gather, mine, out[4], N, LW_I32, 0);
        CALL(scatter, all, out[5], N, LW_I32, 0);
        CALL(allgather, mine, out[6], N, LW_I32);
        CALL(reduce_scatter_block, many, out[7], N, LW_I32, LW_MAX);
        CALL(scan, mine, out[8], N, LW_I32, LW_MAX);
        CALL(exscan, mine, out[9], N, LW_I32, LW_MAX);
        CALL(alltoall, many, out[10], N, LW_I32);
        CALL(gatherv, mine, out[11], counts, LW_I32, 0);
        CALL(scatterv, all, out[12], counts, LW_I32, 0);
        CALL(allgatherv, mine, out[13], counts, LW_I32);
        CALL(reduce_scatter, many, out[14], counts, LW_I32, LW_MAX);
        CALL(alltoallv, many, counts, out[15], counts, LW_I32);
        EXPECT(k == 16);
        if (turn == 0) {
            int done = 0;
            while (!done) EXPECT(lw_testall(16, r, &done) == LW_OK);
        } else if (turn == 1) {
            EXPECT(lw_wait(&r[13 - rank % 3]) == LW_OK);
            EXPECT(lw_barrier(comm) == LW_OK);
            EXPECT(lw_waitall(16, r) == LW_OK);
        } else
            for (int i = 15; i >= 0; i--) EXPECT(lw_wait(&r[i]) == LW_OK);
        for (int i = 0; i < 16; i++) EXPECT((r[i] != NULL) == persistent);
        for (int i = 0; i < N; i++) {
            EXPECT(out[1][i] == (P - 1) * 10 + i);
            EXPECT(out[3][i] == ones * 10 + P * i);
            EXPECT(rank != 0 || out[2][i] == out[3][i]);
            EXPECT(out[5][i] == mine[i] && out[12][i] == mine[i] && out[8][i] == mine[i]);
            EXPECT(rank == 0 || out[9][i] == mine[i] - 10);
            EXPECT(out[7][i] == 100 * (P - 1) + rank * 10 + i && out[14][i] == out[7][i]);
            for (int q = 0; q < P; q++) {
                EXPECT(out[6][q * N + i] == all[q * N + i] && out[13][q * N + i] == all[q * N + i]);
                EXPECT(out[10][q * N + i] == 100 * q + rank * 10 + i);
                EXPECT(out[15][q * N + i] == out[10][q * N + i]);
                EXPECT(rank != 0 || (out[4][q * N + i] == all[q * N + i] && out[11][q * N + i] == all[q * N + i]));
            }
        }
    }
    for (int i = 0; i < 16 && persistent; i++) EXPECT(lw_request_free(&r[i]) == LW_OK && r[i] == NULL);

    /* Any of some, and what is refused. */
    int32_t sums[5] = {0};
    for (int i = 0; i < 5; i++) EXPECT(lw_iallreduce(comm, &mine[1], &sums[i], 1, LW_I32, LW_SUM, &r[i]) == LW_OK);
    size_t at = 9, seen = 0;
    for (int i = 0; i < 5; i++) {
        EXPECT(lw_waitany(5, r, &at) == LW_OK && at < 5 && sums[at] == ones * 10 + P);
        seen |= (size_t)1 << at;
    }
    EXPECT(seen == 31 && lw_waitany(5, r, &at) == LW_OK && at == 5);
    lw_request *none = NULL, *kept;
    int done = 0;
    EXPECT(lw_wait(&none) == LW_OK && lw_test(&none, &done) == LW_OK && done == 1);
    EXPECT(lw_wait(NULL) == LW_ERR_NULL && lw_start(NULL) == LW_ERR_NULL && lw_request_free(NULL) == LW_ERR_NULL);
    EXPECT(lw_iallreduce(comm, mine, sums, 1, LW_I32, 99, &none) == LW_ERR_OP && none == NULL);
    EXPECT(lw_iallreduce(comm, mine, sums, 1, LW_I32, LW_SUM, NULL) == LW_ERR_NULL);
    EXPECT(lw_ibcast(comm, mine, 1, LW_I32, P, &none) == LW_ERR_ROOT);
    EXPECT(lw_ibarrier(comm, &none) == LW_OK);
    EXPECT(lw_start(none) == LW_ERR_HANDLE);
    kept = none;
    EXPECT(lw_request_free(&none) == LW_OK && none == NULL);
    EXPECT(lw_wait(&kept) == LW_ERR_HANDLE);
    EXPECT(lw_comm_set_progress_thread(comm, 1) == LW_OK);
    EXPECT(lw_ibarrier(comm, &none) == LW_OK);
    usleep(1000);
    EXPECT(lw_wait(&none) == LW_OK && lw_comm_set_progress_thread(comm, 0) == LW_OK);
    return LW_OK;
}

/* Freed with a persistent call left. */
static lw_status freed(lw_comm *comm, void *arg) {
    (void)arg;
    lw_request *request = NULL;
    EXPECT(lw_comm_barrier_init(comm, &request) == LW_OK);
    EXPECT(lw_start(request) == LW_OK && lw_wait(&request) == LW_OK);
    EXPECT(lw_comm_free(comm) == LW_OK);
    EXPECT(lw_start(request) == LW_ERR_HANDLE);
    EXPECT(lw_request_free(&request) == LW_OK);
    return LW_OK;
}

static lw_status lost(lw_comm *comm, void *arg) {
    (void)arg;
    lw_request *request = NULL;
    if (lw_comm_rank(comm) == 1) return 77;
    EXPECT(lw_ibarrier(comm, &request) == LW_OK);
    EXPECT(lw_wait(&request) == LW_ERR_PEER && request == NULL);
    return LW_ERR_PEER;
}

int main(void) {
    for (int ranks = 1; ranks <= 4; ranks = 2 * ranks - ranks / 2)
        for (int persistent = 0; persistent < 2; persistent++)
            EXPECT(lw_team_threads(ranks, everything, &persistent) == LW_OK);
    EXPECT(lw_team_threads(2, freed, NULL) == LW_OK);
    EXPECT(lw_team_threads(3, lost, NULL) == 77);
    return 0;
}
