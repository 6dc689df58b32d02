/* Types and operators beyond numbers, operators of the program, reproducible results, and messages.
 * operators threads N | env */
#include "expect.h"
#include <complex.h>
#include <stdbool.h>

struct float_int { float value; int index; };
struct double_int { double value; int index; };
struct long_int { long value; int index; };
struct two_int { int value; int index; };
struct short_int { short value; int index; };

#define SEARCH(name, lw)                                                                  \
    do {                                                                                  \
        struct name in[3] = {{(rank == size - 1) ? -5 : 1, rank}, {7, 100 - rank}, {rank % 3, rank}}, out[3]; \
        WORKS(lw_allreduce(comm, in, out, 3, lw, LW_MINLOC));                             \
        EXPECT_AT(out[0].value == -5 && out[0].index == size - 1);                           \
        EXPECT_AT(out[1].value == 7 && out[1].index == 101 - size);                          \
        EXPECT_AT(out[2].value == 0 && out[2].index == 0);                                   \
        WORKS(lw_reduce(comm, in, out, 3, lw, LW_MAXLOC, size - 1));                      \
        EXPECT_AT(rank != size - 1 || (out[2].value == (size < 3 ? size - 1 : 2) && out[2].index == out[2].value)); \
    } while (0)

static void types(lw_comm *comm) {
    int rank = lw_comm_rank(comm), size = lw_comm_size(comm);
    SEARCH(float_int, LW_FLOAT_INT);
    SEARCH(double_int, LW_DOUBLE_INT);
    SEARCH(long_int, LW_LONG_INT);
    SEARCH(two_int, LW_2INT);
    SEARCH(short_int, LW_SHORT_INT);
    float complex f[2] = {rank + 1.0f * I, 1.0f * I}, fout[2];
    WORKS(lw_allreduce(comm, f, fout, 2, LW_COMPLEX_F32, LW_SUM));
    EXPECT_AT(crealf(fout[0]) == size * (size - 1) / 2 && cimagf(fout[0]) == size);
    double complex d = I, dout, power = 1;
    for (int r = 0; r < size; r++) power *= I;
    WORKS(lw_allreduce(comm, &d, &dout, 1, LW_COMPLEX_F64, LW_PROD));
    EXPECT_AT(creal(dout) == creal(power) && cimag(dout) == cimag(power));
    bool b[2] = {rank == 0, true}, bout[2];
    WORKS(lw_allreduce(comm, b, bout, 2, LW_BOOL, LW_LOR));
    EXPECT_AT(bout[0] && bout[1]);
    WORKS(lw_allreduce(comm, b, bout, 2, LW_BOOL, LW_LAND));
    EXPECT_AT(bout[0] == (size == 1) && bout[1]);
}

/* Maps x -> m x + c, one applied after the other: associative, and not commutative. */
struct map { uint32_t m, c; uint32_t unused; };

static void compose(const void *in, void *inout, size_t len, size_t size, void *arg) {
    const struct map *first = in;
    struct map *then = inout;
    if (size != sizeof *first) abort();
    __atomic_add_fetch((long *)arg, (long)len, __ATOMIC_RELAXED);
    for (size_t i = 0; i < len; i++) {
        then[i].c += then[i].m * first[i].c;
        then[i].m *= first[i].m;
    }
}

static struct map map_of(int r, size_t i) { return (struct map){2 * (uint32_t)r + 3, (uint32_t)i % 97 + (uint32_t)r, 0}; }

static struct map composed(int from, int to, size_t i) {
    struct map all = {1, 0, 0};
    long unused = 0;
    for (int r = from; r < to; r++) {
        struct map next = map_of(r, i);
        compose(&all, &next, 1, sizeof all, &unused);
        all = next;
    }
    return all;
}

static bool same(struct map a, struct map b) { return a.m == b.m && a.c == b.c; }

static void own(lw_comm *comm, size_t n, int extra) {
    int rank = lw_comm_rank(comm), size = lw_comm_size(comm);
    long combined = 0;
    lw_op made, op;
    WORKS(lw_op_create(compose, 0, &combined, &made));
    op = made | extra;
    const lw_type type = LW_BYTES(sizeof(struct map));
    struct map *in = malloc(n * sizeof *in), *out = malloc(n * sizeof *out);
    for (size_t i = 0; i < n; i++) in[i] = map_of(rank, i);
    WORKS(lw_allreduce(comm, in, out, n, type, op));
    for (size_t i = 0; i < n; i++) EXPECT_AT(same(out[i], composed(0, size, i)));
    for (int root = 0; root < size; root++) {
        WORKS(lw_reduce(comm, in, rank == root ? out : NULL, n, type, op, root));
        for (size_t i = 0; rank == root && i < n; i++) EXPECT_AT(same(out[i], composed(0, size, i)));
    }
    WORKS(lw_scan(comm, in, out, n, type, op));
    for (size_t i = 0; i < n; i++) EXPECT_AT(same(out[i], composed(0, rank + 1, i)));
    WORKS(lw_exscan(comm, in, out, n, type, op));
    for (size_t i = 0; rank > 0 && i < n; i++) EXPECT_AT(same(out[i], composed(0, rank, i)));
    size_t block = n / (size_t)size;
    WORKS(lw_reduce_scatter_block(comm, in, out, block, type, op));
    for (size_t i = 0; i < block; i++) EXPECT_AT(same(out[i], composed(0, size, block * (size_t)rank + i)));
    EXPECT_AT(size == 1 || combined > 0);
    WORKS(lw_barrier(comm));
    WORKS(lw_op_free(made));
    free(in);
    free(out);
}

/* The brackets of reproducible results, spelled out. */
static double fixed(int from, int to, size_t i);
static double part(int r, size_t i) { return ((r + i) % 2 ? -1e16 : 1e16) + 3.0 * r + (double)(i % 7); }
static double fixed(int from, int to, size_t i) {
    int n = to - from, left = 1;
    if (n == 1) return part(from, i);
    while (2 * left < n) left *= 2;
    return fixed(from, from + left, i) + fixed(from + left, to, i);
}

static void reproducible(lw_comm *comm, size_t n) {
    int rank = lw_comm_rank(comm), size = lw_comm_size(comm);
    double *in = malloc(n * sizeof *in), *out = malloc(n * sizeof *out);
    for (size_t i = 0; i < n; i++) in[i] = part(rank, i);
    for (int way = 0; way < 2; way++) {
        lw_op op = LW_SUM | (way == 0 ? LW_REPRODUCIBLE : 0);
        WORKS(lw_comm_set_reproducible(comm, way));
        WORKS(lw_allreduce(comm, in, out, n, LW_F64, op));
        for (size_t i = 0; i < n; i++) EXPECT_AT(out[i] == fixed(0, size, i));
        WORKS(lw_reduce(comm, in, out, n, LW_F64, op, size / 2));
        for (size_t i = 0; rank == size / 2 && i < n; i++) EXPECT_AT(out[i] == fixed(0, size, i));
        WORKS(lw_scan(comm, in, out, n, LW_F64, op));
        for (size_t i = 0; i < n; i++) EXPECT_AT(out[i] == fixed(0, rank + 1, i));
    }
    WORKS(lw_comm_set_reproducible(comm, 0));
    free(in);
    free(out);
}

static void messages(lw_comm *comm, size_t n) {
    int rank = lw_comm_rank(comm), size = lw_comm_size(comm);
    int next = (rank + 1) % size, last = (rank + size - 1) % size;
    int32_t *in = malloc((n + 1) * sizeof *in), *out = malloc((n + 1) * sizeof *out);
    size_t got = 0;
    for (size_t i = 0; i < n; i++) in[i] = rank * 1000003 + (int32_t)i;
    WORKS(lw_sendrecv(comm, in, n, next, 4, out, n + 1, last, 4, LW_I32, &got));
    EXPECT_AT(got == n);
    for (size_t i = 0; i < n; i++) EXPECT_AT(out[i] == last * 1000003 + (int32_t)i);
    if (size > 1 && rank == 0) {
        for (uint32_t tag = 0; tag < 3; tag++) WORKS(lw_send(comm, in, n < 500 ? n : 500, LW_I32, 1, tag));
    } else if (rank == 1) {
        for (uint32_t tag = 3; tag-- > 0;) {
            WORKS(lw_recv(comm, out, n, LW_I32, 0, tag, &got));
            EXPECT_AT(got == (n < 500 ? n : 500));
            for (size_t i = 0; i < got; i++) EXPECT_AT(out[i] == (int32_t)i);
        }
    }
    WORKS(lw_window_create(comm, 64));
    WORKS(lw_put(comm, next, 8, &rank, sizeof rank));
    WORKS(lw_flag_set(comm, next, 3, n));
    WORKS(lw_flag_wait(comm, 3, n));
    int there = -1;
    WORKS(lw_get(comm, rank, 8, &there, sizeof there));
    EXPECT_AT(there == last);
    EXPECT_AT(lw_put(comm, next, 61, &rank, sizeof rank) == LW_ERR_COUNT);
    WORKS(lw_barrier(comm));
    EXPECT_AT(lw_send(comm, in, n, LW_I32, size, 0) == LW_ERR_RANK);
    EXPECT_AT(lw_recv(comm, in, n, LW_I32, -1, 0, NULL) == LW_ERR_RANK);
    WORKS(lw_send(comm, in, 1, LW_I32, rank, 0));
    EXPECT_AT(lw_recv(comm, out, 0, LW_I32, rank, 0, &got) == LW_ERR_TRUNCATED);
    WORKS(lw_barrier(comm));
    free(in);
    free(out);
}

static lw_status everything(lw_comm *comm, void *arg) {
    (void)arg;
    types(comm);
    own(comm, 1, 0);
    own(comm, 20, LW_REPRODUCIBLE);
    own(comm, 3000, 0);
    own(comm, 100000, LW_REPRODUCIBLE);
    reproducible(comm, 1);
    reproducible(comm, 3000);
    reproducible(comm, 300000);
    messages(comm, 1);
    messages(comm, 3000);
    messages(comm, 300000);
    return LW_OK;
}

int main(int argc, char **argv) { return run_team(argc, argv, everything); }
