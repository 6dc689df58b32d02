/*
 * Communicators that several nodes share: lineweave within each node, the host between the nodes' leaders.
 *
 * A node's leader is its first rank in the communicator. Ranks may be spread over nodes in any order. Phases of a call:
 * 1. what the ranks of a node have goes to their leader (or from the root to its node), by lineweave;
 * 2. leaders exchange, by the host, on a communicator of their own;
 * 3. leaders hand the outcome to their nodes, by lineweave.
 */
#include "nodes.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct lwm_nodes {
    lw_comm *team;        /* this node's; null when the rank is alone there */
    MPI_Comm leaders;     /* the host's; null at ranks that lead none */
    int size;             /* ranks of the communicator */
    int many, mine;       /* nodes, and this rank's */
    int local;            /* this rank in its node; 0 leads */
    int *node, *place;    /* of each rank: its node by number, its place there */
    int *members;         /* of each node: how many ranks */
};

/* The most bytes that one call of the host moves. */
#define PIECE ((size_t)1 << 30)

struct lwm_nodes *lwm_nodes_make(struct lwm_comm *comm, const int *names, lw_comm *team)
{
    struct lwm_nodes *nodes = calloc(1, sizeof *nodes);
    int size = comm->size, *memory = calloc((size_t)size * 4, sizeof *memory);
    if (!nodes || !memory) {
        free(nodes);
        free(memory);
        return NULL;
    }
    nodes->team = team;
    nodes->leaders = lwm_host.null;
    nodes->size = size;
    nodes->node = memory;
    nodes->place = memory + size;
    nodes->members = memory + 2 * size;
    int *first = memory + 3 * size;
    for (int r = 0; r < size; r++) {
        int n = 0;
        while (n < nodes->many && names[first[n]] != names[r]) n++;
        if (n == nodes->many) first[nodes->many++] = r;
        nodes->node[r] = n;
        nodes->place[r] = nodes->members[n]++;
    }
    nodes->mine = nodes->node[comm->rank];
    nodes->local = nodes->place[comm->rank];
    return nodes;
}

bool lwm_nodes_join(struct lwm_comm *comm, struct lwm_nodes *nodes)
{
    int colour = nodes->local == 0 ? 0 : LWM_UNDEFINED;
    return lwm_host.Comm_split(comm->handle, colour, nodes->mine, &nodes->leaders) == 0;
}

void lwm_nodes_close(struct lwm_nodes *nodes) { nodes->team = NULL; }

void lwm_nodes_free(struct lwm_nodes *nodes)
{
    if (nodes->leaders != lwm_host.null) lwm_host.Comm_free(&nodes->leaders);
    free(nodes->node);
    free(nodes);
}

static bool failed(struct lwm_call *call, lw_status status)
{
    /* Of either side: the call's error handler is called. */
    lwm_done(call, status == LW_OK ? LW_ERR_SYSTEM : status);
    return false;
}

/* A phase within the node; nothing to do for a rank alone. */
#define INNER(action) \
    do { \
        lw_status inner = nodes->team ? (action) : LW_OK; \
        if (inner != LW_OK) return failed(call, inner); \
    } while (0)
/* A phase between leaders. */
#define OUTER(action) \
    do { \
        if (nodes->local == 0 && (action) != 0) return failed(call, LW_OK); \
    } while (0)

bool lwm_nodes_barrier(struct lwm_call *call)
{
    struct lwm_nodes *nodes = call->comm->nodes;
    INNER(lw_barrier(nodes->team));
    OUTER(lwm_host.Barrier(nodes->leaders));
    INNER(lw_barrier(nodes->team));
    return lwm_done(call, LW_OK);
}

bool lwm_nodes_bcast(struct lwm_call *call, void *data, size_t bytes, int root)
{
    struct lwm_nodes *nodes = call->comm->nodes;
    bool at_root = nodes->mine == nodes->node[root];
    /* In pieces, so that a node hands on one while leaders move the next. */
    size_t piece = bytes > (1 << 20) ? 1 << 19 : bytes;
    for (size_t done = 0; done < bytes; done += piece) {
        size_t n = bytes - done < piece ? bytes - done : piece;
        char *at = (char *)data + done;
        if (at_root) INNER(lw_bcast(nodes->team, at, n, LW_I8, nodes->place[root]));
        OUTER(lwm_host.Bcast(at, (int)n, lwm_host.byte, nodes->node[root], nodes->leaders));
        if (!at_root) INNER(lw_bcast(nodes->team, at, n, LW_I8, 0));
    }
    return true;
}

bool lwm_nodes_fold(struct lwm_call *call, const void *send, void *recv, size_t count, MPI_Datatype type, MPI_Op op,
                    const struct lwm_type *info, int combine, int root)
{
    struct lwm_nodes *nodes = call->comm->nodes;
    size_t piece = PIECE / info->step, width = info->step;
    bool here = root >= 0 && nodes->mine == nodes->node[root], takes = root < 0 || root == call->comm->rank;
    bool handed = here && nodes->place[root] != 0;
    for (size_t done = 0; done < count; done += piece) {
        size_t n = count - done < piece ? count - done : piece;
        const char *in = (const char *)send + done * width;
        char *out = (char *)recv + done * width;
        /* The node's sum is made in the leader's output, which a reduce does not give to all leaders. */
        char *sum = takes ? out : lwm_scratch(LWM_SCRATCH_NODES, n * width);
        char *total = takes ? out : lwm_scratch(LWM_SCRATCH_NODES_2, n * width);
        if (!sum || !total) return failed(call, LW_ERR_MEMORY);
        if (!nodes->team && in != sum) memcpy(sum, in, n * width);
        INNER(lw_reduce(nodes->team, in == sum && nodes->local == 0 ? LW_IN_PLACE : in, sum, n, info->element, combine, 0));
        if (root < 0) {
            OUTER(lwm_host.Allreduce(LWM_IN_PLACE, out, (int)n, type, op, nodes->leaders));
            INNER(lw_bcast(nodes->team, out, n * width, LW_I8, 0));
        } else {
            const void *from = here && total == sum ? LWM_IN_PLACE : sum;
            OUTER(lwm_host.Reduce(from, total, (int)n, type, op, nodes->node[root], nodes->leaders));
            if (handed) INNER(lw_bcast(nodes->team, total, n * width, LW_I8, 0));
        }
    }
    return true;
}

bool lwm_nodes_can(const struct lwm_comm *comm, size_t bytes, int root)
{
    const struct lwm_nodes *nodes = comm->nodes;
    return (root < 0 || nodes->place[root] == 0) && bytes <= INT_MAX / (size_t)comm->size;
}

/* Where each node's blocks begin in a row of them, and how many bytes they are; to free. */
static int *layout(const struct lwm_nodes *nodes, size_t bytes)
{
    int *lists = malloc(2 * sizeof *lists * (size_t)nodes->many), *starts = lists + nodes->many, sum = 0;
    for (int n = 0; lists && n < nodes->many; n++) {
        lists[n] = (int)bytes * nodes->members[n];
        starts[n] = sum;
        sum += lists[n];
    }
    return lists;
}

/* Blocks that lie node by node, in the order of ranks. */
static void sort(const struct lwm_nodes *nodes, const char *row, char *to, size_t bytes, const int *starts)
{
    for (int r = 0; r < nodes->size; r++) {
        memcpy(to + (size_t)r * bytes, row + starts[nodes->node[r]] + (size_t)nodes->place[r] * bytes, bytes);
    }
}

/* Gathers at one node's leader or (node -1) at all leaders. */
static bool collect(struct lwm_call *call, const void *send, void *recv, size_t bytes, int node)
{
    struct lwm_nodes *nodes = call->comm->nodes;
    size_t own = bytes * (size_t)nodes->members[nodes->mine];
    bool leads = nodes->local == 0, takes = leads && (node < 0 || node == nodes->mine);
    char *local = leads ? lwm_scratch(LWM_SCRATCH_NODES, own) : NULL;
    char *row = takes ? lwm_scratch(LWM_SCRATCH_NODES_2, bytes * (size_t)nodes->size) : NULL;
    if ((leads && !local) || (takes && !row)) return failed(call, LW_ERR_MEMORY);
    if (!nodes->team) memcpy(local, send, bytes);
    INNER(lw_gather(nodes->team, send, local, bytes, LW_I8, 0));
    if (!leads) return true;
    int *lists = layout(nodes, bytes);
    if (!lists) return failed(call, LW_ERR_MEMORY);
    int *starts = lists + nodes->many, done;
    MPI_Datatype byte = lwm_host.byte;
    if (node < 0) done = lwm_host.Allgatherv(local, (int)own, byte, row, lists, starts, byte, nodes->leaders);
    else done = lwm_host.Gatherv(local, (int)own, byte, row, lists, starts, byte, node, nodes->leaders);
    if (done == 0 && takes) sort(nodes, row, recv, bytes, starts);
    free(lists);
    return done == 0 || failed(call, LW_OK);
}

bool lwm_nodes_gather(struct lwm_call *call, const void *send, void *recv, size_t bytes, int root)
{
    return collect(call, send, recv, bytes, call->comm->nodes->node[root]);
}

bool lwm_nodes_allgather(struct lwm_call *call, const void *send, void *recv, size_t bytes)
{
    struct lwm_nodes *nodes = call->comm->nodes;
    if (!collect(call, send, recv, bytes, -1)) return false;
    INNER(lw_bcast(nodes->team, recv, bytes * (size_t)nodes->size, LW_I8, 0));
    return true;
}
