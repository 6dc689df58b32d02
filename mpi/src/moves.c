/*
 * Collectives that move data, and the barrier: the data are bytes to lineweave, whatever the types.
 *
 * MPI lets ranks describe one signature by different types, so types decide nothing. A rank whose type has gaps or
 * another order packs the data that it gives and unpacks the data that it takes; the other ranks do not notice.
 */
#include "collectives.h"
#include "nodes.h"

#include <string.h>

bool lwm_describe(const struct lwm_buffer *buffer, struct lwm_type *info, size_t *bytes)
{
    if (buffer->count < 0 || buffer->at == LWM_IN_PLACE || !lwm_type_of(buffer->type, info)) return false;
    if (__builtin_mul_overflow((size_t)buffer->count, info->size, bytes)) return false;
    /* A null buffer is right for types of absolute addresses only. */
    return buffer->at || *bytes == 0 || !info->dense;
}

bool lwm_move_of(enum lwm_kind kind, const struct lwm_comm *comm, const struct lwm_buffer *send, const struct lwm_buffer *recv, int root,
                 struct lwm_move *m)
{
    size_t ranks = (size_t)comm->size, given_bytes = 0, taken_bytes = 0;
    bool of_root = kind == LWM_BCAST || kind == LWM_SCATTER, rooted = of_root || kind == LWM_GATHER, is_root = comm->rank == root;
    if (rooted && (root < 0 || root >= comm->size)) return false;
    m->gives = !of_root || is_root;
    m->takes = kind == LWM_BCAST ? !is_root : kind != LWM_GATHER || is_root;
    m->give = kind == LWM_SCATTER || kind == LWM_ALLTOALL ? ranks : 1;
    m->take = kind == LWM_BCAST || kind == LWM_SCATTER ? 1 : ranks;
    bool both = m->gives && m->takes;
    m->give_in_place = both && kind != LWM_SCATTER && send->at == LWM_IN_PLACE;
    m->take_in_place = both && kind == LWM_SCATTER && recv->at == LWM_IN_PLACE;
    m->gives = m->gives && !m->give_in_place;
    m->takes = m->takes && !m->take_in_place;
    if (m->gives && !lwm_describe(send, &m->from, &given_bytes)) return false;
    if (m->takes && !lwm_describe(recv, &m->to, &taken_bytes)) return false;
    m->bytes = m->gives ? given_bytes : taken_bytes;
    return !(m->gives && m->takes) || (given_bytes == taken_bytes && !lwm_same_move(kind, comm->rank, *send, *recv));
}

/* Returns the bytes to give: the buffer's own where they are dense, else packed. Null without memory. */
static const void *given(struct lwm_call *call, const struct lwm_buffer *buffer, const struct lwm_type *info, size_t bytes)
{
    if (info->dense) return buffer->at;
    void *packed = lwm_scratch(LWM_SCRATCH_IN, bytes);
    bool done = packed && lwm_pack(buffer->at, (size_t)buffer->count, buffer->type, info, packed, call->comm->handle);
    return done ? packed : NULL;
}

/* Returns the room for bytes to take. Null without memory. */
static void *room(const struct lwm_buffer *buffer, const struct lwm_type *info, size_t bytes)
{
    return info->dense ? buffer->at : lwm_scratch(LWM_SCRATCH_OUT, bytes);
}

/* Unpacks the bytes that were taken from the room to the buffer. */
static bool taken(struct lwm_call *call, const struct lwm_buffer *buffer, const struct lwm_type *info, const void *from, size_t count)
{
    return info->dense || lwm_unpack(from, buffer->at, count, buffer->type, info, call->comm->handle);
}

/* Returns bytes to give that are apart from those to take: a copy where they overlap, which MPI forbids and hosts
 * tolerate. */
static const void *apart(const void *give, size_t given_bytes, const void *take, size_t taken_bytes)
{
    uintptr_t a = (uintptr_t)give, b = (uintptr_t)take;
    if (!give || given_bytes == 0 || taken_bytes == 0 || a + given_bytes <= b || b + taken_bytes <= a) return give;
    void *copy = lwm_scratch(LWM_SCRATCH_IN, given_bytes);
    return copy ? memcpy(copy, give, given_bytes) : NULL;
}

/* Keeps a call, so that it can be repeated, if all its buffers have one predefined type and as many elements. */
static void keep(const struct lwm_call *call, const struct lwm_buffer *buffer, const struct lwm_type *info, size_t bytes, int root)
{
    if (!info->predefined || !info->dense) return;
    lwm_heat(call, (struct lwm_hot){.root = root, .type = buffer->type, .count = buffer->count, .bytes = bytes, .align = 1});
}

bool lwm_barrier(struct lwm_call *call, MPI_Comm handle)
{
    if (!lwm_begin(call, LWM_BARRIER, handle)) {
        lwm_away_again(call, (struct lwm_hot){.type = lwm_host.byte, .meets = true});
        return lwm_meets(call, 1, lwm_host.byte);
    }
    struct lwm_comm *comm = call->comm;
    struct lwm_race *race = &comm->races[LWM_BARRIER][0];
    /* Barriers may remain from the time when another communicator had this one's slot. */
    race->left += comm->plain_barriers;
    comm->barriers -= comm->plain_barriers;
    comm->plain_barriers = 0;
    call->shape = (struct lwm_shape){.collective = LW_BARRIER, .type = LW_I8};
    if (!lwm_mine(call, 0, true)) {
        lwm_heat(call, (struct lwm_hot){0});
        return false;
    }
    if (comm->way == LWM_NODES) return lwm_nodes_barrier(call);
    if (!call->race) {
        comm->plain_barriers = lwm_settings.race ? race->left : UINT64_MAX;
        comm->barriers += comm->plain_barriers;
        race->left = 0;
    }
    return lwm_done(call, lw_barrier(comm->team));
}

/* Leaves a call to the host that was not begun. */
static bool away(struct lwm_call *call, enum lwm_kind kind, const struct lwm_buffer *send, const struct lwm_buffer *recv, int root, bool alike)
{
    bool each = kind == LWM_ALLGATHER || kind == LWM_ALLTOALL, gives = kind == LWM_GATHER && send->at != LWM_IN_PLACE;
    const struct lwm_buffer *told = gives || (kind == LWM_SCATTER && recv->at == LWM_IN_PLACE) ? send : recv;
    if (alike) lwm_away_again(call, (struct lwm_hot){.root = root, .type = recv->type, .count = recv->count, .meets = each && recv->count > 0});
    else lwm_away(call, told->count, told->type);
    return lwm_meets(call, each ? recv->count : 0, recv->type);
}

static bool among_nodes(struct lwm_call *call, const void *in, void *out, size_t bytes, int root)
{
    /* The block that a rank gives itself in place. */
    const void *give = in == LW_IN_PLACE ? (char *)out + (size_t)call->comm->rank * bytes : in;
    switch (call->kind) {
    case LWM_BCAST: return lwm_nodes_bcast(call, call->comm->rank == root ? (void *)in : out, bytes, root);
    case LWM_GATHER: return lwm_nodes_gather(call, give, out, bytes, root);
    case LWM_SCATTER: return lwm_nodes_scatter(call, in, out, bytes, root);
    default: return lwm_nodes_allgather(call, give, out, bytes);
    }
}

static lw_status in_team(const struct lwm_call *call, const void *in, void *out, size_t bytes, int root)
{
    lw_comm *team = call->comm->team;
    switch (call->kind) {
    case LWM_BCAST: return lw_bcast(team, call->comm->rank == root ? (void *)in : out, bytes, LW_I8, root);
    case LWM_GATHER: return lw_gather(team, in, out, bytes, LW_I8, root);
    case LWM_SCATTER: return lw_scatter(team, in, out, bytes, LW_I8, root);
    case LWM_ALLGATHER: return lw_allgather(team, in, out, bytes, LW_I8);
    default: return lw_alltoall(team, in, out, bytes, LW_I8);
    }
}

bool lwm_move(struct lwm_call *call, enum lwm_kind kind, struct lwm_buffer send, struct lwm_buffer recv, int root, MPI_Comm handle)
{
    static const lw_collective collectives[] = {[LWM_BCAST] = LW_BCAST, [LWM_GATHER] = LW_GATHER, [LWM_SCATTER] = LW_SCATTER,
                                                [LWM_ALLGATHER] = LW_ALLGATHER, [LWM_ALLTOALL] = LW_ALLTOALL};
    bool repeats = kind != LWM_GATHER && kind != LWM_SCATTER;
    bool alike = repeats && send.at != LWM_IN_PLACE && send.type == recv.type && send.count == recv.count;
    if (!lwm_begin(call, kind, handle)) return away(call, kind, &send, &recv, root, alike);
    struct lwm_comm *comm = call->comm;
    struct lwm_move m;
    if (!lwm_move_of(kind, comm, &send, &recv, root, &m)) return lwm_leave(call, LWM_WHY_ARGUMENT);
    const struct lwm_type *type = m.takes ? &m.to : &m.from;
    size_t bytes = m.bytes, given_bytes = bytes * m.give, taken_bytes = bytes * m.take;
    if (bytes == 0) {
        if (alike) keep(call, &recv, type, bytes, root);
        return lwm_nothing(call);
    }
    bool between = comm->way == LWM_NODES;
    if (between && kind != LWM_BCAST && (kind == LWM_ALLTOALL || !lwm_nodes_can(comm, bytes))) return lwm_leave(call, LWM_WHY_NODES);
    call->shape = (struct lwm_shape){.collective = collectives[kind], .count = bytes, .type = LW_I8, .root = root};
    if (!lwm_mine(call, bytes, true)) {
        if (alike) keep(call, &recv, type, bytes, root);
        return false;
    }
    char *out = m.takes ? room(&recv, &m.to, taken_bytes) : NULL;
    /* The block that the root gives itself in place still needs a destination among nodes. */
    if (m.take_in_place) out = between ? lwm_scratch(LWM_SCRATCH_OUT, bytes) : LW_IN_PLACE;
    if ((m.takes || m.take_in_place) && !out) return lwm_short(call);
    const void *in = m.give_in_place ? LW_IN_PLACE : NULL;
    if (m.gives) {
        struct lwm_buffer all = {send.at, send.count * (MPI_Count)m.give, send.type};
        in = given(call, &all, &m.from, given_bytes);
        if (in && m.takes) in = apart(in, given_bytes, out, taken_bytes);
        if (!in) return lwm_short(call);
    } else if (m.give_in_place && !m.to.dense) {
        size_t first = kind == LWM_ALLTOALL ? 0 : (size_t)comm->rank, many = m.give;
        const char *mine = (char *)recv.at + (ptrdiff_t)first * recv.count * m.to.extent;
        if (!lwm_pack(mine, (size_t)recv.count * many, recv.type, &m.to, out + first * bytes, handle)) return lwm_short(call);
    }
    if (between && !among_nodes(call, in, out, bytes, root)) return true;
    lw_status status = between ? LW_OK : in_team(call, in, out, bytes, root);
    if (status == LW_OK && m.takes && !taken(call, &recv, &m.to, out, (size_t)recv.count * m.take)) return lwm_short(call);
    lwm_done(call, status);
    if (status == LW_OK && alike) keep(call, &recv, type, bytes, root);
    return true;
}
