/*
 * Calls that give and take in one place without MPI_IN_PLACE, which MPI forbids. Hosts differ in what they do, by kind, types and counts: they
 * refuse it, each rank for itself and before it sends anything, or carry it out.
 *
 * So the host is asked, by the same call on a communicator of this rank alone. A call that it refuses there is passed to it, and it reports
 * the error to the program; nothing comes to other ranks, and they wait as they would without lineweave. A call that it tolerates is carried
 * out by lineweave from a copy. To pass it to the host would be wrong: other ranks, whose buffers are apart, do not.
 */
#include "blocks.h"

#include <limits.h>

/* A communicator of this rank alone; errors are returned. */
static MPI_Comm alone;

bool lwm_same_open(void)
{
    return lwm_host.Comm_dup(lwm_host.self, &alone) == 0 && lwm_host.Comm_set_errhandler(alone, lwm_host.errors_return) == 0;
}

void lwm_same_close(void) { lwm_host.Comm_free(&alone); }

bool lwm_same_combines(MPI_Datatype type, MPI_Op op)
{
    char give[32] = {0}, take[32];
    return lwm_host.Allreduce(give, take, 1, type, op, alone) == 0;
}

static bool refuses(enum lwm_kind kind, struct lwm_buffer give, struct lwm_buffer take, MPI_Op op)
{
    if (give.at != take.at || give.count > INT_MAX || take.count > INT_MAX) return false;
    void *at = give.at;
    const int n = (int)give.count, m = (int)take.count, from = 0;
    switch (kind) {
    case LWM_GATHER: return lwm_host.Gather(at, n, give.type, at, m, take.type, 0, alone) != 0;
    case LWM_SCATTER: return lwm_host.Scatter(at, n, give.type, at, m, take.type, 0, alone) != 0;
    case LWM_ALLGATHER: return lwm_host.Allgather(at, n, give.type, at, m, take.type, alone) != 0;
    case LWM_ALLTOALL: return lwm_host.Alltoall(at, n, give.type, at, m, take.type, alone) != 0;
    case LWM_GATHERV: return lwm_host.Gatherv(at, n, give.type, at, &m, &from, take.type, 0, alone) != 0;
    case LWM_SCATTERV: return lwm_host.Scatterv(at, &n, &from, give.type, at, m, take.type, 0, alone) != 0;
    case LWM_ALLGATHERV: return lwm_host.Allgatherv(at, n, give.type, at, &m, &from, take.type, alone) != 0;
    case LWM_REDUCE: return lwm_host.Reduce(at, at, n, give.type, op, 0, alone) != 0;
    case LWM_ALLREDUCE: return lwm_host.Allreduce(at, at, n, give.type, op, alone) != 0;
    case LWM_REDUCE_SCATTER_BLOCK: return lwm_host.Reduce_scatter_block(at, at, n, give.type, op, alone) != 0;
    case LWM_REDUCE_SCATTER: return lwm_host.Reduce_scatter(at, at, &n, give.type, op, alone) != 0;
    case LWM_SCAN: return lwm_host.Scan(at, at, n, give.type, op, alone) != 0;
    case LWM_EXSCAN: return lwm_host.Exscan(at, at, n, give.type, op, alone) != 0;
    default: return false;
    }
}

bool lwm_same_fold(enum lwm_kind kind, const void *send, void *recv, MPI_Count count, MPI_Datatype type, MPI_Op op)
{
    return refuses(kind, (struct lwm_buffer){(void *)send, count, type}, (struct lwm_buffer){recv, count, type}, op);
}

bool lwm_same_move(enum lwm_kind kind, int rank, struct lwm_buffer send, struct lwm_buffer recv)
{
    /* A rank's own block among those of all, as MPICH computes its place. */
    struct lwm_buffer *all = kind == LWM_SCATTER ? &send : kind == LWM_ALLTOALL ? NULL : &recv;
    struct lwm_type info;
    if (all && lwm_type_of(all->type, &info)) all->at = (char *)all->at + (ptrdiff_t)rank * all->count * (ptrdiff_t)info.size;
    return refuses(kind, send, recv, lwm_host.sum);
}

bool lwm_same_block(enum lwm_kind kind, int rank, struct lwm_buffer one, const struct lwm_blocks *all)
{
    struct lwm_block block;
    if (!lwm_block_of(all, rank, &block)) return false;
    struct lwm_buffer own = {block.at, (MPI_Count)block.count, block.type};
    bool gives = kind == LWM_SCATTERV;
    return refuses(kind, gives ? own : one, gives ? one : own, lwm_host.sum);
}

bool lwm_same_blocks(enum lwm_kind kind, const struct lwm_blocks *give, const struct lwm_blocks *take)
{
    if (give->at != take->at) return false;
    /* Hosts check whether both lists are the same one. Empty blocks: nothing is to move between places of one buffer. */
    const int none[2] = {0, 0}, *n = none, *m = give->counts == take->counts ? none : none + 1;
    if (kind == LWM_ALLTOALLV) return lwm_host.Alltoallv(give->at, n, none, give->type, take->at, m, none, take->type, alone) != 0;
    const MPI_Datatype *to = give->types == take->types ? give->types : take->types;
    return lwm_host.Alltoallw(give->at, n, none, give->types, take->at, m, none, to, alone) != 0;
}
