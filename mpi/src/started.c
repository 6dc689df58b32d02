/*
 * Starting collectives that are completed later, and preparing those that are started again and again.
 *
 * Decisions are those of the blocking calls, from facts that are equal on all ranks. A started call must not wait, and a prepared one tells
 * nothing about the other ranks: ranks agree to form a team when they complete a started one (agree.c). There are no contests either, but the
 * verdict for the blocking call holds. Calls that lineweave cannot start pass: operators of the program, which need the calling thread, and
 * gatherv and scatterv, whose lengths only the root has. Rows to pack in belong to the call.
 */
#include "blocks.h"
#include "forming.h"
#include "started.h"
#include "trace.h"

#include <stdlib.h>
#include <string.h>

/* The arguments for lineweave. */
struct plan {
    const void *in;
    void *out;
    size_t count, *sends, *recvs;
    lw_type type;
    lw_op op;
};

/* Returns a row of bytes that lives as long as the call. */
static void *room(struct lwm_started *s, int which, size_t bytes)
{
    return posix_memalign(&s->rooms[which], 64, bytes ? bytes : 1) == 0 ? s->rooms[which] : (s->rooms[which] = NULL);
}

static bool add_piece(struct lwm_started *s, bool give, void *at, size_t count, MPI_Datatype type, const struct lwm_type *info, char *row)
{
    struct lwm_piece *grown = realloc(s->pieces, sizeof *grown * (size_t)(s->gives + s->takes + 1));
    if (!grown) return false;
    s->pieces = grown;
    struct lwm_piece *piece = &grown[s->gives + s->takes];
    *piece = (struct lwm_piece){.at = at, .count = count, .type = type, .info = *info, .row = row};
    if (!info->predefined && !info->dense && lwm_host.Type_dup(type, &piece->type) == 0) piece->copied = true;
    /* Pieces to give come first, and are added first. */
    *(give ? &s->gives : &s->takes) += 1;
    return true;
}

static bool apart(const void *a, size_t an, const void *b, size_t bn)
{
    return an == 0 || bn == 0 || (uintptr_t)a + an <= (uintptr_t)b || (uintptr_t)b + bn <= (uintptr_t)a;
}

/* Returns the bytes to give: the buffer's own, or a row that it is packed in. */
static const void *given(struct lwm_started *s, const struct lwm_buffer *b, const struct lwm_type *info, const void *out, size_t written)
{
    size_t bytes = (size_t)b->count * info->size;
    if (info->dense && apart(b->at, bytes, out, written)) return b->at ? b->at : room(s, 0, 1);
    char *row = room(s, 0, bytes);
    return row && add_piece(s, true, b->at, (size_t)b->count, b->type, info, row) ? row : NULL;
}

/* The result of a step of preparing. */
enum found { LEAVE, EMPTY, SHORT, READY };

/* Prepares a bcast, gather, scatter, allgather or alltoall. */
static enum found move(struct lwm_started *s, const struct lwm_order *o, struct lwm_comm *comm, struct plan *p)
{
    struct lwm_move m;
    if (!lwm_move_of(o->kind, comm, &o->send, &o->recv, o->root, &m)) return LEAVE;
    size_t block = m.bytes;
    p->count = s->bytes = block;
    if (block == 0) return EMPTY;
    p->type = LW_I8;
    p->out = m.take_in_place ? LW_IN_PLACE : NULL;
    size_t written = m.takes ? block * m.take : 0;
    bool plain = !written || m.to.dense;
    if (written) p->out = plain ? o->recv.at : room(s, 1, written);
    if (written && !p->out) return SHORT;
    if (m.give_in_place) {
        p->in = LW_IN_PLACE;
        size_t first = o->kind == LWM_ALLTOALL ? 0 : (size_t)comm->rank;
        char *mine = (char *)o->recv.at + (ptrdiff_t)first * o->recv.count * m.to.extent;
        if (!plain && !add_piece(s, true, mine, (size_t)o->recv.count * m.give, o->recv.type, &m.to, (char *)p->out + first * block)) return SHORT;
    } else if (m.gives) {
        struct lwm_buffer all = {o->send.at, o->send.count * (MPI_Count)m.give, o->send.type};
        if (!(p->in = given(s, &all, &m.from, p->out, written))) return SHORT;
    }
    if (!plain && !add_piece(s, false, o->recv.at, (size_t)o->recv.count * m.take, o->recv.type, &m.to, p->out)) return SHORT;
    return READY;
}

/* Prepares an allgatherv, alltoallv or alltoallw. */
static enum found move_uneven(struct lwm_started *s, const struct lwm_order *o, struct lwm_comm *comm, struct plan *p)
{
    int ranks = comm->size;
    bool gathers = o->kind == LWM_ALLGATHERV, in_place = (gathers ? o->send.at : o->gives.at) == LWM_IN_PLACE;
    size_t given_bytes = 0, taken_bytes = 0;
    bool give_row = false, take_row = false;
    struct lwm_type from;
    s->lengths = calloc((size_t)ranks * 2, sizeof *s->lengths);
    if (!s->lengths) return SHORT;
    p->sends = s->lengths;
    p->recvs = s->lengths + ranks;
    if (gathers && !in_place && !lwm_describe(&o->send, &from, &given_bytes)) return LEAVE;
    if (!gathers && !in_place && !lwm_measure(&o->gives, ranks, p->sends, &given_bytes, &give_row)) return LEAVE;
    if (!lwm_measure(&o->takes, ranks, p->recvs, &taken_bytes, &take_row)) return LEAVE;
    if (!in_place && (gathers ? lwm_same_block(o->kind, comm->rank, o->send, &o->takes) : lwm_same_blocks(o->kind, &o->gives, &o->takes))) {
        return LEAVE;
    }
    s->bytes = taken_bytes;
    if (gathers && taken_bytes == 0) return EMPTY;
    if (gathers && !in_place && given_bytes != p->recvs[comm->rank]) return LEAVE;
    p->type = LW_I8;
    p->out = take_row && o->takes.at ? o->takes.at : room(s, 1, taken_bytes);
    if (!p->out) return SHORT;
    p->in = LW_IN_PLACE;
    if (!in_place && gathers) {
        if (!(p->in = given(s, &o->send, &from, p->out, taken_bytes))) return SHORT;
    } else if (!in_place) {
        char *row = give_row && o->gives.at && apart(o->gives.at, given_bytes, p->out, taken_bytes) ? o->gives.at : NULL;
        bool packs = !row;
        if (packs && !(row = room(s, 0, given_bytes))) return SHORT;
        p->in = row;
        for (int i = 0; packs && i < ranks; i++) {
            struct lwm_block b;
            lwm_block_of(&o->gives, i, &b);
            if (b.bytes && !add_piece(s, true, b.at, b.count, b.type, &b.info, row)) return SHORT;
            row += b.bytes;
        }
    }
    /* In place, the row holds the data to give, too: of an allgatherv only the rank's own block. */
    for (int pass = in_place ? 0 : 1; pass < 2 && !take_row; pass++) {
        char *row = p->out;
        for (int i = 0; i < ranks; i++) {
            struct lwm_block b;
            lwm_block_of(&o->takes, i, &b);
            bool wanted = b.bytes && (pass == 1 || !gathers || i == comm->rank);
            if (wanted && !add_piece(s, pass == 0, b.at, b.count, b.type, &b.info, row)) return SHORT;
            row += b.bytes;
        }
    }
    return READY;
}

/* Prepares a reduce, allreduce, reduce_scatter_block, reduce_scatter, scan or exscan. */
static enum found fold(struct lwm_started *s, const struct lwm_order *o, struct lwm_comm *comm, struct plan *p, enum lwm_reason *why)
{
    bool uneven = o->kind == LWM_REDUCE_SCATTER;
    if (uneven && !(s->lengths = calloc((size_t)comm->size, sizeof *s->lengths))) return SHORT;
    struct lwm_fold given = {o->send.at, o->recv.at, o->recv.count, o->recv.type, o->op, o->root, o->takes.counts, o->takes.wide};
    struct lwm_folding f;
    *why = lwm_fold_of(o->kind, comm, &given, false, s->lengths, &f);
    if (*why != LWM_WHY_NONE) return LEAVE;
    s->bytes = f.bytes;
    if (f.total == 0) return EMPTY;
    p->count = f.own;
    p->recvs = s->lengths;
    p->type = f.info.element;
    p->op = f.op;
    /* Bytes of pairs are moved with their gaps. */
    struct lwm_type bytes = {.size = 1, .extent = 1, .dense = true, .predefined = true};
    bool plain = !f.written || (uintptr_t)o->recv.at % f.info.align == 0;
    p->out = plain ? o->recv.at : room(s, 1, f.written);
    if (!plain && !p->out) return SHORT;
    if (f.written == 0 && !p->out && !(p->out = room(s, 1, 1))) return SHORT;
    p->in = LW_IN_PLACE;
    if (f.in_place) {
        if (!plain && !add_piece(s, true, o->recv.at, f.read, lwm_host.byte, &bytes, p->out)) return SHORT;
    } else {
        bool stays = (uintptr_t)o->send.at % f.info.align == 0 && apart(o->send.at, f.read, p->out, f.written);
        p->in = stays ? o->send.at : room(s, 0, f.read);
        if (!p->in || (!stays && !add_piece(s, true, o->send.at, f.read, lwm_host.byte, &bytes, (char *)p->in))) return SHORT;
    }
    bool back = f.takes && f.own && !plain;
    return !back || add_piece(s, false, o->recv.at, f.own * f.info.step, lwm_host.byte, &bytes, p->out) ? READY : SHORT;
}

/* Makes the call itself: started at once, or prepared. */
#define EITHER(once, init, arguments...) (o->again ? init(team, ##arguments, to) : once(team, ##arguments, to))
static lw_status issue(const struct lwm_order *o, lw_comm *team, const struct plan *p, lw_request **to)
{
    int root = o->root;
    void *data = p->in ? (void *)p->in : p->out;
    switch (o->kind) {
    case LWM_BARRIER: return EITHER(lw_ibarrier, lw_comm_barrier_init);
    case LWM_BCAST: return EITHER(lw_ibcast, lw_bcast_init, data, p->count, p->type, root);
    case LWM_REDUCE: return EITHER(lw_ireduce, lw_reduce_init, p->in, p->out, p->count, p->type, p->op, root);
    case LWM_ALLREDUCE: return EITHER(lw_iallreduce, lw_allreduce_init, p->in, p->out, p->count, p->type, p->op);
    case LWM_GATHER: return EITHER(lw_igather, lw_gather_init, p->in, p->out, p->count, p->type, root);
    case LWM_SCATTER: return EITHER(lw_iscatter, lw_scatter_init, p->in, p->out, p->count, p->type, root);
    case LWM_ALLGATHER: return EITHER(lw_iallgather, lw_allgather_init, p->in, p->out, p->count, p->type);
    case LWM_ALLTOALL: return EITHER(lw_ialltoall, lw_alltoall_init, p->in, p->out, p->count, p->type);
    case LWM_REDUCE_SCATTER_BLOCK:
        return EITHER(lw_ireduce_scatter_block, lw_reduce_scatter_block_init, p->in, p->out, p->count, p->type, p->op);
    case LWM_SCAN: return EITHER(lw_iscan, lw_scan_init, p->in, p->out, p->count, p->type, p->op);
    case LWM_EXSCAN: return EITHER(lw_iexscan, lw_exscan_init, p->in, p->out, p->count, p->type, p->op);
    case LWM_REDUCE_SCATTER: return EITHER(lw_ireduce_scatter, lw_reduce_scatter_init, p->in, p->out, p->recvs, p->type, p->op);
    case LWM_ALLGATHERV: return EITHER(lw_iallgatherv, lw_allgatherv_init, p->in, p->out, p->recvs, p->type);
    default: return EITHER(lw_ialltoallv, lw_alltoallv_init, p->in, p->sends, p->out, p->recvs, p->type);
    }
}
#undef EITHER

static enum found prepare(struct lwm_started *s, const struct lwm_order *o, struct lwm_comm *comm, struct plan *p, enum lwm_reason *why)
{
    switch (o->kind) {
    case LWM_BARRIER: return READY;
    case LWM_BCAST:
    case LWM_GATHER:
    case LWM_SCATTER:
    case LWM_ALLGATHER:
    case LWM_ALLTOALL: return move(s, o, comm, p);
    case LWM_ALLGATHERV:
    case LWM_ALLTOALLV:
    case LWM_ALLTOALLW: return move_uneven(s, o, comm, p);
    default: return fold(s, o, comm, p, why);
    }
}

/* Returns whether the communicator serves such calls; if not, the reason is stored. */
static bool serves(struct lwm_call *call, struct lwm_order *o, MPI_Comm handle)
{
    struct lwm_comm *comm = lwm_comm_counted(handle, LWM_STARTED, &o->numbered);
    call->comm = o->comm = comm;
    if (comm && comm->way == LWM_NEW && comm->word && !o->again && comm->position == comm->agrees_at) o->began_ns = lwm_now_ns();
    if (!comm) return lwm_leave(call, lwm_active ? LWM_WHY_ARGUMENT : LWM_WHY_INACTIVE);
    if (o->kind == LWM_GATHERV || o->kind == LWM_SCATTERV) return lwm_leave(call, LWM_WHY_KIND);
    if (comm->way == LWM_NODES) return lwm_leave(call, LWM_WHY_NODES);
    return comm->started ? true : lwm_leave(call, comm->why);
}

bool lwm_start(struct lwm_order *o, MPI_Comm handle, MPI_Request *request, int *result)
{
    struct lwm_call call = {.kind = o->again ? LWM_PERSISTENT : LWM_NONBLOCKING};
    const struct lwm_buffer *told = o->kind == LWM_SCATTER || o->send.at == LWM_IN_PLACE ? &o->recv : &o->send;
    lwm_told(&call, told->count, told->type);
    *result = 0;
    if (LWM_UNLIKELY(lwm_tracing)) o->start_ns = lwm_now_ns();
    if (!serves(&call, o, handle)) return false;
    struct lwm_comm *comm = call.comm;
    struct lwm_started *s = calloc(1, sizeof *s);
    struct plan plan = {0};
    enum lwm_reason why = LWM_WHY_ARGUMENT;
    enum found found = s ? prepare(s, o, comm, &plan, &why) : SHORT;
    size_t bytes = s ? s->bytes : 0;
    bool alike = o->kind != LWM_ALLTOALLV && o->kind != LWM_ALLTOALLW;
    const struct lwm_race *race = &comm->races[o->kind][alike ? lwm_race_class(bytes) : 0];
    if (found != LEAVE && race->host) {
        found = LEAVE;
        why = LWM_WHY_RACE;
    }
    call.bytes = bytes;
    call.size_class = lwm_class(bytes);
    if (found == LEAVE) {
        lwm_started_free(s);
        return lwm_leave(&call, why);
    }
    lw_status status = found == SHORT ? LW_ERR_MEMORY : LW_OK;
    bool added = false;
    if (status == LW_OK) {
        s->comm = comm;
        s->handle_of_comm = handle;
        s->kind = call.kind;
        s->again = o->again;
        if (o->again && found == READY) {
            status = lw_comm_dup(comm->team, &s->own);
            if (status == LW_OK) lw_comm_set_progress(s->own, lwm_progress, NULL);
            if (status == LW_OK) lw_comm_set_progress_thread(s->own, 1);
        }
        /* The request comes first: a call that is under way keeps its buffers, and so its request. */
        if (status == LW_OK && !(added = lwm_started_add(s))) status = LW_ERR_MEMORY;
        if (!o->again && status == LW_OK && (lwm_tracing || lwm_is_timed(lwm_counts[call.kind][call.size_class].taken))) s->start_ns = lwm_now_ns();
        if (!o->again && status == LW_OK) status = lwm_started_begin(s);
        if (status == LW_OK && found == READY) status = issue(o, o->again ? s->own : comm->started, &plan, &s->call);
    }
    if (status != LW_OK) {
        lwm_done(&call, status);
        *result = call.result;
        if (added) lwm_started_drop(s);
        else lwm_started_free(s);
        return true;
    }
    *request = s->handle;
    if (!o->again) lwm_started_is_on(s);
    return true;
}
