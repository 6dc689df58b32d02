/* Choosing plans beside the program (planning.c). */
#ifndef LWM_PLANNING_H
#define LWM_PLANNING_H

#include "lwm.h"

/* Returns whether lineweave may carry out a call whose plans are chosen beside the program: numbers the call, and begins the choice at the first
 * one. All ranks get the same answer. */
bool lwm_planning_came(struct lwm_call *call, struct lwm_race *race);
/* Numbers so many calls ahead that are about to pass; returns whether they may. */
bool lwm_planning_ahead(struct lwm_planning *planning, uint32_t many);
/* Takes numbers of calls back that the host refused, or that were not made; of null: does nothing. */
void lwm_planning_back(struct lwm_planning *planning, uint32_t many);
/* Leaves the choices of a communicator that ends. */
void lwm_planning_leave(struct lwm_comm *comm);
/* Ends the thread that chooses, and waits for it. */
void lwm_planning_close(void);

#endif
