/* Buffers in memory that all ranks share, among threads and between processes.
 * shared threads N | connect PATH N */
#include "expect.h"

static lw_status work(lw_comm *comm, void *unused) {
    int rank = lw_comm_rank(comm), size = lw_comm_size(comm);
    size_t n = 30001;
    double *in, *out;
    void *none = &none, *more;
    (void)unused;
    WORKS(lw_alloc(comm, n * sizeof *in, (void **)&in));
    WORKS(lw_alloc(comm, n * sizeof *out, (void **)&out));
    WORKS(lw_alloc(comm, 0, &none));
    EXPECT_AT(none == NULL && (size_t)in % 4096 == 0);
    for (size_t i = 0; i < n; i++) {
        EXPECT_AT(in[i] == 0);
        in[i] = (double)(rank + 1) * (double)i;
    }
    double ranks = (double)size * (size + 1) / 2;
    WORKS(lw_allreduce(comm, in, out, n, LW_F64, LW_SUM));
    for (size_t i = 0; i < n; i++) EXPECT_AT(out[i] == ranks * (double)i);
    WORKS(lw_allreduce(comm, LW_IN_PLACE, in, n, LW_F64, LW_SUM));
    for (size_t i = 0; i < n; i++) EXPECT_AT(in[i] == ranks * (double)i);
    /* One rank's buffer is its own. */
    double *own = malloc(n * sizeof *own);
    WORKS(lw_comm_set_shared_buffers(comm, 0));
    WORKS(lw_comm_set_shared_buffers(comm, 1));
    WORKS(lw_bcast(comm, rank == size - 1 ? own : in, n, LW_F64, 0));
    for (size_t i = 0; i < n && size > 1; i++) EXPECT_AT((rank == size - 1 ? own : in)[i] == ranks * (double)i);
    free(own);
    EXPECT_AT(lw_alloc(comm, (size_t)1 << 60, &more) == LW_ERR_MEMORY);
    EXPECT_AT(strstr(lw_last_error(), "available") != NULL);
    EXPECT_AT(lw_alloc(comm, SIZE_MAX, &more) == LW_ERR_MEMORY);
    EXPECT_AT(size > 1 || lw_alloc(comm, 8, NULL) == LW_ERR_NULL);
    EXPECT_AT(lw_free(in + 1) == LW_ERR_BUFFER);
    WORKS(lw_free(in));
    EXPECT_AT(lw_free(in) == LW_ERR_BUFFER);
    WORKS(lw_free(NULL));
    WORKS(lw_comm_free(comm));
    out[n - 1] = 3;
    WORKS(lw_free(out));
    return LW_OK;
}

int main(int argc, char **argv) { return run_team(argc, argv, work); }
