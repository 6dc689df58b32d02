/* How a team is formed (forming.c), beside the program where it can be (beside.c). */
#ifndef LWM_FORMING_H
#define LWM_FORMING_H

#include "agree.h"
#include "change.h"

struct lwm_card;

/* A team is formed for two communicators: of blocking calls, and of those that are started. */
_Static_assert(LWM_STARTED + 1 == (int)LWM_PLACES && (int)LWM_PLACES == (int)LWM_CHANGES, "a place for each, and a change-over");

/* All that forming a team needs, without the record of its communicator. */
struct lwm_forming {
    int rank, size;             /* of the communicator */
    bool foreign;
    struct lwm_word *word;      /* null: there is none */
    /* The ranks of this node, in order: their number, which one this is, the first one; each in the communicator, in MPI_COMM_WORLD and, once it
     * is known, in the team in whose memory they join. */
    int many, mine, first, *ranks, *world, *in_base, *memory;
    /* Where they join, and the team that is sure afterwards, if one is; or the cards by which they meet. */
    lw_site *site;
    uint64_t places[LWM_PLACES], becomes_sure;
    struct lwm_card *cards;
    bool meets;
    lw_comm *made[LWM_PLACES];
    struct lwm_beside *beside;
};

/* Whether ranks form a team. */
enum lwm_forms { LWM_FORM_NOT, LWM_FORM, LWM_FORM_LATER };
/* Finds out how the ranks of a communicator form a team; all of them call it at one place of the program. They do not if not all was `fine` at
 * every rank; and later if they would have to meet and one of them meets others just now, in whose memory they may join then. */
enum lwm_forms lwm_forming_agree(struct lwm_forming *forming, MPI_Comm comm, const int *nodes, bool fine);
/* Returns the number of CPUs that the ranks of this node, which have to meet, may use together. */
int lwm_forming_cpus(const struct lwm_forming *forming);
/* Forms the team, without a call of the host, but for `progress`, if that is not null; returns whether that worked at this rank. */
bool lwm_forming_make(struct lwm_forming *forming, lw_progress_fn progress);
/* Gives one of the communicators away, for the program's thread. */
void lwm_forming_give(struct lwm_forming *forming, lw_comm **to, int which);
/* Frees what was not given away, and the forming itself. */
void lwm_forming_free(struct lwm_forming *forming);

/* ---- beside the program (beside.c) ---- */

/* Returns whether a thread forms this team, and prepares it: where ranks have to meet, which takes milliseconds. Joining takes a tenth of one. */
bool lwm_beside_is_due(struct lwm_forming *forming);
/* Returns whether a thread of this rank's meets others. */
bool lwm_beside_meets(void);
/* Forms the team of a communicator of one node in a thread; its calls pass meanwhile. */
void lwm_beside_begin(struct lwm_comm *comm, struct lwm_forming *forming);
/* Numbers a call of a communicator, from its first one on: also before a team forms. Changes over if this is the call to do so. */
void lwm_beside_number(struct lwm_comm *comm, int which);
/* Takes the number of a call back that the host refused, if it has one. Returns the host's result. */
int lwm_beside_saw(struct lwm_comm *numbered, int which, int result);
/* Numbers so many blocking calls ahead that are about to pass while the team forms; returns whether they may. And takes numbers of calls back that
 * were not made. */
bool lwm_beside_ahead(struct lwm_comm *comm, uint32_t many);
void lwm_beside_back(struct lwm_comm *comm, uint32_t many);
/* Leaves the team of a communicator that ends to its thread, which still meets the others: later communicators join in that memory. */
void lwm_beside_leave(struct lwm_comm *comm);
/* Has all threads end early; and waits until none is left. */
void lwm_beside_end(void);
void lwm_beside_close(void);
/* Returns whether threads go on. */
bool lwm_beside_goes_on(void);

#endif
