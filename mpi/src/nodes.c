/*
 * Communicators that several nodes share: lineweave within each node, the host between the nodes' leaders.
 *
 * A node's leaders are its first ranks in the communicator. Ranks may be spread over nodes in any order. Phases of a call on a
 * short message, for which the first leader of each node acts:
 * 1. the data of a node's ranks go to their leader (or from the root to its node), by lineweave;
 * 2. leaders exchange, by the host, on a communicator of their own;
 * 3. leaders pass the outcome to their nodes, by lineweave.
 * Long messages: nodes_long.c.
 */
#include "nodes.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

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
    nodes->between = lwm_host.null;
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
    nodes->leaders = lwm_settings.leaders;
    for (int n = 0; n < nodes->many; n++) {
        if (nodes->members[n] < nodes->leaders) nodes->leaders = nodes->members[n];
    }
    return nodes;
}

bool lwm_nodes_join(struct lwm_comm *comm, struct lwm_nodes *nodes)
{
    int colour = nodes->local < nodes->leaders ? nodes->local : LWM_UNDEFINED;
    return lwm_host.Comm_split(comm->handle, colour, nodes->mine, &nodes->between) == 0;
}

void lwm_nodes_close(struct lwm_nodes *nodes) { nodes->team = NULL; }

void lwm_nodes_free(struct lwm_nodes *nodes)
{
    if (nodes->between != lwm_host.null) lwm_host.Comm_free(&nodes->between);
    free(nodes->node);
    free(nodes);
}

bool lwm_nodes_failed(struct lwm_call *call, lw_status status)
{
    lwm_done(call, status == LW_OK ? LW_ERR_SYSTEM : status);
    return false;
}

bool lwm_nodes_barrier(struct lwm_call *call)
{
    struct lwm_nodes *nodes = call->comm->nodes;
    INNER(lw_barrier(nodes->team));
    OUTER(nodes->local == 0, lwm_host.Barrier(nodes->between));
    INNER(lw_barrier(nodes->team));
    return lwm_done(call, LW_OK);
}

bool lwm_nodes_bcast(struct lwm_call *call, void *data, size_t bytes, int root)
{
    if (bytes >= LWM_NODES_LONG) return lwm_nodes_bcast_long(call, data, bytes, root);
    struct lwm_nodes *nodes = call->comm->nodes;
    bool at_root = nodes->mine == nodes->node[root];
    if (at_root) INNER(lw_bcast(nodes->team, data, bytes, LW_I8, nodes->place[root]));
    OUTER(nodes->local == 0, lwm_host.Bcast(data, (int)bytes, lwm_host.byte, nodes->node[root], nodes->between));
    if (!at_root) INNER(lw_bcast(nodes->team, data, bytes, LW_I8, 0));
    return true;
}

bool lwm_nodes_fold(struct lwm_call *call, const void *send, void *recv, size_t count, MPI_Datatype type, MPI_Op op,
                    const struct lwm_type *info, int combine, int root)
{
    struct lwm_nodes *nodes = call->comm->nodes;
    size_t bytes = count * info->step;
    if (bytes >= LWM_NODES_LONG) return lwm_nodes_fold_long(call, send, recv, count, type, op, info, combine, root);
    bool leads = nodes->local == 0, here = root >= 0 && nodes->mine == nodes->node[root];
    bool takes = root < 0 || root == call->comm->rank, handed = here && nodes->place[root] != 0;
    /* The node's sum is made in the leader's output, which a reduce does not give to all leaders. */
    char *sum = takes ? recv : lwm_scratch(LWM_SCRATCH_NODES, bytes);
    char *total = takes ? recv : lwm_scratch(LWM_SCRATCH_NODES_2, bytes);
    if (!sum || !total) return lwm_nodes_failed(call, LW_ERR_MEMORY);
    if (!nodes->team && send != sum) memcpy(sum, send, bytes);
    INNER(lw_reduce(nodes->team, send == sum && leads ? LW_IN_PLACE : send, sum, count, info->element, combine, 0));
    if (root < 0) {
        OUTER(leads, lwm_host.Allreduce(LWM_IN_PLACE, recv, (int)count, type, op, nodes->between));
        INNER(lw_bcast(nodes->team, recv, bytes, LW_I8, 0));
    } else {
        const void *from = here && total == sum ? LWM_IN_PLACE : sum;
        OUTER(leads, lwm_host.Reduce(from, total, (int)count, type, op, nodes->node[root], nodes->between));
        if (handed) INNER(lw_bcast(nodes->team, total, bytes, LW_I8, 0));
    }
    return true;
}

bool lwm_nodes_can(const struct lwm_comm *comm, size_t bytes) { return bytes <= INT_MAX / (size_t)comm->size; }

/* Returns the beginning of each node's blocks in a row of them, and their length in bytes; the caller frees it. */
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

/* Returns the place of rank r's block among blocks that lie node by node, in the order of ranks there. */
static size_t in_row(const struct lwm_nodes *nodes, int r, size_t bytes, const int *starts)
{
    return (size_t)starts[nodes->node[r]] + (size_t)nodes->place[r] * bytes;
}

/* Gathers at one node's first leader or (node -1) at all of them: in recv, or node by node in *row where `keep`. */
static bool collect(struct lwm_call *call, const void *send, void *recv, size_t bytes, int node, char **row)
{
    struct lwm_nodes *nodes = call->comm->nodes;
    size_t own = bytes * (size_t)nodes->members[nodes->mine];
    bool leads = nodes->local == 0, takes = leads && (node < 0 || node == nodes->mine);
    char *local = leads ? lwm_scratch(LWM_SCRATCH_NODES, own) : NULL;
    *row = takes ? lwm_scratch(LWM_SCRATCH_NODES_2, bytes * (size_t)nodes->size) : NULL;
    if ((leads && !local) || (takes && !*row)) return lwm_nodes_failed(call, LW_ERR_MEMORY);
    if (!nodes->team) memcpy(local, send, bytes);
    INNER(lw_gather(nodes->team, send, local, bytes, LW_I8, 0));
    if (!leads) return true;
    int *lists = layout(nodes, bytes);
    if (!lists) return lwm_nodes_failed(call, LW_ERR_MEMORY);
    int *starts = lists + nodes->many, done;
    MPI_Datatype byte = lwm_host.byte;
    if (node < 0) done = lwm_host.Allgatherv(local, (int)own, byte, *row, lists, starts, byte, nodes->between);
    else done = lwm_host.Gatherv(local, (int)own, byte, *row, lists, starts, byte, node, nodes->between);
    for (int r = 0; done == 0 && takes && recv && r < nodes->size; r++) {
        memcpy((char *)recv + (size_t)r * bytes, *row + in_row(nodes, r, bytes, starts), bytes);
    }
    free(lists);
    return done == 0 || lwm_nodes_failed(call, LW_OK);
}

/* Messages between a root and its node's first leader. */
#define ROW_TAG 1u

bool lwm_nodes_gather(struct lwm_call *call, const void *send, void *recv, size_t bytes, int root)
{
    struct lwm_nodes *nodes = call->comm->nodes;
    bool takes = call->comm->rank == root, handed = nodes->place[root] != 0;
    size_t all = bytes * (size_t)nodes->size;
    char *row;
    if (!collect(call, send, takes ? recv : NULL, bytes, nodes->node[root], &row)) return false;
    if (!handed || nodes->mine != nodes->node[root]) return true;
    if (nodes->local == 0) INNER(lw_send(nodes->team, row, all, LW_I8, nodes->place[root], ROW_TAG));
    if (!takes) return true;
    row = lwm_scratch(LWM_SCRATCH_NODES_2, all);
    int *lists = layout(nodes, bytes), *starts = lists + nodes->many;
    lw_status status = row && lists ? lw_recv(nodes->team, row, all, LW_I8, 0, ROW_TAG, NULL) : LW_ERR_MEMORY;
    for (int r = 0; status == LW_OK && r < nodes->size; r++) {
        memcpy((char *)recv + (size_t)r * bytes, row + in_row(nodes, r, bytes, starts), bytes);
    }
    free(lists);
    return status == LW_OK || lwm_nodes_failed(call, status);
}

bool lwm_nodes_scatter(struct lwm_call *call, const void *send, void *recv, size_t bytes, int root)
{
    struct lwm_nodes *nodes = call->comm->nodes;
    bool gives = call->comm->rank == root, here = nodes->mine == nodes->node[root], leads = nodes->local == 0;
    bool handed = here && nodes->place[root] != 0;
    size_t all = bytes * (size_t)nodes->size, own = bytes * (size_t)nodes->members[nodes->mine];
    char *row = gives || (leads && handed) ? lwm_scratch(LWM_SCRATCH_NODES_2, all) : NULL;
    char *local = leads ? lwm_scratch(LWM_SCRATCH_NODES, own) : NULL;
    int *lists = layout(nodes, bytes), *starts = lists + nodes->many;
    lw_status status = lists && (row || !gives) && (local || !leads) ? LW_OK : LW_ERR_MEMORY;
    for (int r = 0; status == LW_OK && gives && r < nodes->size; r++) {
        memcpy(row + in_row(nodes, r, bytes, starts), (const char *)send + (size_t)r * bytes, bytes);
    }
    if (status == LW_OK && handed && gives) status = lw_send(nodes->team, row, all, LW_I8, 0, ROW_TAG);
    if (status == LW_OK && handed && leads) status = lw_recv(nodes->team, row, all, LW_I8, nodes->place[root], ROW_TAG, NULL);
    int done = 0;
    if (status == LW_OK && leads) {
        MPI_Datatype byte = lwm_host.byte;
        done = lwm_host.Scatterv(row, lists, starts, byte, local, (int)own, byte, nodes->node[root], nodes->between);
    }
    free(lists);
    if (status != LW_OK || done != 0) return lwm_nodes_failed(call, status);
    if (!nodes->team) memcpy(recv, local, bytes);
    INNER(lw_scatter(nodes->team, local, recv, bytes, LW_I8, 0));
    return true;
}

bool lwm_nodes_allgather(struct lwm_call *call, const void *send, void *recv, size_t bytes)
{
    struct lwm_nodes *nodes = call->comm->nodes;
    size_t all = bytes * (size_t)nodes->size;
    if (all >= LWM_NODES_LONG) return lwm_nodes_allgather_long(call, send, recv, bytes);
    char *row;
    if (!collect(call, send, recv, bytes, -1, &row)) return false;
    INNER(lw_bcast(nodes->team, recv, all, LW_I8, 0));
    return true;
}
