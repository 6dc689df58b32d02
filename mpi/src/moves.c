/*
 * Collectives that move data, and the barrier: the data are bytes to lineweave, whatever the types.
 *
 * MPI lets ranks describe one signature by different types, so types decide nothing. A rank whose type has gaps or
 * another order packs the data that it gives and unpacks the data that it takes; the other ranks do not notice.
 */
#include "collectives.h"
#include "nodes.h"

#include <string.h>

/* Describes the type of a buffer, and the bytes in it. False when the host is to judge it. */
static bool describe(const struct lwm_buffer *buffer, struct lwm_type *info, size_t *bytes)
{
    if (buffer->count < 0 || buffer->at == LWM_IN_PLACE || !lwm_type_of(buffer->type, info)) return false;
    if (__builtin_mul_overflow((size_t)buffer->count, info->size, bytes)) return false;
    /* A null buffer is right for types of absolute addresses only. */
    return buffer->at || *bytes == 0 || !info->dense;
}

static struct lwm_shape of_bytes(lw_collective collective, size_t bytes, int root)
{
    return (struct lwm_shape){.collective = collective, .count = bytes, .type = LW_I8, .root = root};
}

static bool root_is_rank(const struct lwm_call *call, int root) { return root >= 0 && root < call->comm->size; }

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

bool lwm_bcast(struct lwm_call *call, struct lwm_buffer buffer, int root, MPI_Comm handle)
{
    if (!lwm_begin(call, LWM_BCAST, handle)) return lwm_away_again(call, (struct lwm_hot){.root = root, .type = buffer.type, .count = buffer.count});
    struct lwm_type info;
    size_t bytes;
    if (!root_is_rank(call, root) || !describe(&buffer, &info, &bytes)) return lwm_leave(call, LWM_WHY_ARGUMENT);
    if (bytes == 0) {
        keep(call, &buffer, &info, bytes, root);
        return lwm_nothing(call);
    }
    call->shape = of_bytes(LW_BCAST, bytes, root);
    if (!lwm_mine(call, bytes, true)) {
        keep(call, &buffer, &info, bytes, root);
        return false;
    }
    bool gives = call->comm->rank == root;
    void *data = gives ? (void *)given(call, &buffer, &info, bytes) : room(&buffer, &info, bytes);
    if (!data) return lwm_short(call);
    lw_status status = LW_OK;
    if (call->comm->way == LWM_NODES) {
        if (!lwm_nodes_bcast(call, data, bytes, root)) return true;
    } else {
        status = lw_bcast(call->comm->team, data, bytes, LW_I8, root);
    }
    if (status == LW_OK && !gives && !taken(call, &buffer, &info, data, (size_t)buffer.count)) return lwm_short(call);
    lwm_done(call, status);
    if (status == LW_OK) keep(call, &buffer, &info, bytes, root);
    return true;
}

bool lwm_gather(struct lwm_call *call, struct lwm_buffer send, struct lwm_buffer recv, int root, MPI_Comm handle)
{
    const struct lwm_buffer *told = send.at == LWM_IN_PLACE ? &recv : &send;
    if (!lwm_begin(call, LWM_GATHER, handle)) return lwm_away(call, told->count, told->type);
    struct lwm_comm *comm = call->comm;
    size_t ranks = (size_t)comm->size, own = (size_t)comm->rank;
    if (!root_is_rank(call, root)) return lwm_leave(call, LWM_WHY_ARGUMENT);
    bool takes = comm->rank == root, in_place = takes && send.at == LWM_IN_PLACE;
    struct lwm_type from, to;
    size_t bytes = 0, block = 0;
    if (takes && !describe(&recv, &to, &block)) return lwm_leave(call, LWM_WHY_ARGUMENT);
    if (in_place) bytes = block;
    else if (!describe(&send, &from, &bytes)) return lwm_leave(call, LWM_WHY_ARGUMENT);
    if (takes && bytes != block) return lwm_leave(call, LWM_WHY_ARGUMENT);
    if (takes && !in_place && lwm_same_move(LWM_GATHER, comm->rank, send, recv)) return lwm_leave(call, LWM_WHY_ARGUMENT);
    if (bytes == 0) return lwm_nothing(call);
    if (comm->way == LWM_NODES && !lwm_nodes_can(comm, bytes)) return lwm_leave(call, LWM_WHY_NODES);
    call->shape = of_bytes(LW_GATHER, bytes, root);
    if (!lwm_mine(call, bytes, true)) return false;
    char *out = takes ? room(&recv, &to, bytes * ranks) : NULL;
    if (takes && !out) return lwm_short(call);
    const void *in = LW_IN_PLACE;
    if (!in_place) {
        in = given(call, &send, &from, bytes);
        if (in && takes) in = apart(in, bytes, out, bytes * ranks);
        if (!in) return lwm_short(call);
    } else if (!to.dense) {
        const char *mine = (char *)recv.at + (ptrdiff_t)own * recv.count * to.extent;
        if (!lwm_pack(mine, (size_t)recv.count, recv.type, &to, out + own * bytes, handle)) return lwm_short(call);
    }
    lw_status status = LW_OK;
    if (comm->way == LWM_NODES) {
        if (!lwm_nodes_gather(call, in_place ? out + own * bytes : in, out, bytes, root)) return true;
    } else {
        status = lw_gather(comm->team, in, out, bytes, LW_I8, root);
    }
    if (status == LW_OK && takes && !taken(call, &recv, &to, out, (size_t)recv.count * ranks)) return lwm_short(call);
    return lwm_done(call, status);
}

bool lwm_scatter(struct lwm_call *call, struct lwm_buffer send, struct lwm_buffer recv, int root, MPI_Comm handle)
{
    const struct lwm_buffer *told = recv.at == LWM_IN_PLACE ? &send : &recv;
    if (!lwm_begin(call, LWM_SCATTER, handle)) return lwm_away(call, told->count, told->type);
    struct lwm_comm *comm = call->comm;
    if (!root_is_rank(call, root)) return lwm_leave(call, LWM_WHY_ARGUMENT);
    size_t ranks = (size_t)comm->size;
    bool gives = comm->rank == root, in_place = gives && recv.at == LWM_IN_PLACE;
    struct lwm_type from, to;
    size_t bytes = 0, block = 0;
    if (gives && !describe(&send, &from, &block)) return lwm_leave(call, LWM_WHY_ARGUMENT);
    if (in_place) bytes = block;
    else if (!describe(&recv, &to, &bytes)) return lwm_leave(call, LWM_WHY_ARGUMENT);
    if (gives && bytes != block) return lwm_leave(call, LWM_WHY_ARGUMENT);
    if (gives && !in_place && lwm_same_move(LWM_SCATTER, comm->rank, send, recv)) return lwm_leave(call, LWM_WHY_ARGUMENT);
    if (bytes == 0) return lwm_nothing(call);
    if (comm->way == LWM_NODES && !lwm_nodes_can(comm, bytes)) return lwm_leave(call, LWM_WHY_NODES);
    call->shape = of_bytes(LW_SCATTER, bytes, root);
    if (!lwm_mine(call, bytes, true)) return false;
    const void *in = NULL;
    void *out = in_place ? LW_IN_PLACE : room(&recv, &to, bytes);
    if (gives) {
        struct lwm_buffer all = {send.at, send.count * (MPI_Count)ranks, send.type};
        in = given(call, &all, &from, bytes * ranks);
        if (in && !in_place) in = apart(in, bytes * ranks, out, bytes);
        if (!in) return lwm_short(call);
    }
    /* The block that the root gives itself in place still needs a destination. */
    if (comm->way == LWM_NODES && in_place) out = lwm_scratch(LWM_SCRATCH_OUT, bytes);
    if (!out) return lwm_short(call);
    lw_status status = LW_OK;
    if (comm->way == LWM_NODES) {
        if (!lwm_nodes_scatter(call, in, out, bytes, root)) return true;
    } else {
        status = lw_scatter(comm->team, in, out, bytes, LW_I8, root);
    }
    if (status == LW_OK && !in_place && !taken(call, &recv, &to, out, (size_t)recv.count)) return lwm_short(call);
    return lwm_done(call, status);
}

/* Carries out an allgather or alltoall, in which every rank takes a block of each. */
static bool exchange(struct lwm_call *call, enum lwm_kind kind, struct lwm_buffer send, struct lwm_buffer recv, MPI_Comm handle)
{
    bool alike = send.at != LWM_IN_PLACE && send.type == recv.type && send.count == recv.count;
    if (!lwm_begin(call, kind, handle)) {
        if (alike) lwm_away_again(call, (struct lwm_hot){.type = recv.type, .count = recv.count, .meets = recv.count > 0});
        else lwm_away(call, recv.count, recv.type);
        return lwm_meets(call, recv.count, recv.type);
    }
    struct lwm_comm *comm = call->comm;
    bool gathers = kind == LWM_ALLGATHER;
    size_t ranks = (size_t)comm->size, own = (size_t)comm->rank, give = gathers ? 1 : ranks;
    bool in_place = send.at == LWM_IN_PLACE;
    struct lwm_type from, to;
    size_t bytes, block;
    if (!describe(&recv, &to, &block)) return lwm_leave(call, LWM_WHY_ARGUMENT);
    if (in_place) bytes = block;
    else if (!describe(&send, &from, &bytes)) return lwm_leave(call, LWM_WHY_ARGUMENT);
    if (bytes != block) return lwm_leave(call, LWM_WHY_ARGUMENT);
    if (!in_place && lwm_same_move(kind, comm->rank, send, recv)) return lwm_leave(call, LWM_WHY_ARGUMENT);
    if (bytes == 0) {
        if (alike) keep(call, &recv, &to, bytes, 0);
        return lwm_nothing(call);
    }
    if (comm->way == LWM_NODES && !(gathers && lwm_nodes_can(comm, bytes))) return lwm_leave(call, LWM_WHY_NODES);
    call->shape = of_bytes(gathers ? LW_ALLGATHER : LW_ALLTOALL, bytes, 0);
    if (!lwm_mine(call, bytes, true)) {
        if (alike) keep(call, &recv, &to, bytes, 0);
        return false;
    }
    char *out = room(&recv, &to, bytes * ranks);
    if (!out) return lwm_short(call);
    const void *in = LW_IN_PLACE;
    if (!in_place) {
        struct lwm_buffer all = {send.at, send.count * (MPI_Count)give, send.type};
        in = given(call, &all, &from, bytes * give);
        if (in) in = apart(in, bytes * give, out, bytes * ranks);
        if (!in) return lwm_short(call);
    } else if (!to.dense) {
        size_t first = gathers ? own : 0, many = gathers ? 1 : ranks;
        const char *mine = (char *)recv.at + (ptrdiff_t)first * recv.count * to.extent;
        if (!lwm_pack(mine, (size_t)recv.count * many, recv.type, &to, out + first * bytes, comm->handle)) return lwm_short(call);
    }
    lw_status status = LW_OK;
    if (comm->way == LWM_NODES) {
        if (!lwm_nodes_allgather(call, in_place ? out + own * bytes : in, out, bytes)) return true;
    } else if (gathers) {
        status = lw_allgather(comm->team, in, out, bytes, LW_I8);
    } else {
        status = lw_alltoall(comm->team, in, out, bytes, LW_I8);
    }
    if (status == LW_OK && !taken(call, &recv, &to, out, (size_t)recv.count * ranks)) return lwm_short(call);
    lwm_done(call, status);
    if (status == LW_OK && alike) keep(call, &recv, &to, bytes, 0);
    return true;
}

bool lwm_allgather(struct lwm_call *call, struct lwm_buffer send, struct lwm_buffer recv, MPI_Comm comm)
{
    return exchange(call, LWM_ALLGATHER, send, recv, comm);
}

bool lwm_alltoall(struct lwm_call *call, struct lwm_buffer send, struct lwm_buffer recv, MPI_Comm comm)
{
    return exchange(call, LWM_ALLTOALL, send, recv, comm);
}
