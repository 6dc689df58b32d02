/* Every collective in each of its forms, on ints, with what it must give. Prepared calls are started ones with -DNO_PERSISTENT. */
#ifndef KINDS_H
#define KINDS_H

#include "expect.h"
#include <stdbool.h>

enum { BARRIER, BCAST, REDUCE, ALLREDUCE, REDUCE_SCATTER_BLOCK, REDUCE_SCATTER, SCAN, EXSCAN, GATHER, SCATTER, ALLGATHER, ALLTOALL, GATHERV,
       SCATTERV, ALLGATHERV, ALLTOALLV, ALLTOALLW, KINDS };
static const char *const names[KINDS] = {
    "barrier", "bcast", "reduce", "allreduce", "reduce_scatter_block", "reduce_scatter", "scan", "exscan", "gather", "scatter", "allgather",
    "alltoall", "gatherv", "scatterv", "allgatherv", "alltoallv", "alltoallw",
};
enum { BLOCKING, STARTED, PREPARED, FORMS };

/* A call: blocks of n elements, in `in` and `out` for as many as there are ranks. If `ragged`, blocks of the kinds with places of their own lie in
 * reverse order, and every second one has one less, so that there are gaps. */
struct job {
    int kind, n, root, turn, place, size;
    bool ragged, in_place;
    int *in, *out;
    MPI_Comm comm;
    MPI_Request request;
    int counts[64], places[64], far[64];
    MPI_Datatype types[64];
};

/* Returns the length of the block between two ranks, or of one rank's. (MPICH 5.0.2 ends by an assertion where the parts of a reduce_scatter in place
 * are such that a rank's result overlaps with its part.) */
static inline int length_of(const struct job *j, int r, int other)
{
    int odd = j->kind == REDUCE_SCATTER ? r : r + other + j->turn;
    return j->n - (j->ragged && j->n > 0 && odd % 2);
}

/* Returns the rank whose block lies at place i. */
static inline int owner_of(const struct job *j, int i) { return j->ragged && j->kind >= GATHERV ? j->size - 1 - i / j->n : i / j->n; }

/* Sets a call up that is not in place. */
static inline struct job job_of(int kind, int n, int root, int turn, bool ragged, int *in, int *out, MPI_Comm comm)
{
    struct job j = {.kind = kind, .n = n, .turn = turn, .ragged = ragged, .in = in, .out = out, .comm = comm, .request = MPI_REQUEST_NULL};
    MPI_Comm_rank(comm, &j.place);
    MPI_Comm_size(comm, &j.size);
    j.root = root % j.size;
    bool each = kind == ALLTOALLV || kind == ALLTOALLW;
    for (int r = 0; r < j.size; r++) {
        j.counts[r] = length_of(&j, r, each ? j.place : 0);
        j.places[r] = (ragged ? j.size - 1 - r : r) * n;
        j.far[r] = j.places[r] * (int)sizeof(int);
        j.types[r] = MPI_INT;
    }
    return j;
}

/* What rank r gives at place i, and the sum of what ranks give there. */
static inline int given(const struct job *j, int r, int i) { return r * 1000 + i % 97 + j->turn; }
static inline int sum_of(const struct job *j, int ranks, int i) { return ranks * (i % 97 + j->turn) + 1000 * (ranks * (ranks - 1) / 2); }

static inline bool is_of_root(const struct job *j) { return j->kind == REDUCE || j->kind == GATHER || j->kind == GATHERV; }
static inline bool scatters(const struct job *j) { return j->kind == SCATTER || j->kind == SCATTERV; }
/* Returns whether this rank gives in place. */
static inline bool gives_in_place(const struct job *j) { return j->in_place && j->kind > BCAST && !scatters(j) && (!is_of_root(j) || j->place == j->root); }

/* Fills the buffers for a call. */
static inline void fill(struct job *j)
{
    bool gathers = j->kind == GATHER || j->kind == ALLGATHER || j->kind == GATHERV || j->kind == ALLGATHERV;
    int own = j->kind >= GATHERV ? j->places[j->place] : j->place * j->n;
    for (int i = 0; i < j->n * j->size; i++) {
        j->in[i] = given(j, j->place, i);
        bool gives = (j->kind == BCAST && j->place == j->root) || (gives_in_place(j) && !gathers);
        j->out[i] = gives ? j->in[i] : -1;
    }
    for (int k = 0; gathers && gives_in_place(j) && k < j->n && k < (j->kind >= GATHERV ? j->counts[j->place] : j->n); k++) j->out[own + k] = j->in[k];
}

/* Makes a call, or starts it. Returns MPI's result. */
static inline int make_call(struct job *j, int form)
{
#define ONCE(once, start, arguments...) return form == BLOCKING ? once(arguments, j->comm) : start(arguments, j->comm, &j->request)
#ifdef NO_PERSISTENT
#define ONE(once, start, prepare, arguments...) ONCE(once, start, arguments)
#else
#define ONE(once, start, prepare, arguments...) \
    if (form == PREPARED) { \
        int result = prepare(arguments, j->comm, MPI_INFO_NULL, &j->request); \
        return result == MPI_SUCCESS ? MPI_Start(&j->request) : result; \
    } \
    ONCE(once, start, arguments)
#endif
    MPI_Datatype t = MPI_INT;
    void *in = gives_in_place(j) ? MPI_IN_PLACE : j->in, *out = j->in_place && scatters(j) && j->place == j->root ? MPI_IN_PLACE : j->out;
    int n = j->n, own = j->counts[j->place], root = j->root, *counts = j->counts, *places = j->places;
    /* What counts at the root only need not be there at other ranks. */
    bool rooted = is_of_root(j) || scatters(j);
    if (rooted && j->place != root && j->turn % 3 == 0) {
        *(scatters(j) ? &in : &out) = NULL;
        counts = places = NULL;
    }
    switch (j->kind) {
    case BARRIER: return form == BLOCKING ? MPI_Barrier(j->comm) : MPI_Ibarrier(j->comm, &j->request);
    case BCAST: ONE(MPI_Bcast, MPI_Ibcast, MPI_Bcast_init, out, n, t, root);
    case REDUCE: ONE(MPI_Reduce, MPI_Ireduce, MPI_Reduce_init, in, out, n, t, MPI_SUM, root);
    case ALLREDUCE: ONE(MPI_Allreduce, MPI_Iallreduce, MPI_Allreduce_init, in, out, n, t, MPI_SUM);
    case REDUCE_SCATTER_BLOCK: ONE(MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block, MPI_Reduce_scatter_block_init, in, out, n, t, MPI_SUM);
    case REDUCE_SCATTER: ONE(MPI_Reduce_scatter, MPI_Ireduce_scatter, MPI_Reduce_scatter_init, in, out, counts, t, MPI_SUM);
    case SCAN: ONE(MPI_Scan, MPI_Iscan, MPI_Scan_init, in, out, n, t, MPI_SUM);
    case EXSCAN: ONE(MPI_Exscan, MPI_Iexscan, MPI_Exscan_init, in, out, n, t, MPI_SUM);
    case GATHER: ONE(MPI_Gather, MPI_Igather, MPI_Gather_init, in, n, t, out, n, t, root);
    case SCATTER: ONE(MPI_Scatter, MPI_Iscatter, MPI_Scatter_init, in, n, t, out, n, t, root);
    case ALLGATHER: ONE(MPI_Allgather, MPI_Iallgather, MPI_Allgather_init, in, n, t, out, n, t);
    case ALLTOALL: ONE(MPI_Alltoall, MPI_Ialltoall, MPI_Alltoall_init, in, n, t, out, n, t);
    case GATHERV: ONE(MPI_Gatherv, MPI_Igatherv, MPI_Gatherv_init, in, own, t, out, counts, places, t, root);
    case SCATTERV: ONE(MPI_Scatterv, MPI_Iscatterv, MPI_Scatterv_init, in, counts, places, t, out, own, t, root);
    case ALLGATHERV: ONE(MPI_Allgatherv, MPI_Iallgatherv, MPI_Allgatherv_init, in, own, t, out, counts, places, t);
    case ALLTOALLV: ONE(MPI_Alltoallv, MPI_Ialltoallv, MPI_Alltoallv_init, in, counts, places, t, out, counts, places, t);
    default: ONE(MPI_Alltoallw, MPI_Ialltoallw, MPI_Alltoallw_init, in, counts, j->far, j->types, out, counts, j->far, j->types);
    }
#undef ONE
#undef ONCE
}

/* Completes a call in another form than blocking. */
static inline void complete(struct job *j, int form)
{
    if (form == BLOCKING) return;
    EXPECT(MPI_Wait(&j->request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    if (form == PREPARED && j->request != MPI_REQUEST_NULL) MPI_Request_free(&j->request);
}

/* Returns what must be at place i of `out`. */
static inline int wanted(const struct job *j, int i)
{
    int r = owner_of(j, i), k = i % j->n, me = j->place, before = 0, from = j->kind >= GATHERV ? j->places[me] : me * j->n;
    bool here = me == j->root, first = i < j->n;
    for (int q = 0; q < me; q++) before += j->counts[q];
    /* What a call in place leaves behind the result is the MPI's affair. */
    int rest = gives_in_place(j) ? j->out[i] : -1;
    switch (j->kind) {
    case BCAST: return first || here ? given(j, j->root, i) : -1;
    case REDUCE: return first && here ? sum_of(j, j->size, i) : rest;
    case ALLREDUCE: return first ? sum_of(j, j->size, i) : rest;
    case REDUCE_SCATTER_BLOCK: return first ? sum_of(j, j->size, me * j->n + i) : rest;
    case REDUCE_SCATTER: return i < j->counts[me] ? sum_of(j, j->size, before + i) : rest;
    case SCAN: return first ? sum_of(j, me + 1, i) : rest;
    case EXSCAN: return first && me > 0 ? sum_of(j, me, i) : j->out[i];
    case GATHER: return here ? given(j, r, k) : -1;
    case SCATTER: return first && !(j->in_place && here) ? given(j, j->root, from + i) : -1;
    case ALLGATHER: return given(j, r, k);
    case ALLTOALL: return given(j, r, from + k);
    case GATHERV: return here && k < j->counts[r] ? given(j, r, k) : -1;
    case SCATTERV: return i < j->counts[me] && !(j->in_place && here) ? given(j, j->root, from + i) : -1;
    case ALLGATHERV: return k < j->counts[r] ? given(j, r, k) : -1;
    case ALLTOALLV:
    case ALLTOALLW: return k < j->counts[r] ? given(j, r, from + k) : rest;
    default: return -1;
    }
}

/* Returns how many elements are wrong, and says which is the first. */
static inline int judge(const struct job *j)
{
    int wrong = 0;
    for (int i = 0; i < j->n * j->size; i++) {
        if (j->out[i] == wanted(j, i) || wrong++) continue;
        fprintf(stderr, "rank %d of %d, turn %d: %s: %d and not %d at %d of %d\n", rank, ranks, j->turn, names[j->kind], j->out[i], wanted(j, i), i, j->n);
    }
    return wrong;
}

/* Makes a call of some form, and holds what it gives. */
static inline int try_call(struct job j, int form)
{
    fill(&j);
    EXPECT(make_call(&j, form) == MPI_SUCCESS);
    complete(&j, form);
    return judge(&j);
}

#endif
