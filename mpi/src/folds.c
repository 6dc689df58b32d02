/*
 * Collectives that combine: predefined operators on types that lineweave has, and operators of the program on predefined
 * types. All else passes, decided by operator and type, which MPI wants equal on all ranks here.
 *
 * Floating-point results may differ from the host's in the last bits, as they do between any two MPIs, because the order
 * of the operations differs. All ranks get the same bits.
 */
#include "collectives.h"
#include "nodes.h"

#include <string.h>

/* Returns a buffer aligned for its elements: itself, or scratch memory. Null without memory. */
static void *aligned(const void *buffer, size_t width, int which, size_t bytes)
{
    return (uintptr_t)buffer % width == 0 ? (void *)buffer : lwm_scratch(which, bytes);
}

static lw_status combine(lw_comm *team, enum lwm_kind kind, const void *in, void *out, size_t count, lw_type type, lw_op op, int root)
{
    switch (kind) {
    case LWM_REDUCE: return lw_reduce(team, in, out, count, type, op, root);
    case LWM_ALLREDUCE: return lw_allreduce(team, in, out, count, type, op);
    case LWM_REDUCE_SCATTER_BLOCK: return lw_reduce_scatter_block(team, in, out, count, type, op);
    case LWM_SCAN: return lw_scan(team, in, out, count, type, op);
    default: return lw_exscan(team, in, out, count, type, op);
    }
}

static lw_collective collective_of(enum lwm_kind kind)
{
    switch (kind) {
    case LWM_REDUCE: return LW_REDUCE;
    case LWM_ALLREDUCE: return LW_ALLREDUCE;
    case LWM_REDUCE_SCATTER_BLOCK: return LW_REDUCE_SCATTER;
    case LWM_SCAN: return LW_SCAN;
    default: return LW_EXSCAN;
    }
}

lw_op lwm_combining(MPI_Op op, MPI_Datatype type, struct lwm_type *info)
{
    lw_op known = lwm_op_of(op, info);
    if (known >= 0 || !info->predefined) return known;
    lw_op own = lwm_own_op(op, type);
    if (own >= 0) info->element = LW_BYTES((lw_type)info->step);
    return own;
}

bool lwm_fold(struct lwm_call *call, enum lwm_kind kind, const void *send, void *recv, MPI_Count count, MPI_Datatype type,
              MPI_Op mpi_op, int root, MPI_Comm handle)
{
    bool everywhere = kind == LWM_ALLREDUCE || kind == LWM_REDUCE_SCATTER_BLOCK;
    if (!lwm_begin(call, kind, handle)) {
        bool meets = kind == LWM_ALLREDUCE && count > 0;
        if (kind < LWM_HOT) lwm_away_again(call, (struct lwm_hot){.root = root, .type = type, .op = mpi_op, .count = count, .meets = meets});
        else lwm_away(call, count, type);
        return lwm_meets(call, everywhere ? count : 0, type);
    }
    struct lwm_comm *comm = call->comm;
    struct lwm_type info;
    if (count < 0 || root < 0 || root >= comm->size || !lwm_type_of(type, &info)) return lwm_leave(call, LWM_WHY_ARGUMENT);
    lw_op op = lwm_combining(mpi_op, type, &info);
    if (op < 0) return lwm_leave(call, info.combines == NOTHING ? LWM_WHY_TYPE : LWM_WHY_OP);
    size_t bytes = (size_t)count * info.step, blocks = kind == LWM_REDUCE_SCATTER_BLOCK ? (size_t)comm->size : 1;
    bool own = info.element >= LW_BYTES(0);
    /* The call is described, so that it can be repeated. */
    bool known = !own && info.predefined && (kind == LWM_REDUCE || kind == LWM_ALLREDUCE);
    struct lwm_hot hot = {.root = root, .type = type, .op = mpi_op, .count = count, .bytes = bytes, .align = info.align,
                          .element = info.element, .combine = op};
    if (bytes == 0) {
        if (known) lwm_heat(call, hot);
        return lwm_nothing(call);
    }
    /* Only the root's recvbuf is used in a reduce, and rank 0's is not used in an exscan. */
    bool takes = !(kind == LWM_REDUCE && comm->rank != root) && !(kind == LWM_EXSCAN && comm->rank == 0);
    bool in_place = send == LWM_IN_PLACE;
    if (!send || (in_place && kind == LWM_REDUCE && !takes)) return lwm_leave(call, LWM_WHY_ARGUMENT);
    if ((takes || in_place) && (!recv || recv == LWM_IN_PLACE)) return lwm_leave(call, LWM_WHY_ARGUMENT);
    bool judged = takes || kind == LWM_EXSCAN;
    if (judged && lwm_same_fold(kind, send, recv, count, type, mpi_op)) return lwm_leave(call, LWM_WHY_ARGUMENT);
    bool between = comm->way == LWM_NODES;
    if (between && (own || (kind != LWM_REDUCE && kind != LWM_ALLREDUCE))) return lwm_leave(call, LWM_WHY_NODES);
    call->shape = (struct lwm_shape){collective_of(kind), (size_t)count, info.element, op, root};
    if (!lwm_mine(call, bytes, true)) {
        if (known) lwm_heat(call, hot);
        return false;
    }

    size_t read = bytes * blocks, written = in_place ? read : bytes;
    void *out = takes || in_place ? aligned(recv, info.align, LWM_SCRATCH_OUT, written) : recv;
    if ((takes || in_place) && !out) return lwm_short(call);
    if (in_place && out != recv) memcpy(out, recv, written);
    const void *in = LW_IN_PLACE;
    if (!in_place) {
        uintptr_t a = (uintptr_t)send, b = (uintptr_t)out;
        bool overlap = takes && a < b + written && b < a + read;
        void *place = overlap ? lwm_scratch(LWM_SCRATCH_IN, read) : aligned(send, info.align, LWM_SCRATCH_IN, read);
        if (!place) return lwm_short(call);
        if (place != send) memcpy(place, send, read);
        in = place;
    }
    lw_status status = LW_OK;
    if (between) {
        int to = kind == LWM_REDUCE ? root : -1;
        if (!lwm_nodes_fold(call, in_place ? out : in, out, (size_t)count, type, mpi_op, &info, op, to)) return true;
    } else {
        status = combine(comm->team, kind, in, out, (size_t)count, info.element, op, root);
    }
    if (status == LW_OK && takes && out != recv) memcpy(recv, out, bytes);
    lwm_done(call, status);
    if (known && call->result == 0) lwm_heat(call, hot);
    return true;
}
