/* Collectives that are started and completed later (started.c, requests.c). */
#ifndef LWM_STARTED_H
#define LWM_STARTED_H

#include "collectives.h"

/* Some of a program's elements and their place in a row of bytes: packed before a call starts, or unpacked when it is over. */
struct lwm_piece {
    char *at;
    size_t count;
    MPI_Datatype type;
    struct lwm_type info;
    char *row;
    bool copied;          /* the type is a copy of the program's, which may free its own before the call is over */
};

/*
 * A call that lineweave carries out, with the host's request that stands for it in the program: a generalized one.
 */
struct lwm_started {
    MPI_Request handle;
    lw_request *call;     /* null when there is nothing to do */
    lw_comm *own;         /* of a persistent call: a communicator for it alone, so that such calls start in any order */
    struct lwm_comm *comm;    /* its record, which may have become another communicator's */
    MPI_Comm handle_of_comm;
    enum lwm_kind kind;
    bool again, active, over;
    int result;
    size_t bytes;
    uint64_t start_ns;
    struct lwm_piece *pieces; /* to pack, then to unpack */
    int gives, takes;
    void *rooms[2];
    size_t *lengths;
    struct lwm_started *next; /* of its slot */
};

/* The arguments of a program's call, as MPI describes them. */
struct lwm_order {
    enum lwm_kind kind;           /* as if it blocked */
    struct lwm_buffer send, recv;
    struct lwm_blocks gives, takes;
    MPI_Op op;
    int root;
    bool again;                   /* persistent */
    /* For a call that is left to the host: the communicator, if known, and the time, where its ranks agree when it is completed
     * (agree.c). */
    struct lwm_comm *comm;
    uint64_t began_ns;
    uint64_t start_ns;         /* where calls are recorded: when it was started */
    struct lwm_comm *numbered; /* which numbered it (beside.c), or null */
};

/* Carries a call out, if it may: true with the result and a request; false when it is the host's. */
bool lwm_start(struct lwm_order *order, MPI_Comm comm, MPI_Request *request, int *result);

/* Number of calls that are not over: programs that start nothing pay for one look at it. */
extern uint64_t lwm_started_live;
/* Returns the call that a request stands for; null for the host's. */
struct lwm_started *lwm_started_find(MPI_Request request);
static inline bool lwm_under_way(const struct lwm_started *s) { return s && s->active && !s->over; }

/* Makes the host's request and remembers the call by it. */
bool lwm_started_add(struct lwm_started *started);
/* Marks the call of such a request as started. A call that has nothing to do is over. */
void lwm_started_is_on(struct lwm_started *started);
/* Gives back all memory of a call, with its request, when it could not be started. */
void lwm_started_drop(struct lwm_started *started);
/* Packs the data that a call gives. */
lw_status lwm_started_begin(struct lwm_started *started);
/* Starts a persistent call; a failed one is over. */
lw_status lwm_started_again(struct lwm_started *started);
/* Waits until a call is over. Null counts as over. */
void lwm_started_complete(struct lwm_started *started);
/* Carries a call on; returns whether it is over. Null counts as over. */
bool lwm_started_poll(struct lwm_started *started);
/* Completes the started calls of a communicator that is about to be freed. */
void lwm_started_finish(const struct lwm_comm *comm);
/* Gives back all memory of a call but its place in the list. */
void lwm_started_free(struct lwm_started *started);

#endif
