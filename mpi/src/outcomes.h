/* Outcomes of contests that are known before they begin (outcomes.c). */
#ifndef LWM_OUTCOMES_H
#define LWM_OUTCOMES_H

#include "lwm.h"

/* Who won a contest. */
enum lwm_winner { LWM_UNDECIDED, LWM_OURS, LWM_HOSTS };

/* Returns a number for the ranks, kind and class of a call; 0 where communicators tell nothing of each other. */
uint64_t lwm_outcome_name(const struct lwm_comm *comm, enum lwm_kind kind, int race_class);
/* Returns whether these ranks changed over to plans of this class before, and who won their contest. */
bool lwm_outcome_of(uint64_t name, enum lwm_winner *winner);
/* Remembers that they did, or who won. All ranks call it at the same call. */
void lwm_outcome_remember(uint64_t name, enum lwm_winner winner);
/* Returns who won in earlier runs of this program. */
enum lwm_winner lwm_outcome_kept(lw_planner *planner, uint64_t name);
/* Keeps what was decided on a communicator that ends, for later runs, at its rank 0. */
void lwm_outcomes_keep(struct lwm_comm *comm);

#endif
