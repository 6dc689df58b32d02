/* The change-over of the ranks of a communicator from the host to lineweave at one call (change.c). */
#ifndef LWM_CHANGE_H
#define LWM_CHANGE_H

#include <stdbool.h>
#include <stdint.h>

/* Kinds of calls that are numbered by themselves. */
enum { LWM_CHANGES = 2 };

/* One rank's side of it: written by its program's threads and by the one that forms the team. */
struct lwm_change {
    uint64_t calls[LWM_CHANGES];
    /* The number of the latest attempt, from 1 on; the calls from which on lineweave would carry them out. */
    uint64_t attempt, at[LWM_CHANGES];
    /* Of the first rank, where it proposes attempts: its calls when it did so last. */
    uint64_t before;
};

/* What the ranks share of a change-over that the first one proposes: the word, the number of ranks that are ready, and its last attempt, whose calls
 * are those of the first kind. */
struct lwm_proposal {
    uint64_t word, ready, attempt, at;
};

/* State of an attempt. */
enum lwm_outcome { LWM_OPEN, LWM_AGREED, LWM_WITHDRAWN };

/* Numbers a call; returns whether lineweave carries it out, and all later ones of its kind. `word` is shared by all ranks. */
bool lwm_change_came(struct lwm_change *change, uint64_t *word, int which);
/* Takes the numbers of so many calls at once, which this rank is about to make; returns whether the host carries all of them out. If not, their numbers
 * are not taken. */
bool lwm_change_ahead(struct lwm_change *change, const uint64_t *word, int which, uint64_t many);
/* Gives the last numbers back, of calls that were refused or not made. */
void lwm_change_back(struct lwm_change *change, int which, uint64_t many);
/* Stores the number of calls so far. */
void lwm_change_calls(struct lwm_change *change, uint64_t calls[LWM_CHANGES]);
/* Returns the call to change over at in the next attempt: after so many `calls`, as far ahead as calls were made since the last one, when there were
 * `before`, doubled so many times, and a bounded number. So it is far enough after some attempts, however slow the threads are. */
uint64_t lwm_change_next(uint64_t calls, uint64_t before, uint64_t doublings);
/* Makes an attempt of `ranks` ranks, which all make it with the same number and calls, once all before it are withdrawn: votes for it if this rank has
 * made none of these calls yet, and withdraws it if it has. */
void lwm_change_try(struct lwm_change *change, uint64_t *word, int ranks, uint64_t attempt, const uint64_t at[LWM_CHANGES]);
/* Makes the latest attempt that the first rank proposed, if this rank has not made it yet; the first rank proposes one once all are ready and the last is
 * withdrawn. Never waits; returns whether it did anything. */
bool lwm_change_follow(struct lwm_change *change, struct lwm_proposal *proposal, int rank, int ranks);
/* Withdraws an attempt, unless it is decided; returns what it is then. */
enum lwm_outcome lwm_change_withdraw(uint64_t *word, uint64_t attempt);
enum lwm_outcome lwm_change_outcome(const uint64_t *word, uint64_t attempt);

#endif
