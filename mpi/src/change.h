/* The change-over of the ranks of a communicator from the host to lineweave at one call (change.c). */
#ifndef LWM_CHANGE_H
#define LWM_CHANGE_H

#include <stdbool.h>
#include <stdint.h>

/* Kinds of calls that are numbered by themselves, and attempts to change over, of which each looks further ahead. */
enum { LWM_CHANGES = 2, LWM_ATTEMPTS = 8 };

/* One rank's side of it: written by its program's threads and by the one that forms the team. */
struct lwm_change {
    uint64_t calls[LWM_CHANGES];
    /* The number of the latest attempt, from 1 on; of each, the calls from which on lineweave would carry them out. */
    uint64_t attempt, at[LWM_ATTEMPTS + 1][LWM_CHANGES];
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
/* Makes an attempt of `ranks` ranks, which all make it with the same number and calls: votes for it if this rank has made none of these calls
 * yet, and withdraws it if it has. */
void lwm_change_try(struct lwm_change *change, uint64_t *word, int ranks, uint64_t attempt, const uint64_t at[LWM_CHANGES]);
/* Withdraws an attempt, unless it is decided; returns what it is then. */
enum lwm_outcome lwm_change_withdraw(uint64_t *word, uint64_t attempt);
enum lwm_outcome lwm_change_outcome(const uint64_t *word, uint64_t attempt);

#endif
