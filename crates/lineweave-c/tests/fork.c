/* A child of fork() that goes on using its parent's communicator is refused, and disturbs nobody. */
#include "expect.h"

enum { CALLS = 20 };

static void child(lw_comm *comm, lw_request *started) {
    double a = 1000, b = 0;
    int done = 0;
    for (int i = 0; i < 3; i++) {
        EXPECT(lw_allreduce(comm, &a, &b, 1, LW_F64, LW_SUM) == LW_ERR_FORKED);
        EXPECT(lw_barrier(comm) == LW_ERR_FORKED);
        EXPECT(lw_send(comm, &a, 1, LW_F64, 1, 3) == LW_ERR_FORKED);
    }
    EXPECT(b == 0);
    /* It may have been over before the fork. */
    lw_status ended = lw_test(&started, &done);
    EXPECT(ended == LW_ERR_FORKED || (ended == LW_OK && done));
    EXPECT(lw_comm_free(comm) == LW_OK);
    _exit(0);
}

int main(void) {
    lw_comm *comm;
    lw_request *started = NULL;
    EXPECT(lw_comm_from_env(&comm) == LW_OK);
    int rank = lw_comm_rank(comm), size = lw_comm_size(comm);
    double a = rank + 1, b = 0, sum = size * (size + 1) / 2.0, begun = 0;
    /* The calls that come again take a shorter way: the child shall not. */
    for (int i = 0; i < CALLS; i++) {
        EXPECT(lw_barrier(comm) == LW_OK);
        EXPECT(lw_allreduce(comm, &a, &b, 1, LW_F64, LW_SUM) == LW_OK && b == sum);
    }
    EXPECT(lw_iallreduce(comm, &a, &begun, 1, LW_F64, LW_SUM, &started) == LW_OK);
    if (rank == 0) {
        int status = 1;
        pid_t pid = fork();
        if (pid == 0) child(comm, started);
        EXPECT(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
    }
    EXPECT(lw_wait(&started) == LW_OK && begun == sum);
    for (int i = 0; i < CALLS; i++) {
        EXPECT(lw_allreduce(comm, &a, &b, 1, LW_F64, LW_SUM) == LW_OK && b == sum);
        EXPECT(lw_barrier(comm) == LW_OK);
    }
    EXPECT(lw_comm_free(comm) == LW_OK);
    return 0;
}
