/* A rank of a team that loses one of its ranks: tests/faults/losing.rs of the crate lineweave says what it is asked to do. */
#include "expect.h"

enum { LARGEST = 60000, MOST_RANKS = 8, GUARD = 8 };
static const uint32_t mark = 0xdeadbeef;
static const size_t lengths[3] = {1, 3000, LARGEST};

static int rank, size;
static uint64_t flags;

/* Buffers between guards. */
static uint32_t in_[LARGEST + 2 * GUARD], out_[LARGEST + 2 * GUARD], all_[LARGEST * MOST_RANKS + 2 * GUARD];

static uint32_t *guarded(uint32_t *buffer, size_t count, uint32_t value) {
    for (size_t i = 0; i < count + 2 * GUARD; i++) buffer[i] = i < GUARD || i >= GUARD + count ? mark : value;
    return buffer + GUARD;
}

static void check(const uint32_t *buffer, size_t count) {
    for (size_t i = 0; i < GUARD; i++) EXPECT(buffer[i] == mark && buffer[GUARD + count + i] == mark);
}

static lw_status call(lw_comm *comm, int kind, int root, size_t count) {
    int next = (rank + 1) % size, last = (rank + size - 1) % size, done = 0;
    uint32_t *in = guarded(in_, count, 1), *out = guarded(out_, count, 0), *all = guarded(all_, count * size, 2);
    size_t received;
    lw_request *first = NULL, *second = NULL;
    lw_status status;
    switch (kind) {
    case 0: status = lw_barrier(comm); break;
    case 1: status = lw_bcast(comm, in, count, LW_U32, root); break;
    case 2: status = lw_allreduce(comm, in, out, count, LW_U32, LW_SUM); break;
    case 3: status = lw_reduce(comm, in, out, count, LW_U32, LW_SUM, root); break;
    case 4: status = lw_allgather(comm, in, all, count, LW_U32); break;
    case 5: status = lw_alltoall(comm, LW_IN_PLACE, all, count, LW_U32); break;
    case 6: status = lw_sendrecv(comm, in, count, next, 1, out, count, last, 1, LW_U32, &received); break;
    case 7: /* Two at once, one of which is waited for by tests. */
        status = lw_iallreduce(comm, LW_IN_PLACE, in, count, LW_U32, LW_SUM, &first);
        if (status != LW_OK) break;
        status = lw_ibcast(comm, out, count, LW_U32, root, &second);
        while (status == LW_OK && !done) status = lw_test(&first, &done);
        for (lw_request **r = (lw_request *[]){first, second}, **end = r + 2; r < end; r++) {
            lw_status over = *r ? lw_wait(r) : LW_OK;
            if (status == LW_OK) status = over;
        }
        break;
    default:
        flags++;
        status = lw_flag_set(comm, next, 0, flags);
        if (status == LW_OK) status = lw_flag_wait(comm, 0, flags);
    }
    check(in_, count), check(out_, count), check(all_, count * size);
    if (status == LW_OK && kind == 2)
        for (size_t i = 0; i < count; i++) EXPECT(out[i] == (uint32_t)size);
    return status;
}

static void *ends(void *microseconds) {
    usleep(*(useconds_t *)microseconds);
    _exit(0);
}

/* The generator of losing.rs: all ranks draw the same numbers. */
static uint64_t below(uint64_t *state, uint64_t n) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (*state >> 33) % n;
}

int main(void) {
    char does[16];
    unsigned long when, seed, kinds;
    const char *asked = getenv("FAULTS_TEST_JOB");
    EXPECT(asked && sscanf(asked, "%15s %lu %lu %lu", does, &when, &seed, &kinds) == 4);
    lw_comm *comm;
    EXPECT(lw_comm_from_env(&comm) == LW_OK);
    rank = lw_comm_rank(comm), size = lw_comm_size(comm);
    EXPECT(size <= MOST_RANKS && lw_window_create(comm, 64) == LW_OK);
    /* Making and proving plans is over before time is taken. */
    for (unsigned long kind = 0; kind < kinds; kind++)
        for (int i = 0; i < 6; i++) EXPECT(call(comm, kind, i % 2 * (size - 1), lengths[i / 2]) == LW_OK);
    printf("ready\n"), fflush(stdout);
    useconds_t microseconds = when;
    pthread_t thread;
    if (strcmp(does, "exit") == 0) EXPECT(pthread_create(&thread, NULL, ends, &microseconds) == 0);
    uint64_t random = seed ^ 0x5eed;
    for (unsigned long i = 0;; i++) {
        if (i == when && strcmp(does, "panic") == 0) abort();
        if (i == when && strcmp(does, "leave") == 0) return lw_comm_free(comm);
        int root = (size - 1) * below(&random, 2);
        size_t count = lengths[below(&random, 3)];
        lw_status status = call(comm, below(&random, kinds), root, count);
        if (status == LW_OK) continue;
        printf("%s\n", lw_last_error());
        return lw_comm_free(comm) != LW_OK || status != LW_ERR_PEER;
    }
}
