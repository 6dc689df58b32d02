/* Outcomes of contests that are known before they begin (outcomes.c). */
#ifndef LWM_OUTCOMES_H
#define LWM_OUTCOMES_H

#include "lwm.h"

/* What is known of a contest: who won it; and a bit that says that the program did other things between these calls. */
enum lwm_outcome_bits { LWM_UNDECIDED, LWM_OURS, LWM_HOSTS, LWM_WINNER, LWM_BETWEEN };

/* Returns a number for the ranks, kind and class of a call; 0 where communicators tell nothing of each other. */
uint64_t lwm_outcome_name(const struct lwm_comm *comm, enum lwm_kind kind, int race_class);
/* Returns whether these ranks changed over to plans of this class before, and how their contest ended. */
bool lwm_outcome_of(uint64_t name, unsigned *outcome);
/* Remembers that they did, or how it ended. All ranks call it at the same call. */
void lwm_outcome_remember(uint64_t name, unsigned outcome);
/* Returns how it ended in earlier runs of this program. */
unsigned lwm_outcome_kept(lw_planner *planner, uint64_t name);
/* Returns the outcome of the contest that ended last. */
unsigned lwm_outcome_now(const struct lwm_race *race);
/* Keeps what was decided on a communicator that ends, for later runs, at its rank 0. */
void lwm_outcomes_keep(struct lwm_comm *comm);

#endif
