/* What is refused, and with which number. */
#include "expect.h"

#define REFUSED(call, status)                                  \
    do {                                                       \
        int found = (call);                                    \
        if (found != (status))                                 \
            fprintf(stderr, "found %s\n", lw_strerror(found)); \
        EXPECT(found == (status));                             \
        EXPECT(strlen(lw_last_error()) > 10);                  \
    } while (0)

static lw_comm *reentered;
static int reentry = LW_OK;
static void reenter(void *arg) {
    (void)arg;
    reentry = lw_barrier(reentered);
    EXPECT(lw_comm_rank(reentered) == 1);
}

static void nothing(const void *in, void *inout, size_t len, size_t size, void *arg) {
    (void)in, (void)inout, (void)len, (void)size, (void)arg;
}

static lw_status arguments(lw_comm *comm, void *arg) {
    (void)arg;
    int rank = lw_comm_rank(comm);
    int32_t in[8] = {0}, out[8] = {0};
    size_t counts[2] = {1, 2}, huge[2] = {SIZE_MAX, 2};
    /* Every rank is refused, before anything is exchanged. */
    REFUSED(lw_allreduce(comm, NULL, out, 1, LW_I32, LW_SUM), LW_ERR_NULL);
    REFUSED(lw_allreduce(comm, in, NULL, 1, LW_I32, LW_SUM), LW_ERR_NULL);
    REFUSED(lw_allreduce(comm, (char *)in + 1, out, 1, LW_I32, LW_SUM), LW_ERR_ALIGN);
    REFUSED(lw_allreduce(comm, in, out, SIZE_MAX / 4, LW_I32, LW_SUM), LW_ERR_COUNT);
    REFUSED(lw_allgather(comm, in, out, SIZE_MAX / 12, LW_I32), LW_ERR_COUNT);
    REFUSED(lw_allreduce(comm, in, out, 1, 20, LW_SUM), LW_ERR_TYPE);
    REFUSED(lw_allreduce(comm, in, out, 1, LW_BYTES(0), LW_SUM), LW_ERR_TYPE);
    REFUSED(lw_allreduce(comm, in, out, 1, -1, LW_SUM), LW_ERR_TYPE);
    REFUSED(lw_allreduce(comm, in, out, 1, LW_I32, 13), LW_ERR_OP);
    REFUSED(lw_allreduce(comm, in, out, 1, LW_I32, LW_MINLOC), LW_ERR_OP);
    REFUSED(lw_allreduce(comm, in, out, 1, LW_BYTES(4), LW_SUM), LW_ERR_OP);
    REFUSED(lw_allreduce(comm, in, out, 1, LW_I32, -1), LW_ERR_OP);
    REFUSED(lw_allreduce(comm, in, out, 1, LW_F32, LW_BXOR), LW_ERR_OP);
    REFUSED(lw_bcast(comm, in, 1, LW_I32, 2), LW_ERR_ROOT);
    REFUSED(lw_bcast(comm, in, 1, LW_I32, -1), LW_ERR_ROOT);
    REFUSED(lw_bcast(comm, LW_IN_PLACE, 1, LW_I32, 0), LW_ERR_BUFFER);
    REFUSED(lw_allreduce(comm, in, in + 1, 2, LW_I32, LW_SUM), LW_ERR_BUFFER);
    REFUSED(lw_allreduce(comm, LW_IN_PLACE, LW_IN_PLACE, 2, LW_I32, LW_SUM), LW_ERR_BUFFER);
    REFUSED(lw_allreduce(comm, in, LW_IN_PLACE, 2, LW_I32, LW_SUM), LW_ERR_BUFFER);
    REFUSED(lw_reduce(comm, LW_IN_PLACE, out, 1, LW_I32, LW_SUM, 1 - rank), LW_ERR_BUFFER);
    REFUSED(lw_scatter(comm, in, LW_IN_PLACE, 1, LW_I32, 1 - rank), LW_ERR_BUFFER);
    REFUSED(lw_allgatherv(comm, in, out, NULL, LW_I32), LW_ERR_NULL);
    REFUSED(lw_allgatherv(comm, in, out, huge, LW_I32), LW_ERR_COUNT);
    REFUSED(lw_alltoallv(comm, in, huge, out, counts, LW_I32), LW_ERR_COUNT);
    REFUSED(lw_alltoallv(comm, in, counts, NULL, counts, LW_I32), LW_ERR_NULL);
    /* Displacements that make input and output overlap: neither apart, nor in place. */
    size_t pairs[2] = {(size_t)rank + 1, (size_t)rank + 2};
    REFUSED(lw_allgatherv(comm, in + 2, in, counts, LW_I32), LW_ERR_BUFFER);
    REFUSED(lw_reduce_scatter(comm, in, in + 1, counts, LW_I32, LW_SUM), LW_ERR_BUFFER);
    REFUSED(lw_alltoallv(comm, in, pairs, in + 1, pairs, LW_I32), LW_ERR_BUFFER);
    /* What a negative number becomes. */
    const size_t minus = (size_t)-1;
    REFUSED(lw_bcast(comm, in, minus, LW_I32, 0), LW_ERR_COUNT);
    REFUSED(lw_reduce(comm, in, out, minus, LW_I32, LW_SUM, 0), LW_ERR_COUNT);
    REFUSED(lw_gather(comm, in, out, minus, LW_U8, 0), LW_ERR_COUNT);
    REFUSED(lw_scatter(comm, in, out, minus, LW_U8, 0), LW_ERR_COUNT);
    REFUSED(lw_scan(comm, in, out, minus / 2, LW_F64, LW_SUM), LW_ERR_COUNT);
    REFUSED(lw_exscan(comm, in, out, minus, LW_F64, LW_SUM), LW_ERR_COUNT);
    REFUSED(lw_reduce_scatter_block(comm, in, out, minus / 4, LW_I32, LW_SUM), LW_ERR_COUNT);
    REFUSED(lw_alltoall(comm, in, out, minus / 8, LW_I32), LW_ERR_COUNT);
    REFUSED(lw_send(comm, in, minus, LW_I32, 0, 0), LW_ERR_COUNT);
    lw_request *request = NULL;
    REFUSED(lw_iallreduce(comm, in, out, minus, LW_I32, LW_SUM, &request), LW_ERR_COUNT);
    REFUSED(lw_iallreduce(comm, in, out, 1, LW_I32, LW_SUM, NULL), LW_ERR_NULL);
    REFUSED(lw_iallreduce(comm, in, out, 1, LW_F64, LW_BAND, &request), LW_ERR_OP);
    REFUSED(lw_alltoall(comm, in, (char *)in + 4, 2, LW_I32), LW_ERR_BUFFER);
    lw_op op;
    REFUSED(lw_op_create(NULL, 1, NULL, &op), LW_ERR_NULL);
    REFUSED(lw_op_create(nothing, 1, NULL, NULL), LW_ERR_NULL);
    EXPECT(lw_op_create(nothing, 1, NULL, &op) == LW_OK);
    EXPECT(lw_allreduce(comm, in, out, 1, LW_BYTES(4), op) == LW_OK);
    EXPECT(lw_barrier(comm) == LW_OK);
    EXPECT(lw_op_free(op) == LW_OK);
    REFUSED(lw_op_free(op), LW_ERR_OP);
    REFUSED(lw_op_free(LW_SUM), LW_ERR_OP);
    REFUSED(lw_allreduce(comm, in, out, 1, LW_BYTES(4), op), LW_ERR_OP);
    REFUSED(lw_allreduce(comm, in, out, 1, LW_BYTES(4), op | LW_REPRODUCIBLE), LW_ERR_OP);
    REFUSED(lw_comm_set_reproducible(NULL, 1), LW_ERR_NULL);
    /* No elements: buffers may be anything. */
    EXPECT(lw_allreduce(comm, NULL, NULL, 0, LW_I32, LW_SUM) == LW_OK);
    /* The communicator still works. */
    EXPECT(lw_allreduce(comm, in, out, 8, LW_I32, LW_SUM) == LW_OK);

    if (rank == 1) {
        reentered = comm;
        EXPECT(lw_comm_set_progress(comm, reenter, NULL) == LW_OK);
    } else {
        usleep(20000);
    }
    EXPECT(lw_barrier(comm) == LW_OK);
    EXPECT(rank == 0 || reentry == LW_ERR_BUSY);
    EXPECT(lw_comm_set_progress(comm, NULL, NULL) == LW_OK);
    return LW_OK;
}

static lw_status one_gives_up(lw_comm *comm, void *arg) {
    (void)arg;
    if (lw_comm_rank(comm) == 1) return 77;
    REFUSED(lw_barrier(comm), LW_ERR_PEER);
    REFUSED(lw_barrier(comm), LW_ERR_FAILED);
    return LW_ERR_PEER;
}

static lw_status freed_early(lw_comm *comm, void *arg) {
    (void)arg;
    EXPECT(lw_barrier(comm) == LW_OK);
    EXPECT(lw_comm_free(comm) == LW_OK);
    REFUSED(lw_barrier(comm), LW_ERR_HANDLE);
    REFUSED(lw_comm_free(comm), LW_ERR_HANDLE);
    lw_comm *copy = NULL;
    lw_request *request = NULL;
    int32_t word = 0;
    REFUSED(lw_comm_dup(comm, &copy), LW_ERR_HANDLE);
    REFUSED(lw_ibarrier(comm, &request), LW_ERR_HANDLE);
    REFUSED(lw_send(comm, &word, 1, LW_I32, 0, 0), LW_ERR_HANDLE);
    EXPECT(lw_comm_rank(comm) == -1 && lw_comm_size(comm) == -1);
    return LW_OK;
}

static lw_status mismatched(lw_comm *comm, void *arg) {
    (void)arg;
    int32_t in[2] = {0}, out[2];
    int status = lw_allreduce(comm, in, out, 1 + (size_t)lw_comm_rank(comm), LW_I32, LW_SUM);
    return status == LW_ERR_MISMATCH ? LW_OK : 78;
}

/* A rank that cannot go on, and one that never comes, are waited for neither by the host nor by the others. */
static void peers(void) {
    char name[64];
    lw_comm *comm = NULL;
    int status = 0;
    snprintf(name, sizeof name, "@lw-errors-%d", (int)getpid());
    pid_t host = fork();
    if (host == 0) {
        setenv("LINEWEAVE_WAIT", "never", 1);
        _exit(lw_comm_connect(name, 0, 2, &comm) != LW_ERR_ENVIRONMENT);
    }
    REFUSED(lw_comm_connect(name, 1, 2, &comm), LW_ERR_SYSTEM);
    EXPECT(strstr(lw_last_error(), "its host cannot go on"));
    EXPECT(waitpid(host, &status, 0) == host && status == 0);
    setenv("LINEWEAVE_TIMEOUT", "0.1", 1);
    REFUSED(lw_comm_connect(name, 1, 2, &comm), LW_ERR_SYSTEM);
    REFUSED(lw_comm_connect(name, 0, 2, &comm), LW_ERR_TIMEOUT);
    unsetenv("LINEWEAVE_TIMEOUT");
}

int main(void) {
    lw_comm *comm = NULL;
    lw_team *team = NULL;
    union {
        uint64_t words[8];
        char bytes[64];
    } junk;
    memset(&junk, 0, sizeof junk);

    EXPECT(lw_version() == LW_VERSION);
    EXPECT(lw_check_version(LW_VERSION) == LW_OK);
    REFUSED(lw_check_version(LW_VERSION + 0x100), LW_ERR_VERSION);
    REFUSED(lw_barrier(NULL), LW_ERR_NULL);
    REFUSED(lw_barrier((lw_comm *)junk.words), LW_ERR_HANDLE);
    REFUSED(lw_barrier((lw_comm *)(junk.bytes + 1)), LW_ERR_HANDLE);
    EXPECT(lw_comm_free(NULL) == LW_OK && lw_team_free(NULL) == LW_OK);
    EXPECT(lw_comm_rank(NULL) == -1);

    REFUSED(lw_team_threads(0, arguments, NULL), LW_ERR_SIZE);
    REFUSED(lw_team_threads(-3, arguments, NULL), LW_ERR_SIZE);
    REFUSED(lw_team_threads(1 << 30, arguments, NULL), LW_ERR_SIZE);
    REFUSED(lw_team_threads(2, NULL, NULL), LW_ERR_NULL);
    EXPECT(lw_team_threads(2, arguments, NULL) == LW_OK);
    REFUSED(lw_team_threads(3, one_gives_up, NULL), 77);
    EXPECT(lw_team_threads(2, freed_early, NULL) == LW_OK);
    setenv("LINEWEAVE_CHECK", "1", 1);
    EXPECT(lw_team_threads(2, mismatched, NULL) == LW_OK);

    REFUSED(lw_team_create(2, NULL), LW_ERR_NULL);
    EXPECT(lw_team_create(1, &team) == LW_OK);
    REFUSED(lw_team_join(team, 1, &comm), LW_ERR_RANK);
    REFUSED(lw_team_join(team, -1, &comm), LW_ERR_RANK);
    REFUSED(lw_team_join(NULL, 0, &comm), LW_ERR_NULL);
    EXPECT(lw_team_join(team, 0, &comm) == LW_OK);
    lw_comm *again = NULL;
    REFUSED(lw_team_join(team, 0, &again), LW_ERR_RANK);
    EXPECT(lw_team_free(team) == LW_OK);
    REFUSED(lw_team_free(team), LW_ERR_HANDLE);
    REFUSED(lw_team_join(team, 0, &again), LW_ERR_HANDLE);
    EXPECT(lw_barrier(comm) == LW_OK);
    EXPECT(lw_comm_free(comm) == LW_OK);

    unsetenv("LINEWEAVE_TEAM_FD");
    REFUSED(lw_comm_from_env(&comm), LW_ERR_ENVIRONMENT);
    REFUSED(lw_comm_connect(NULL, 0, 1, &comm), LW_ERR_NULL);
    REFUSED(lw_comm_connect("@lw-errors", 2, 2, &comm), LW_ERR_RANK);
    REFUSED(lw_comm_connect("@lw-errors", 0, 0, &comm), LW_ERR_SIZE);
    REFUSED(lw_comm_connect("/nonexistent/socket", 0, 1, &comm), LW_ERR_SYSTEM);
    setenv("LINEWEAVE_TIMEOUT", "no time", 1);
    REFUSED(lw_team_create(2, &team), LW_ERR_ENVIRONMENT);
    unsetenv("LINEWEAVE_TIMEOUT");
    peers();

    lw_barrier_t barrier;
    memset(&barrier, 0, sizeof barrier);
    REFUSED(lw_barrier_wait(&barrier), LW_ERR_HANDLE);
    REFUSED(lw_barrier_init(&barrier, 0), LW_ERR_SIZE);
    REFUSED(lw_barrier_init(NULL, 1), LW_ERR_NULL);
    EXPECT(lw_barrier_init(&barrier, 1) == LW_OK);
    EXPECT(lw_barrier_wait(&barrier) == LW_BARRIER_SERIAL_THREAD);
    REFUSED(lw_barrier_wait_at(&barrier, 1), LW_ERR_RANK);
    EXPECT(lw_barrier_destroy(&barrier) == LW_OK);
    REFUSED(lw_barrier_wait(&barrier), LW_ERR_HANDLE);
    REFUSED(lw_barrier_destroy(&barrier), LW_ERR_HANDLE);
    return 0;
}
