/* Communicators that several nodes share (nodes.c). */
#ifndef LWM_NODES_H
#define LWM_NODES_H

#include "lwm.h"

/* What a rank knows of the nodes of its communicator; `team` is that of its own node, or null when it is alone there. Null
 * without memory. */
struct lwm_nodes *lwm_nodes_make(struct lwm_comm *comm, const int *nodes, lw_comm *team);
/* Makes the leaders' communicator of the host. Called by all ranks. */
bool lwm_nodes_join(struct lwm_comm *comm, struct lwm_nodes *nodes);
/* Frees the leaders' communicator too. Called by all ranks. */
void lwm_nodes_free(struct lwm_nodes *nodes);
/* Frees what is not the host's, at the end. */
void lwm_nodes_close(struct lwm_nodes *nodes);

/* Each is true when done; when not, the call's result is an error that was raised. */
bool lwm_nodes_barrier(struct lwm_call *call);
bool lwm_nodes_bcast(struct lwm_call *call, void *data, size_t bytes, int root);
/* reduce (at root) and allreduce (root -1). */
bool lwm_nodes_fold(struct lwm_call *call, const void *send, void *recv, size_t count, MPI_Datatype type, MPI_Op op,
                    const struct lwm_type *info, int combine, int root);
/* Whether blocks of that length can be gathered between nodes, at `root` or (-1) everywhere. */
bool lwm_nodes_can(const struct lwm_comm *comm, size_t bytes, int root);
/* Blocks of `bytes`, packed. recv is null where nothing is taken. */
bool lwm_nodes_gather(struct lwm_call *call, const void *send, void *recv, size_t bytes, int root);
bool lwm_nodes_allgather(struct lwm_call *call, const void *send, void *recv, size_t bytes);

#endif
