/* A record of each collective call, for `lineweave run --trace` (trace.c). */
#ifndef LWM_TRACE_H
#define LWM_TRACE_H

#include "lwm.h"

/* One call, as it lies in the file; `end_ns` is written last, 0 until then. */
struct lwm_traced {
    uint64_t start_ns, end_ns;
    uint64_t comm;        /* the communicator's name, 0 where it has none */
    uint64_t number;      /* of the call, among those of this communicator and form */
    uint64_t bytes;
    int32_t root, rank, size; /* -1: none; in the communicator */
    uint8_t kind, why;    /* LWM_BARRIER ..; LWM_REASONS: taken over */
    uint8_t started, pad;
    uint32_t pads[2];
};
_Static_assert(sizeof(struct lwm_traced) == 64, "the reader (lineweave-cli/src/trace) knows this layout");

/* True from MPI_Init on if calls are recorded. */
extern bool lwm_tracing;
/* Opens this rank's file if LINEWEAVE_MPI_TRACE names one; closes it, and has the last of all ranks write the timeline. */
void lwm_trace_open(void);
void lwm_trace_close(void);
/* Returns whether calls of this name are recorded, as jump number `which` of all (entries.c). */
bool lwm_trace_wants(unsigned which, const char *name);
/* Notes the outcome of the call that this thread is in: carried out (LWM_REASONS), or the reason why not. */
void lwm_trace_saw(int why, size_t bytes);
/* Records a started call of lineweave's that is over. */
void lwm_trace_ended(enum lwm_kind kind, size_t bytes, uint64_t start_ns, struct lwm_comm *comm);
/* Notes a nonblocking call that was just left to the host, and is recorded when it is over. */
void lwm_trace_left(uint64_t start_ns, const struct lwm_comm *comm, MPI_Request request);
void lwm_trace_keep(const struct lwm_traced *call);

/* ---- the host's nonblocking calls (trace_started.c) ---- */

/* How many are not over; without any, the functions below need not be called. */
extern uint64_t lwm_trace_pending;
static inline bool lwm_trace_waits(void) { return LWM_UNLIKELY(__atomic_load_n(&lwm_trace_pending, __ATOMIC_RELAXED) != 0); }
void lwm_trace_begun(const struct lwm_traced *call, MPI_Request request);
/* Called before and after a function that waits for requests or tests them. */
void lwm_trace_watch(int count, const MPI_Request *array);
void lwm_trace_watched(int count, const MPI_Request *array);
/* Called for a request that is about to be freed, after which nobody learns when its call is over. */
void lwm_trace_freed(MPI_Request request);

#endif
