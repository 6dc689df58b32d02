/* Communicators that several nodes share (nodes.c). */
#ifndef LWM_NODES_H
#define LWM_NODES_H

#include "lwm.h"

/* A communicator's nodes. A node's leaders are its first ranks in the communicator, as many on each. */
struct lwm_nodes {
    lw_comm *team;        /* this node's; null when the rank is alone there */
    MPI_Comm between;     /* the host's: the leaders at this rank's place, by node; null at ranks that lead none */
    int leaders;          /* on each node */
    int size;             /* ranks of the communicator */
    int many, mine;       /* nodes, and this rank's */
    int local;            /* this rank in its node; below `leaders` it leads */
    int *node, *place;    /* of each rank: its node by number, its place there */
    int *members;         /* of each node: how many ranks */
};

/* Makes this rank's data about the nodes of its communicator; `team` is that of its own node, or null when it is alone there. Null
 * without memory. */
struct lwm_nodes *lwm_nodes_make(struct lwm_comm *comm, const int *nodes, lw_comm *team);
/* Makes the leaders' communicator of the host. Called by all ranks. */
bool lwm_nodes_join(struct lwm_comm *comm, struct lwm_nodes *nodes);
/* Frees the leaders' communicator too. Called by all ranks. */
void lwm_nodes_free(struct lwm_nodes *nodes);
/* Frees all but the host's objects, at the end. */
void lwm_nodes_close(struct lwm_nodes *nodes);

/* Carry out a call among several nodes: true when done; when not, the call's result is an error that was raised. */
bool lwm_nodes_barrier(struct lwm_call *call);
bool lwm_nodes_bcast(struct lwm_call *call, void *data, size_t bytes, int root);
/* Carries out a reduce (at root) or an allreduce (root -1). */
bool lwm_nodes_fold(struct lwm_call *call, const void *send, void *recv, size_t count, MPI_Datatype type, MPI_Op op,
                    const struct lwm_type *info, int combine, int root);
/* Returns whether blocks of that length can go between nodes. */
bool lwm_nodes_can(const struct lwm_comm *comm, size_t bytes);
/* For packed blocks of `bytes`. recv is null where nothing is taken. */
bool lwm_nodes_gather(struct lwm_call *call, const void *send, void *recv, size_t bytes, int root);
bool lwm_nodes_scatter(struct lwm_call *call, const void *send, void *recv, size_t bytes, int root);
bool lwm_nodes_allgather(struct lwm_call *call, const void *send, void *recv, size_t bytes);

/* ---- long messages (nodes_long.c) ---- */

/* Length from which messages go through several leaders and in pieces whose phases overlap. At 256 KiB the waiting for each piece cost
 * more than that gained (4 ranks on 2 nodes emulated on 2 CPUs, where 1 MiB and more came out even). */
#define LWM_NODES_LONG ((size_t)1 << 20)
bool lwm_nodes_bcast_long(struct lwm_call *call, void *data, size_t bytes, int root);
bool lwm_nodes_fold_long(struct lwm_call *call, const void *send, void *recv, size_t count, MPI_Datatype type, MPI_Op op,
                         const struct lwm_type *info, int combine, int root);
bool lwm_nodes_allgather_long(struct lwm_call *call, const void *send, void *recv, size_t bytes);

/* Ends a call with an error of either side: the call's error handler is called. Returns false. */
bool lwm_nodes_failed(struct lwm_call *call, lw_status status);

/* A phase within the node; nothing to do for a rank alone. */
#define INNER(action) \
    do { \
        lw_status inner = nodes->team ? (action) : LW_OK; \
        if (inner != LW_OK) return lwm_nodes_failed(call, inner); \
    } while (0)
/* A phase between leaders, for a rank that is one. */
#define OUTER(leads, action) \
    do { \
        if ((leads) && (action) != 0) return lwm_nodes_failed(call, LW_OK); \
    } while (0)

#endif
