/*
 * Collectives that combine: predefined operators on types that lineweave has, and operators of the program on predefined
 * types. All else passes, decided by operator and type, which MPI wants equal on all ranks here.
 *
 * Floating-point results may differ from the host's in the last bits, as they do between any two MPIs, because the order
 * of the operations differs. All ranks get the same bits.
 */
#include "blocks.h"
#include "nodes.h"

#include <string.h>

/* Returns a buffer aligned for its elements: itself, or scratch memory. Null without memory. */
static void *aligned(const void *buffer, size_t width, int which, size_t bytes)
{
    return (uintptr_t)buffer % width == 0 ? (void *)buffer : lwm_scratch(which, bytes);
}

static lw_status combine(lw_comm *team, enum lwm_kind kind, const void *in, void *out, const struct lwm_folding *f, const size_t *lengths,
                         int root)
{
    switch (kind) {
    case LWM_REDUCE: return lw_reduce(team, in, out, f->own, f->info.element, f->op, root);
    case LWM_ALLREDUCE: return lw_allreduce(team, in, out, f->own, f->info.element, f->op);
    case LWM_REDUCE_SCATTER_BLOCK: return lw_reduce_scatter_block(team, in, out, f->own, f->info.element, f->op);
    case LWM_REDUCE_SCATTER: return lw_reduce_scatter(team, in, out, lengths, f->info.element, f->op);
    case LWM_SCAN: return lw_scan(team, in, out, f->own, f->info.element, f->op);
    default: return lw_exscan(team, in, out, f->own, f->info.element, f->op);
    }
}

static lw_collective collective_of(enum lwm_kind kind)
{
    switch (kind) {
    case LWM_REDUCE: return LW_REDUCE;
    case LWM_ALLREDUCE: return LW_ALLREDUCE;
    case LWM_REDUCE_SCATTER_BLOCK: return LW_REDUCE_SCATTER;
    case LWM_SCAN: return LW_SCAN;
    case LWM_EXSCAN: return LW_EXSCAN;
    default: return -1;
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

enum lwm_reason lwm_fold_of(enum lwm_kind kind, const struct lwm_comm *comm, const struct lwm_fold *given, bool own_ops, size_t *lengths,
                            struct lwm_folding *f)
{
    struct lwm_type *info = &f->info;
    bool uneven = kind == LWM_REDUCE_SCATTER;
    if (given->count < 0 || given->root < 0 || given->root >= comm->size || !lwm_type_of(given->type, info)) return LWM_WHY_ARGUMENT;
    f->own = (size_t)given->count;
    f->total = uneven ? 0 : kind == LWM_REDUCE_SCATTER_BLOCK ? f->own * (size_t)comm->size : f->own;
    for (int i = 0; uneven && i < comm->size; i++) {
        long long count = lwm_number(given->counts, given->wide, i);
        if (count < 0) return LWM_WHY_ARGUMENT;
        f->total += lengths[i] = (size_t)count;
    }
    if (uneven) f->own = lengths[comm->rank];
    f->op = own_ops ? lwm_combining(given->op, given->type, info) : lwm_op_of(given->op, info);
    if (f->op < 0) return info->combines == NOTHING ? LWM_WHY_TYPE : LWM_WHY_OP;
    f->bytes = (uneven ? f->total : f->own) * info->step;
    /* Only the root's recvbuf is used in a reduce, and rank 0's is not used in an exscan. */
    f->takes = !(kind == LWM_REDUCE && comm->rank != given->root) && !(kind == LWM_EXSCAN && comm->rank == 0);
    f->in_place = given->send == LWM_IN_PLACE;
    f->read = f->total * info->step;
    f->written = f->in_place ? f->read : f->takes ? f->own * info->step : 0;
    if (f->total == 0) return LWM_WHY_NONE;
    if (!given->send || (f->in_place && kind == LWM_REDUCE && !f->takes)) return LWM_WHY_ARGUMENT;
    if (f->written && (!given->recv || given->recv == LWM_IN_PLACE)) return LWM_WHY_ARGUMENT;
    bool judged = f->takes || kind == LWM_EXSCAN;
    MPI_Count many = (MPI_Count)(uneven ? f->total : f->own);
    bool refused = judged && lwm_same_fold(kind, given->send, given->recv, many, given->type, given->op);
    return refused ? LWM_WHY_ARGUMENT : LWM_WHY_NONE;
}

bool lwm_fold(struct lwm_call *call, enum lwm_kind kind, struct lwm_fold given, MPI_Comm handle)
{
    bool everywhere = kind == LWM_ALLREDUCE || kind == LWM_REDUCE_SCATTER_BLOCK, uneven = kind == LWM_REDUCE_SCATTER;
    struct lwm_hot hot = {.root = given.root, .type = given.type, .op = given.op, .count = given.count};
    if (!lwm_begin(call, kind, handle)) {
        hot.meets = kind == LWM_ALLREDUCE && given.count > 0;
        if (kind < LWM_HOT) lwm_away_again(call, hot);
        else lwm_away(call, given.count, given.type);
        return uneven ? lwm_meets_least(call, given.counts, given.wide, given.type) : lwm_meets(call, everywhere ? given.count : 0, given.type);
    }
    struct lwm_comm *comm = call->comm;
    struct lwm_folding f;
    size_t *lengths = uneven ? lwm_scratch(LWM_SCRATCH_COUNTS, sizeof *lengths * (size_t)comm->size) : NULL;
    if (uneven && !lengths) return lwm_short(call);
    enum lwm_reason why = lwm_fold_of(kind, comm, &given, true, lengths, &f);
    if (why != LWM_WHY_NONE) return lwm_leave(call, why);
    size_t bytes = f.bytes;
    bool own = f.info.element >= LW_BYTES(0);
    /* The call is described, so that it can be repeated. */
    bool known = !own && f.info.predefined && (kind == LWM_REDUCE || kind == LWM_ALLREDUCE);
    hot.bytes = bytes, hot.align = f.info.align, hot.element = f.info.element, hot.combine = f.op;
    if (bytes == 0) {
        if (known) lwm_heat(call, hot);
        return lwm_nothing(call);
    }
    bool between = comm->way == LWM_NODES;
    if (between && (own || (kind != LWM_REDUCE && kind != LWM_ALLREDUCE))) return lwm_leave(call, LWM_WHY_NODES);
    call->shape = (struct lwm_shape){collective_of(kind), f.own, f.info.element, f.op, given.root};
    if (!lwm_mine(call, bytes, true)) {
        if (known) lwm_heat(call, hot);
        return false;
    }

    const void *send = given.send, *in = LW_IN_PLACE;
    void *recv = given.recv, *out = f.written ? aligned(recv, f.info.align, LWM_SCRATCH_OUT, f.written) : recv;
    /* A rank without elements of the result gives a place all the same. */
    if (uneven && !out) out = lwm_scratch(LWM_SCRATCH_OUT, 1);
    if ((f.written || uneven) && !out) return lwm_short(call);
    if (f.in_place) {
        if (out != recv) memcpy(out, recv, f.written);
    } else {
        uintptr_t a = (uintptr_t)send, b = (uintptr_t)out;
        bool overlap = f.written && a < b + f.written && b < a + f.read;
        void *place = overlap ? lwm_scratch(LWM_SCRATCH_IN, f.read) : aligned(send, f.info.align, LWM_SCRATCH_IN, f.read);
        if (!place) return lwm_short(call);
        if (place != send) memcpy(place, send, f.read);
        in = place;
    }
    lw_status status = LW_OK;
    if (between) {
        int to = kind == LWM_REDUCE ? given.root : -1;
        if (!lwm_nodes_fold(call, f.in_place ? out : in, out, f.own, given.type, given.op, &f.info, f.op, to)) return true;
    } else {
        status = combine(comm->team, kind, in, out, &f, lengths, given.root);
    }
    if (status == LW_OK && f.takes && f.own && out != recv) memcpy(recv, out, f.own * f.info.step);
    lwm_done(call, status);
    if (known && call->result == 0) lwm_heat(call, hot);
    return true;
}
