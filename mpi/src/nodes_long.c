/*
 * Long messages among several nodes: each node has several leaders, which the host serves side by side, and messages go in pieces, so
 * that a node works on one piece while the host moves another (after Bayatpour et al. 2017, who have several leaders, and Luo et al.
 * 2020, who let the phases overlap).
 *
 * 1. Pieces go one after the other, in the same order on all ranks. The part of a piece that concerns one node is done by lineweave.
 * 2. Leaders start an operation of the host on their part of it, and do not wait for it.
 * 3. When the next piece has come so far, they wait for it; the data that came are passed to the node.
 *
 * Leaders of one place talk only to each other, on a communicator of theirs. A leader that waits in the host waits for others of its
 * place, which wait for nothing that comes later; so there is no cycle of waits.
 */
#include "nodes.h"

#include <stdlib.h>
#include <string.h>

/* The longest piece, and the shortest. */
#define PIECE ((size_t)1 << 20)
#define LEAST ((size_t)1 << 19)
/* Operations of the host that a leader has under way. */
#define AHEAD 2

/* Returns the bytes of a piece: a fourth of the message, within limits. */
static size_t piece_of(size_t bytes)
{
    size_t piece = bytes / 4;
    return piece < LEAST ? LEAST : piece > PIECE ? PIECE : piece;
}

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

bool lwm_nodes_bcast_long(struct lwm_call *call, void *data, size_t bytes, int root)
{
    struct lwm_nodes *nodes = call->comm->nodes;
    int from = nodes->node[root];
    bool at_root = nodes->mine == from, leads = nodes->local < nodes->leaders;
    size_t piece = piece_of(bytes), pieces = (bytes + piece - 1) / piece, leaders = (size_t)nodes->leaders;
    MPI_Request started[AHEAD] = {lwm_host.no_request, lwm_host.no_request};
    /* Leaders take turns; this one's next piece to start. */
    size_t next = (size_t)nodes->local;
    for (size_t k = 0; k < pieces; k++) {
        char *at = (char *)data + k * piece;
        size_t n = least(piece, bytes - k * piece);
        int who = (int)(k % leaders);
        bool mine = leads && who == nodes->local;
        if (at_root) INNER(lw_bcast(nodes->team, at, n, LW_I8, nodes->place[root]));
        /* The root's node starts the pieces that it has; the others start those that may come while they work on this piece. */
        size_t until = at_root ? k + 1 : least(pieces, k + AHEAD * leaders);
        for (; leads && next < until; next += leaders) {
            MPI_Request *request = &started[next / leaders % AHEAD];
            size_t many = least(piece, bytes - next * piece);
            OUTER(true, lwm_host.Wait(request, LWM_STATUS_IGNORE));
            OUTER(true, lwm_host.Ibcast((char *)data + next * piece, (int)many, lwm_host.byte, from, nodes->between, request));
        }
        if (at_root) {
            if (leads) lwm_progress(NULL);
            continue;
        }
        OUTER(mine, lwm_host.Wait(&started[k / leaders % AHEAD], LWM_STATUS_IGNORE));
        INNER(lw_bcast(nodes->team, at, n, LW_I8, who));
    }
    for (int i = 0; i < AHEAD; i++) OUTER(leads, lwm_host.Wait(&started[i], LWM_STATUS_IGNORE));
    return true;
}

/* Computes how many of a piece's elements each rank of the node combines for all: leaders a part each, the others nothing. */
static void cut(const struct lwm_nodes *nodes, size_t elements, size_t *lengths)
{
    size_t leaders = (size_t)nodes->leaders, part = (elements + leaders - 1) / leaders;
    for (size_t p = 0; p < (size_t)nodes->members[nodes->mine]; p++) {
        lengths[p] = p < leaders && p * part < elements ? least(part, elements - p * part) : 0;
    }
}

/* Reduces to a root: through the leaders at its place, so that nothing has to be passed on; through the first ones where none leads
 * there. */
static bool reduce_long(struct lwm_call *call, const char *send, char *recv, size_t count, MPI_Datatype type, MPI_Op op,
                        const struct lwm_type *info, int combine, int root)
{
    struct lwm_nodes *nodes = call->comm->nodes;
    size_t width = info->step, many = piece_of(count * width) / width, room = many * width;
    int place = nodes->place[root], through = place < nodes->leaders ? place : 0;
    bool here = nodes->mine == nodes->node[root], leads = nodes->local == through, takes = call->comm->rank == root;
    char *parts = lwm_scratch(LWM_SCRATCH_NODES, AHEAD * room);
    if (!parts) return lwm_nodes_failed(call, LW_ERR_MEMORY);
    MPI_Request started[AHEAD] = {lwm_host.no_request, lwm_host.no_request};
    for (size_t k = 0, done = 0; done < count; k++, done += many) {
        size_t n = least(many, count - done);
        const char *in = send + done * width;
        /* The part of two pieces before, which the host may still read. */
        OUTER(leads, lwm_host.Wait(&started[k % AHEAD], LWM_STATUS_IGNORE));
        char *part = takes ? recv + done * width : parts + k % AHEAD * room;
        if (!nodes->team && in != part) memcpy(part, in, n * width);
        INNER(lw_reduce(nodes->team, in == part && leads ? LW_IN_PLACE : in, part, n, info->element, combine, through));
        const void *from = here ? LWM_IN_PLACE : part;
        OUTER(leads, lwm_host.Ireduce(from, part, (int)n, type, op, nodes->node[root], nodes->between, &started[k % AHEAD]));
        if (!here || through == place) continue;
        OUTER(leads, lwm_host.Wait(&started[k % AHEAD], LWM_STATUS_IGNORE));
        INNER(lw_bcast(nodes->team, part, n * width, LW_I8, through));
    }
    for (int i = 0; i < AHEAD; i++) OUTER(leads, lwm_host.Wait(&started[i], LWM_STATUS_IGNORE));
    return true;
}

bool lwm_nodes_fold_long(struct lwm_call *call, const void *send, void *recv, size_t count, MPI_Datatype type, MPI_Op op,
                         const struct lwm_type *info, int combine, int root)
{
    if (root >= 0) return reduce_long(call, send, recv, count, type, op, info, combine, root);
    struct lwm_nodes *nodes = call->comm->nodes;
    size_t width = info->step, many = piece_of(count * width) / width, pieces = (count + many - 1) / many;
    size_t room = (many + (size_t)nodes->leaders - 1) / (size_t)nodes->leaders * width;
    bool leads = nodes->local < nodes->leaders;
    char *parts = leads ? lwm_scratch(LWM_SCRATCH_NODES, AHEAD * room) : NULL;
    size_t *lengths = lwm_scratch(LWM_SCRATCH_COUNTS, sizeof *lengths * (size_t)nodes->members[nodes->mine]);
    if ((leads && !parts) || !lengths) return lwm_nodes_failed(call, LW_ERR_MEMORY);
    MPI_Request started[AHEAD] = {lwm_host.no_request, lwm_host.no_request};
    for (size_t k = 0; k <= pieces; k++) {
        if (k < pieces) {
            size_t n = least(many, count - k * many);
            const char *in = (const char *)send + k * many * width;
            char *part = leads ? parts + k % AHEAD * room : NULL;
            cut(nodes, n, lengths);
            if (!nodes->team) memcpy(part, in, n * width);
            INNER(lw_reduce_scatter(nodes->team, in, part, lengths, info->element, combine));
            int own = (int)lengths[nodes->local];
            OUTER(leads, lwm_host.Iallreduce(LWM_IN_PLACE, part, own, type, op, nodes->between, &started[k % AHEAD]));
        }
        if (k == 0) continue;
        /* The previous piece is completed. */
        size_t n = least(many, count - (k - 1) * many);
        char *out = (char *)recv + (k - 1) * many * width, *part = leads ? parts + (k - 1) % AHEAD * room : NULL;
        OUTER(leads, lwm_host.Wait(&started[(k - 1) % AHEAD], LWM_STATUS_IGNORE));
        cut(nodes, n, lengths);
        if (!nodes->team) memcpy(out, part, n * width);
        INNER(lw_allgatherv(nodes->team, part, out, lengths, info->element));
    }
    return true;
}

/* Returns the number of a node's ranks whose blocks go through leader l: every leaders-th from its place on. */
static int led_by(const struct lwm_nodes *nodes, int node, int l)
{
    return (nodes->members[node] - l + nodes->leaders - 1) / nodes->leaders;
}

bool lwm_nodes_allgather_long(struct lwm_call *call, const void *send, void *recv, size_t bytes)
{
    struct lwm_nodes *nodes = call->comm->nodes;
    int leaders = nodes->leaders, members = nodes->members[nodes->mine], all = 0;
    bool leads = nodes->local < leaders;
    /* The first leader has the most ranks. */
    for (int n = 0; n < nodes->many; n++) all += led_by(nodes, n, 0);
    size_t row_bytes = (size_t)all * bytes, own = leads ? (size_t)led_by(nodes, nodes->mine, nodes->local) * bytes : 0;
    char *local = leads ? lwm_scratch(LWM_SCRATCH_NODES, own) : NULL, *own_row = leads ? lwm_scratch(LWM_SCRATCH_NODES_2, row_bytes) : NULL;
    char *other_row = lwm_scratch(LWM_SCRATCH_NODES_3, row_bytes);
    size_t *lengths = lwm_scratch(LWM_SCRATCH_COUNTS, sizeof *lengths * (size_t)members);
    int *lists = malloc(2 * sizeof *lists * (size_t)nodes->many), *starts = lists + nodes->many;
    bool fine = (!leads || (local && own_row)) && other_row && lengths && lists;
    lw_status status = fine ? LW_OK : LW_ERR_MEMORY;
    /* 1. The blocks go to the leaders, which often are all ranks. */
    if (members == leaders && fine) memcpy(local, send, bytes);
    for (int l = 0; status == LW_OK && members > leaders && l < leaders; l++) {
        for (int p = 0; p < members; p++) lengths[p] = p % leaders == l ? bytes : 0;
        status = lw_gatherv(nodes->team, send, local, lengths, LW_I8, l);
    }
    /* 2. The blocks go between nodes, by all leaders at the same time. */
    MPI_Request started = lwm_host.no_request;
    int done = 0;
    if (status == LW_OK && leads) {
        for (int n = 0, sum = 0; n < nodes->many; n++) {
            lists[n] = (int)bytes * led_by(nodes, n, nodes->local);
            starts[n] = sum;
            sum += lists[n];
        }
        MPI_Datatype byte = lwm_host.byte;
        done = lwm_host.Iallgatherv(local, (int)own, byte, own_row, lists, starts, byte, nodes->between, &started);
    }
    /* 3. The blocks go to the node, those that came first while the rest is under way. */
    for (int l = 0; status == LW_OK && done == 0 && l < leaders; l++) {
        bool mine = leads && l == nodes->local;
        if (mine) done = lwm_host.Wait(&started, LWM_STATUS_IGNORE);
        char *row = mine ? own_row : other_row;
        int blocks = 0;
        for (int n = 0; n < nodes->many; n++) blocks += led_by(nodes, n, l);
        if (done == 0 && nodes->team) status = lw_bcast(nodes->team, row, (size_t)blocks * bytes, LW_I8, l);
        int start = 0;
        for (int n = 0; status == LW_OK && done == 0 && n < nodes->many; n++) {
            for (int r = 0; r < nodes->size; r++) {
                if (nodes->node[r] != n || nodes->place[r] % leaders != l) continue;
                size_t block = (size_t)(start + nodes->place[r] / leaders);
                memcpy((char *)recv + (size_t)r * bytes, row + block * bytes, bytes);
            }
            start += led_by(nodes, n, l);
        }
    }
    /* The host reads the lists until it is done. */
    free(lists);
    return (status == LW_OK && done == 0) || lwm_nodes_failed(call, status);
}
