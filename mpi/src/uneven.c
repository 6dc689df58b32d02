/*
 * Collectives whose blocks have lengths and places of their own.
 *
 * lineweave needs the lengths on all ranks and the blocks in a row. For gatherv and scatterv MPI gives the lengths to the root only, which first
 * tells the others. Blocks with gaps, in another order or of derived types go through a row that is packed and unpacked here.
 */
#include "blocks.h"
#include "nodes.h"

#include <string.h>

long long lwm_number(const void *list, bool wide, int i)
{
    return wide ? ((const MPI_Count *)list)[i] : ((const int *)list)[i];
}

bool lwm_block_of(const struct lwm_blocks *blocks, int i, struct lwm_block *to)
{
    long long count = lwm_number(blocks->counts, blocks->wide, i), place = 0;
    to->type = blocks->types ? blocks->types[i] : blocks->type;
    if (count < 0 || !lwm_type_of(to->type, &to->info)) return false;
    if (blocks->places) {
        place = blocks->wide ? ((const MPI_Aint *)blocks->places)[i] : ((const int *)blocks->places)[i];
        if (!blocks->types) place *= to->info.extent;
    }
    to->at = (char *)((uintptr_t)blocks->at + (uintptr_t)place);
    to->count = (size_t)count;
    to->bytes = to->count * to->info.size;
    if (count == 1 && to->info.run) {
        to->at = (char *)((uintptr_t)to->at + to->info.first);
        to->info.dense = true;
    }
    return true;
}

bool lwm_measure(const struct lwm_blocks *blocks, int ranks, size_t *lengths, size_t *total, bool *row)
{
    if (blocks->at == LWM_IN_PLACE) return false;
    *total = 0;
    *row = true;
    for (int i = 0; i < ranks; i++) {
        struct lwm_block block;
        if (!lwm_block_of(blocks, i, &block)) return false;
        lengths[i] = block.bytes;
        if (block.bytes && (!block.info.dense || block.at != blocks->at + *total)) *row = false;
        *total += block.bytes;
    }
    return true;
}

/* The value for no block to leave out. */
#define NONE (-1)

/* Packs all blocks but one into a row, or unpacks such a row into the blocks. */
static bool move_all(bool packs, const struct lwm_blocks *blocks, int ranks, int but, char *row, MPI_Comm comm)
{
    for (int i = 0; i < ranks; i++) {
        struct lwm_block b;
        if (i == but) continue;
        if (!lwm_block_of(blocks, i, &b)) return false;
        if (b.bytes && !(packs ? lwm_pack(b.at, b.count, b.type, &b.info, row, comm) : lwm_unpack(row, b.at, b.count, b.type, &b.info, comm))) return false;
        row += b.bytes;
    }
    return true;
}

/* Moves the block that a rank gives itself, through `between` where both types have gaps. */
static bool move_own(const struct lwm_blocks *send, const struct lwm_blocks *recv, int rank, char *between, MPI_Comm comm)
{
    struct lwm_block from, to;
    if (!lwm_block_of(send, rank, &from) || !lwm_block_of(recv, rank, &to)) return false;
    if (to.info.dense) return lwm_pack(from.at, from.count, from.type, &from.info, to.at, comm);
    if (from.info.dense) return lwm_unpack(from.at, to.at, to.count, to.type, &to.info, comm);
    return lwm_pack(from.at, from.count, from.type, &from.info, between, comm) &&
           lwm_unpack(between, to.at, to.count, to.type, &to.info, comm);
}

static size_t *lengths_for(int ranks, int lists)
{
    return lwm_scratch(LWM_SCRATCH_COUNTS, sizeof(size_t) * (size_t)ranks * (size_t)lists + 1);
}

static void *at_least(void *start, size_t bytes, int which) { return start || bytes ? start : lwm_scratch(which, 1); }

/* Returns the bytes of one buffer to give in a block of `wanted` bytes. */
static const void *one_given(struct lwm_call *call, const struct lwm_buffer *buffer, size_t wanted)
{
    struct lwm_type info;
    if (!lwm_type_of(buffer->type, &info)) return NULL;
    size_t bytes = (size_t)buffer->count * info.size;
    if (info.dense && bytes >= wanted) return at_least(buffer->at, wanted, LWM_SCRATCH_IN);
    void *packed = lwm_scratch(LWM_SCRATCH_IN, bytes > wanted ? bytes : wanted);
    bool done = packed && lwm_pack(buffer->at, (size_t)buffer->count, buffer->type, &info, packed, call->comm->handle);
    return done ? packed : NULL;
}

/* Begins any of these calls. */
static bool begin(struct lwm_call *call, enum lwm_kind kind, MPI_Comm comm)
{
    /* Blocks have no common length that could be told. */
    if (!lwm_begin(call, kind, comm)) return lwm_away(call, 0, lwm_host.byte);
    return call->comm->way == LWM_NODES ? lwm_leave(call, LWM_WHY_NODES) : true;
}

bool lwm_meets_least(struct lwm_call *call, const void *counts, bool wide, MPI_Datatype type)
{
    if (!call->comm || call->comm->way != LWM_NEW || !counts) return false;
    long long least = lwm_number(counts, wide, 0);
    for (int i = 1; i < call->comm->size; i++) {
        long long count = lwm_number(counts, wide, i);
        if (count < least) least = count;
    }
    return lwm_meets(call, least, type);
}

bool lwm_gatherv(struct lwm_call *call, enum lwm_kind kind, struct lwm_buffer send, struct lwm_blocks recv, int root, MPI_Comm handle)
{
    bool all = kind == LWM_ALLGATHERV;
    if (!begin(call, kind, handle)) return all && lwm_meets_least(call, recv.counts, recv.wide, recv.type);
    struct lwm_comm *comm = call->comm;
    int ranks = comm->size, rank = comm->rank;
    if (root < 0 || root >= ranks) return lwm_leave(call, LWM_WHY_ARGUMENT);
    bool takes = all || rank == root, in_place = takes && send.at == LWM_IN_PLACE, row = false;
    size_t *lengths = lengths_for(ranks, 1), total = 0, bytes = 0;
    struct lwm_type info;
    if (!lengths) return lwm_short(call);
    if (!in_place && !lwm_describe(&send, &info, &bytes)) return lwm_leave(call, LWM_WHY_ARGUMENT);
    if (takes && !lwm_measure(&recv, ranks, lengths, &total, &row)) return lwm_leave(call, LWM_WHY_ARGUMENT);
    if (takes && !in_place && lwm_same_block(kind, rank, send, &recv)) return lwm_leave(call, LWM_WHY_ARGUMENT);
    if (all && total == 0) return lwm_nothing(call);
    if (!lwm_mine(call, all ? total : takes ? lengths[root] : bytes, all)) return false;
    lw_status status = all ? LW_OK : lw_bcast(comm->team, lengths, sizeof *lengths * (size_t)ranks, LW_I8, root);
    if (status != LW_OK) return lwm_done(call, status);
    void *out = takes ? (row ? at_least(recv.at, total, LWM_SCRATCH_OUT) : lwm_scratch(LWM_SCRATCH_OUT, total)) : NULL;
    const void *in = LW_IN_PLACE;
    if (in_place) {
        if (out && !row && !move_all(true, &recv, ranks, NONE, out, handle)) out = NULL;
    } else {
        in = one_given(call, &send, lengths[rank]);
    }
    if (!in || (takes && !out)) return lwm_short(call);
    status = all ? lw_allgatherv(comm->team, in, out, lengths, LW_I8) : lw_gatherv(comm->team, in, out, lengths, LW_I8, root);
    if (status == LW_OK && takes && !row && !move_all(false, &recv, ranks, NONE, out, handle)) return lwm_short(call);
    return lwm_done(call, status);
}

bool lwm_scatterv(struct lwm_call *call, struct lwm_blocks send, struct lwm_buffer recv, int root, MPI_Comm handle)
{
    if (!begin(call, LWM_SCATTERV, handle)) return false;
    struct lwm_comm *comm = call->comm;
    int ranks = comm->size;
    if (root < 0 || root >= ranks) return lwm_leave(call, LWM_WHY_ARGUMENT);
    bool gives = comm->rank == root, in_place = gives && recv.at == LWM_IN_PLACE, row = false;
    size_t *lengths = lengths_for(ranks, 1), total = 0, bytes = 0;
    if (!lengths) return lwm_short(call);
    struct lwm_type info = {0};
    if (!in_place && !lwm_describe(&recv, &info, &bytes)) return lwm_leave(call, LWM_WHY_ARGUMENT);
    if (gives && !lwm_measure(&send, ranks, lengths, &total, &row)) return lwm_leave(call, LWM_WHY_ARGUMENT);
    if (gives && !in_place && lwm_same_block(LWM_SCATTERV, root, recv, &send)) return lwm_leave(call, LWM_WHY_ARGUMENT);
    if (!lwm_mine(call, gives ? lengths[root] : bytes, false)) return false;
    lw_status status = lw_bcast(comm->team, lengths, sizeof *lengths * (size_t)ranks, LW_I8, root);
    if (status != LW_OK) return lwm_done(call, status);
    const void *in = NULL;
    if (gives) {
        void *packed = row ? at_least(send.at, total, LWM_SCRATCH_IN) : lwm_scratch(LWM_SCRATCH_IN, total);
        in = packed && (row || move_all(true, &send, ranks, NONE, packed, handle)) ? packed : NULL;
        if (!in) return lwm_short(call);
    }
    size_t own = lengths[comm->rank];
    void *out = LW_IN_PLACE;
    bool direct = true;
    if (!in_place) {
        direct = info.dense && bytes >= own;
        out = direct ? at_least(recv.at, own, LWM_SCRATCH_OUT) : lwm_scratch(LWM_SCRATCH_OUT, own);
        if (!out) return lwm_short(call);
    }
    status = lw_scatterv(comm->team, in, out, lengths, LW_I8, root);
    if (status == LW_OK && !direct) {
        size_t whole = info.size ? (own < bytes ? own : bytes) / info.size : 0;
        if (!lwm_unpack(out, recv.at, whole, recv.type, &info, handle)) return lwm_short(call);
        /* More came than the buffer holds: MPI calls that truncation. */
        if (own > bytes) return lwm_done(call, LW_ERR_COUNT);
    }
    return lwm_done(call, status);
}

bool lwm_alltoallv(struct lwm_call *call, enum lwm_kind kind, struct lwm_blocks send, struct lwm_blocks recv, MPI_Comm handle)
{
    if (!begin(call, kind, handle)) return false;
    struct lwm_comm *comm = call->comm;
    int ranks = comm->size;
    bool in_place = send.at == LWM_IN_PLACE, give_row = false, take_row = false;
    size_t *gives = lengths_for(ranks, 2), *takes = gives ? gives + ranks : NULL, given = 0, total = 0;
    if (!gives) return lwm_short(call);
    if (!in_place && !lwm_measure(&send, ranks, gives, &given, &give_row)) return lwm_leave(call, LWM_WHY_ARGUMENT);
    if (!lwm_measure(&recv, ranks, takes, &total, &take_row)) return lwm_leave(call, LWM_WHY_ARGUMENT);
    if (!in_place && lwm_same_blocks(kind, &send, &recv)) return lwm_leave(call, LWM_WHY_ARGUMENT);
    if (!lwm_mine(call, total, false)) return false;
    /* The block that a rank gives itself goes through no row, unless leaving it out would tear a row that lies as it is. If its length differs
     * from the one that this rank takes of itself, all ranks are told so below. */
    int rank = comm->rank, but = NONE;
    bool edge = rank == 0 || rank == ranks - 1, torn = edge ? give_row && take_row : give_row || take_row;
    if (!in_place && !torn && gives[rank] == takes[rank]) but = rank;
    size_t own = but == NONE ? 0 : gives[rank], skipped = rank == 0 ? own : 0;
    if (but != NONE) gives[rank] = takes[rank] = 0;
    char *out = take_row ? at_least(recv.at, total, LWM_SCRATCH_OUT) : lwm_scratch(LWM_SCRATCH_OUT, total);
    char *row = give_row ? at_least(send.at, given, LWM_SCRATCH_IN) : lwm_scratch(LWM_SCRATCH_IN, given);
    bool packed = row && out;
    if (packed && in_place && !take_row) packed = move_all(true, &recv, ranks, NONE, out, handle);
    if (packed && !in_place && !give_row) packed = move_all(true, &send, ranks, but, row, handle);
    if (!packed) return lwm_short(call);
    const void *in = in_place ? LW_IN_PLACE : row + (give_row ? skipped : 0);
    char *taken = out + (take_row ? skipped : 0);
    lw_status status = lw_alltoallv(comm->team, in, gives, taken, takes, LW_I8);
    if (status == LW_OK && !take_row && !move_all(false, &recv, ranks, but, taken, handle)) return lwm_short(call);
    if (status == LW_OK && own && !move_own(&send, &recv, rank, row, handle)) return lwm_short(call);
    return lwm_done(call, status);
}
