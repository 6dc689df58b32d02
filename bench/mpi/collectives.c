/*
 * Times collectives of an MPI, as `lineweave bench mpi` starts it: with and without lineweave before it.
 *
 *   collectives BUFFERS WINDOW_MS COLLECTIVE,.. BYTES,..
 *
 * Needs no header of an MPI: mpi/src/abi has what it uses. BUFFERS is `reuse`, the same buffers each time, `fresh`, a walk
 * over 16 MiB and at least four sets as an application does, or `worked`. Each answer is checked first. Then batches follow each other,
 * a barrier before each; a batch's time a call is the slowest rank's. Rank 0 prints a line a case: collective, bytes, and
 * the batches' ns a call.
 *
 * With `worked` the buffers are the same each time, and each rank works between two calls: it reads what it took, changes memory of its own,
 * and writes what it gives next. A call lasts from the arrival of the last rank to the leaving of the last, and a batch's time is the median of
 * its calls'.
 */
#define _GNU_SOURCE
#if defined(LWM_OPENMPI)
#include "abi/openmpi.h"
#define OBJECT(type, name) ((type)&name)
extern char LWM_COMM_WORLD, LWM_DOUBLE, LWM_BYTE, LWM_SUM, LWM_MAX;
#else
#if defined(LWM_MPICH)
#include "abi/mpich.h"
#else
#include "abi/standard.h"
#endif
#define OBJECT(type, number) ((type)(number))
#endif
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int MPI_Init(int *, char ***);
int MPI_Finalize(void);
int MPI_Abort(MPI_Comm, int);
int MPI_Comm_rank(MPI_Comm, int *);
int MPI_Comm_size(MPI_Comm, int *);
int MPI_Barrier(MPI_Comm);
int MPI_Bcast(void *, int, MPI_Datatype, int, MPI_Comm);
int MPI_Reduce(const void *, void *, int, MPI_Datatype, MPI_Op, int, MPI_Comm);
int MPI_Allreduce(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);
int MPI_Allgather(const void *, int, MPI_Datatype, void *, int, MPI_Datatype, MPI_Comm);
int MPI_Alltoall(const void *, int, MPI_Datatype, void *, int, MPI_Datatype, MPI_Comm);

static MPI_Comm world;
static MPI_Datatype real, byte;
static MPI_Op sum, maximum;
static int rank, ranks;

/* One set of buffers: what is given, what is taken. */
struct set { char *in, *out; };

enum kind { BARRIER, BCAST, REDUCE, ALLREDUCE, ALLGATHER, ALLTOALL, KINDS };
static const char *const names[KINDS] = {"barrier", "bcast", "reduce", "allreduce", "allgather", "alltoall"};

static int folds(enum kind kind) { return kind == REDUCE || kind == ALLREDUCE; }

static void call(enum kind kind, struct set set, size_t bytes)
{
    int n = (int)bytes, elements = (int)(bytes / 8);
    switch (kind) {
    case BARRIER: MPI_Barrier(world); break;
    case BCAST: MPI_Bcast(rank == 0 ? set.in : set.out, n, byte, 0, world); break;
    case REDUCE: MPI_Reduce(set.in, set.out, elements, real, sum, 0, world); break;
    case ALLREDUCE: MPI_Allreduce(set.in, set.out, elements, real, sum, world); break;
    case ALLGATHER: MPI_Allgather(set.in, n, byte, set.out, n, byte, world); break;
    default: MPI_Alltoall(set.in, n, byte, set.out, n, byte, world); break;
    }
}

/* Bytes given and taken. */
static size_t given(enum kind kind, size_t bytes) { return kind == ALLTOALL ? bytes * (size_t)ranks : bytes; }
static size_t taken(enum kind kind, size_t bytes) { return kind == ALLTOALL || kind == ALLGATHER ? bytes * (size_t)ranks : bytes; }

static char pattern(int from, int to, size_t i) { return (char)(from * 31 + to * 7 + (int)i); }

static void check(enum kind kind, struct set set, size_t bytes)
{
    int wrong = 0;
    if (folds(kind)) {
        double *in = (double *)set.in, *out = (double *)set.out;
        for (size_t i = 0; i < bytes / 8; i++) in[i] = (double)(rank + 1) * (double)(i % 7), out[i] = -1;
        call(kind, set, bytes);
        double all = (double)ranks * (ranks + 1) / 2;
        for (size_t i = 0; i < bytes / 8 && (rank == 0 || kind == ALLREDUCE); i++) wrong |= out[i] != all * (double)(i % 7);
    } else if (kind != BARRIER) {
        size_t blocks = given(kind, bytes) / (bytes ? bytes : 1);
        for (size_t j = 0; j < blocks; j++) {
            for (size_t i = 0; i < bytes; i++) set.in[j * bytes + i] = pattern(rank, (int)j, i);
        }
        memset(set.out, 1, taken(kind, bytes));
        call(kind, set, bytes);
        for (int r = 0; r < (kind == BCAST ? 1 : ranks); r++) {
            for (size_t i = 0; i < bytes && !(kind == BCAST && rank == 0); i++) {
                wrong |= set.out[(size_t)r * bytes + i] != pattern(r, kind == ALLTOALL ? rank : 0, i);
            }
        }
    }
    if (wrong) {
        fprintf(stderr, "collectives: %s of %zu bytes is wrong at rank %d\n", names[kind], bytes, rank);
        MPI_Abort(world, 3);
    }
}

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Memory that a rank changes between two calls: more than a first-level cache holds, and no more than a second-level one. */
static char own[256 << 10];
/* What was read last, so that reading is not left out. */
static volatile char seen;

/* Calls of a batch at most, and batches. */
enum { MOST_WORKED = 100, WORKED_BATCHES = 20 };

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Calls between other work. */
static double batch_worked(enum kind kind, struct set set, size_t bytes, int calls)
{
    static double at[2 * MOST_WORKED], last[2 * MOST_WORKED];
    static unsigned turn;
    MPI_Barrier(world);
    for (int i = 0; i < calls; i++) {
        char read = 0;
        for (size_t j = 0, out = taken(kind, bytes); j < out; j += 64) read ^= set.out[j];
        seen = read;
        for (size_t j = 0; j < sizeof own; j += 64) own[j] += (char)i;
        /* Numbers of ordinary size, as sums of what is not one may take longer. */
        double *in = (double *)set.in;
        turn++;
        for (size_t j = 0, n = given(kind, bytes) / 8; j < n; j++) in[j] = (double)(turn % 8);
        at[i] = now_ns();
        call(kind, set, bytes);
        at[calls + i] = now_ns();
    }
    MPI_Allreduce(at, last, 2 * calls, real, maximum, world);
    for (int i = 0; i < calls; i++) last[i] = last[calls + i] - last[i];
    qsort(last, (size_t)calls, sizeof *last, by_value);
    return (last[(calls - 1) / 2] + last[calls / 2]) / 2;
}

/* A batch's time a call, at the slowest rank. */
static double batch(enum kind kind, const struct set *sets, int many, int *next, size_t bytes, int calls)
{
    MPI_Barrier(world);
    double start = now_ns();
    for (int i = 0; i < calls; i++) {
        call(kind, sets[*next], bytes);
        if (++*next == many) *next = 0;
    }
    double mine = (now_ns() - start) / calls, slowest;
    MPI_Allreduce(&mine, &slowest, 1, real, maximum, world);
    return slowest;
}

enum ways { REUSE, FRESH, WORKED };

static void measure(enum kind kind, size_t bytes, enum ways ways, double window_ns)
{
    size_t in = given(kind, bytes), out = taken(kind, bytes), a_set = in + out + 128;
    int many = ways == FRESH ? (int)((16 << 20) / a_set) + 4 : 1, next = 0;
    if (many > 4096) many = 4096;
    struct set *sets = malloc(sizeof *sets * (size_t)many);
    for (int i = 0; sets && i < many; i++) {
        sets[i].in = aligned_alloc(64, (in + 127) / 64 * 64);
        sets[i].out = aligned_alloc(64, (out + 127) / 64 * 64);
        if (!sets[i].in || !sets[i].out) MPI_Abort(world, 4);
        memset(sets[i].in, 0, in);
        memset(sets[i].out, 0, out);
    }
    if (!sets) MPI_Abort(world, 4);
    check(kind, sets[0], bytes);
    /* Warm: enough calls for any library to settle on what it does, but not much more than half a second: lineweave has compared itself with
     * the MPI twice by then, and Intel MPI is slow until its cells have all been used once. */
    int warm = bytes < 17 << 10 ? 4600 : bytes < 900 << 10 ? (int)((75 << 20) / bytes) : 85;
    double once = 0, spent = 0;
    for (int done = 0, some; done < warm && spent < 5e8; done += some) {
        some = done == 0 ? 64 : 800;
        if (some > warm - done) some = warm - done;
        spent += batch(kind, sets, many, &next, bytes, some) * some;
    }
    /* As many as make a batch of a ms, by the fastest of some, since one interruption would make batches of few calls. */
    for (int i = 0; i < 3; i++) {
        double one = batch(kind, sets, many, &next, bytes, bytes >= 1 << 18 ? 4 : 20);
        once = i == 0 || one < once ? one : once;
    }
    int calls = (int)(1e6 / once);
    calls = calls < 2 ? 2 : calls > 10000 ? 10000 : calls;
    if (ways == WORKED && calls > MOST_WORKED) calls = MOST_WORKED;
    if (rank == 0) printf("%s %zu", names[kind], bytes);
    spent = 0;
    for (int i = 0; ways == WORKED ? i < WORKED_BATCHES : i < 200 && (i < 5 || spent < window_ns); i++) {
        double one = ways == WORKED ? batch_worked(kind, sets[0], bytes, calls) : batch(kind, sets, many, &next, bytes, calls);
        spent += one * calls;
        if (rank == 0) printf(" %.1f", one);
    }
    if (rank == 0) {
        printf("\n");
        fflush(stdout);
    }
    for (int i = 0; i < many; i++) {
        free(sets[i].in);
        free(sets[i].out);
    }
    free(sets);
}

/* Barriers until they have taken so long that lineweave has formed its team, which it does when calls have taken as long as a team costs. */
static void settle(void)
{
    struct set none = {NULL, NULL};
    int next = 0;
    for (double spent = 0; spent < 2e7; spent += batch(BARRIER, &none, 1, &next, 0, 1000) * 1000) continue;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    world = OBJECT(MPI_Comm, LWM_COMM_WORLD);
    real = OBJECT(MPI_Datatype, LWM_DOUBLE);
    byte = OBJECT(MPI_Datatype, LWM_BYTE);
    sum = OBJECT(MPI_Op, LWM_SUM);
    maximum = OBJECT(MPI_Op, LWM_MAX);
    MPI_Comm_rank(world, &rank);
    MPI_Comm_size(world, &ranks);
    if (argc != 5) {
        fprintf(stderr, "collectives: expected reuse, fresh or worked, a window in ms, collectives, sizes\n");
        MPI_Abort(world, 2);
    }
    enum ways ways = strcmp(argv[1], "fresh") == 0 ? FRESH : strcmp(argv[1], "worked") == 0 ? WORKED : REUSE;
    double window_ns = atof(argv[2]) * 1e6;
    settle();
    for (int kind = 0; kind < KINDS; kind++) {
        char *found = strstr(argv[3], names[kind]);
        /* `reduce` is part of `allreduce`. */
        while (found && found > argv[3] && found[-1] != ',') found = strstr(found + 1, names[kind]);
        if (!found) continue;
        char *list = strdup(argv[4]), *rest = list, *text;
        for (int first = 1; (text = strsep(&rest, ",")); first = 0) {
            size_t bytes = strtoull(text, NULL, 10);
            if (kind == BARRIER) {
                if (first) measure(kind, 0, ways == WORKED ? WORKED : REUSE, window_ns);
            } else if (!folds(kind) || bytes % 8 == 0) {
                measure(kind, bytes, ways, window_ns);
            }
        }
        free(list);
    }
    MPI_Finalize();
    return 0;
}
