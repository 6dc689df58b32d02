/*
 * Collectives of an MPI without its header, each with its answer checked: what collectives.c and channel.c time. mpi/src/abi has what is used.
 */
#ifndef LWM_CALLS_H
#define LWM_CALLS_H
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

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Returns the median of `n` values, which it sorts. */
static double median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, by_value);
    return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

/* Starts MPI and sets what the calls use. */
static void start_mpi(int *argc, char ***argv)
{
    MPI_Init(argc, argv);
    world = OBJECT(MPI_Comm, LWM_COMM_WORLD);
    real = OBJECT(MPI_Datatype, LWM_DOUBLE);
    byte = OBJECT(MPI_Datatype, LWM_BYTE);
    sum = OBJECT(MPI_Op, LWM_SUM);
    maximum = OBJECT(MPI_Op, LWM_MAX);
    MPI_Comm_rank(world, &rank);
    MPI_Comm_size(world, &ranks);
}

/* Makes the buffers of one set, all of them touched. */
static struct set make_set(size_t in, size_t out)
{
    struct set set = {aligned_alloc(64, (in + 127) / 64 * 64), aligned_alloc(64, (out + 127) / 64 * 64)};
    if (!set.in || !set.out) MPI_Abort(world, 4);
    memset(set.in, 0, in);
    memset(set.out, 0, out);
    return set;
}

static void give_back(struct set set)
{
    free(set.in);
    free(set.out);
}

/* Begins a line of rank 0's output. */
static void begin_line(const char *before, const char *name, size_t bytes)
{
    if (rank == 0) printf("%s%s %zu", before, name, bytes);
}

static void end_line(void)
{
    if (rank > 0) return;
    printf("\n");
    fflush(stdout);
}

#endif
