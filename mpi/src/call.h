/* The course of one call (calls.c). Included by lwm.h. */
#ifndef LWM_CALL_H
#define LWM_CALL_H

#include "lwm.h"

/* A call as lineweave has it, for choosing its plans; no collective: they are chosen within the call. */
struct lwm_shape {
    lw_collective collective;
    size_t count;
    lw_type type;
    lw_op op;
    int root;
};

struct lwm_call {
    struct lwm_comm *comm;
    enum lwm_kind kind;
    enum lwm_reason why;
    int size_class;
    int race_class;       /* equal on all ranks, which a call's size need not be */
    int result;
    size_t bytes;
    uint64_t start_ns;    /* 0: not timed */
    struct lwm_race *race;
    struct lwm_comm *numbered; /* which numbered it, or null */
    bool introduces;      /* of MPI_COMM_WORLD, while ranks do not know each other */
    /* The data that each rank takes of every other one. If there are any, a rank that leaves the call knows that all entered it. */
    MPI_Count each;
    MPI_Datatype each_type;
    struct lwm_shape shape;
};

/* Begins a call: returns true when lineweave is to carry it out; if not, `lwm_away` is next. */
bool lwm_begin(struct lwm_call *call, enum lwm_kind kind, MPI_Comm comm);
/* Records the data that this rank gives or takes, for the report of a call that passes. */
void lwm_told(struct lwm_call *call, MPI_Count count, MPI_Datatype type);
/* Leaves a call that was not begun to the host, counted with the data that this rank gives or takes. Returns false. */
bool lwm_away(struct lwm_call *call, MPI_Count count, MPI_Datatype type);
/* Returns whether lineweave carries the call out now; the size is known and the arguments were found valid. `alike`: bytes are equal on all
 * ranks; where they are not, sizes of all classes share one contest. */
bool lwm_mine(struct lwm_call *call, size_t bytes, bool alike);
/* Ends a contest: whether the host has won, and whether the program did other things between these calls. */
void lwm_race_settle(struct lwm_race *race, bool host, bool between);
/* Ends a call that moves nothing, which returns at once. Returns true. */
bool lwm_nothing(struct lwm_call *call);
/* Ends a call without memory to pack in. Returns true. */
bool lwm_short(struct lwm_call *call);
/* Ends a call that lineweave carried out. Returns true. */
bool lwm_done(struct lwm_call *call, lw_status status);
/* Leaves a call to the host. Returns false. */
bool lwm_leave(struct lwm_call *call, enum lwm_reason why);
/* Tells, for a call that `lwm_begin` left to the host, the data that each rank takes of every other one. Returns false. */
bool lwm_meets(struct lwm_call *call, MPI_Count each, MPI_Datatype type);
/* Returns whether the host refused a call for its arguments, which it does before it sends anything: then this rank did not enter it. */
bool lwm_is_refusal(int result);
/* Called after the host has carried out a call, or refused it. Returns its result. */
int lwm_passed(struct lwm_call *call, int result);
/* Counts a started call that is over, or calls the error handler of its communicator (null: of MPI_COMM_WORLD); returns MPI's result. */
int lwm_ended(enum lwm_kind kind, size_t bytes, uint64_t start_ns, struct lwm_comm *comm, lw_status status);
/* Counts a call of a kind that always passes, also for its communicator, which is returned. */
struct lwm_comm *lwm_count_passed(enum lwm_kind kind, MPI_Comm comm);

/* ---- calls that come again (repeats.c) ---- */

/* Keeps a call on a communicator with a team, so that it can be repeated: one that lineweave carried out, or that passes; `hot` describes it. */
void lwm_heat(const struct lwm_call *call, struct lwm_hot hot);
/* Ends a repeated call that lineweave could not carry out. Returns MPI's result. */
int lwm_repeat_failed(struct lwm_comm *comm, enum lwm_kind kind);
/* Repeats a kept call, unless it moves nothing. */
#define LWM_REPEAT(hot, status) (LWM_LIKELY((hot)->bytes != 0) ? (status) : LW_OK)
/* Counts a repeated call; returns MPI's result. */
static inline int lwm_repeated(struct lwm_comm *comm, enum lwm_kind kind, lw_status status)
{
    if (LWM_UNLIKELY(status != LW_OK)) return lwm_repeat_failed(comm, kind);
    comm->hot[kind].left--;
    comm->hot[kind].done++;
    return 0;
}
/* Does what is due once no more calls may pass without all steps: counts those that did. */
void lwm_pass_end(struct lwm_comm *comm);
/* Records the result of a call that passed again and that the host refused, or that failed. Returns it. */
int lwm_pass_failed(struct lwm_comm *comm, enum lwm_kind kind, int result);
/* Counts a call that passed again; returns the host's result. A call that the host refuses does not count. */
static inline int lwm_passed_again(struct lwm_comm *comm, enum lwm_kind kind, int result)
{
    struct lwm_hot *hot = &comm->hot[kind];
    if (LWM_UNLIKELY(result != 0)) return lwm_pass_failed(comm, kind, result);
    hot->left--;
    hot->done++;
    comm->pass_met += hot->meets;
    if (LWM_UNLIKELY(--comm->pass_left == 0)) lwm_pass_end(comm);
    return result;
}
/* As lwm_away, for a call that may come again: `hot` describes it, as far as its root, type, operator and count go, and says whether all ranks
 * enter it. */
bool lwm_away_again(struct lwm_call *call, struct lwm_hot hot);
/* Counts the repeated calls of a kind, and ends their repetition. */
void lwm_count_hot(struct lwm_comm *comm, enum lwm_kind kind);

#endif
