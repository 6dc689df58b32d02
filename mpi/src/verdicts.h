/* Verdicts of contests that are known before these begin (verdicts.c). */
#ifndef LWM_VERDICTS_H
#define LWM_VERDICTS_H

#include "lwm.h"

/* The verdict of a contest: who won it, and a bit that says that the program did other things between these calls. */
enum lwm_verdict_bits { LWM_UNDECIDED = 0, LWM_OURS = 1, LWM_HOSTS = 2, LWM_WINNER = 3, LWM_BETWEEN = 4 };

/* Returns a number for the ranks, kind and class of a call; 0 where communicators tell nothing of each other. */
uint64_t lwm_verdict_name(const struct lwm_comm *comm, enum lwm_kind kind, int race_class);
/* Returns whether these ranks changed over to plans of this class before, and how their contest ended. */
bool lwm_verdict_of(uint64_t name, unsigned *verdict);
/* Remembers that they did, or how it ended. All ranks call it at the same call. */
void lwm_verdict_remember(uint64_t name, unsigned verdict);
/* Returns how it ended in earlier runs of this program. */
unsigned lwm_verdict_kept(lw_planner *planner, uint64_t name);
/* Returns the verdict of the contest that ended last. */
unsigned lwm_verdict_now(const struct lwm_race *race);
/* Keeps what was decided on a communicator that ends, for later runs, at its rank 0. */
void lwm_verdicts_keep(struct lwm_comm *comm);

#endif
