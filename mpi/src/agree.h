/* How ranks find each other in memory, and agree there. */
#ifndef LWM_AGREE_H
#define LWM_AGREE_H

#include "lwm.h"

/* ---- names of communicators (names.c) ---- */

/* After a communicator was made, by each of its ranks: gives it its name. Return the result. Of a duplicate; of calls that all ranks of `parent` are in
 * (see lwm_introduced_by); and of calls that only the ranks of a group are in. */
int lwm_duplicated(MPI_Comm parent, int result, const MPI_Comm *made);
int lwm_all_made(MPI_Comm parent, int result, const MPI_Comm *made);
int lwm_group_made(MPI_Comm parent, MPI_Group group, int tag, int result, const MPI_Comm *made);
/* After a communicator was made: if all ranks of MPI_COMM_WORLD are in it, they now learn whether all have the library. */
int lwm_introduced_by(MPI_Comm parent, int result, const MPI_Comm *made);
/* Gives a communicator a name. */
void lwm_named(MPI_Comm comm, uint64_t name);
/* The name that a communicator has; 0: none. */
uint64_t lwm_name_of(MPI_Comm comm);
bool lwm_names_open(void);
void lwm_names_forget(struct lwm_comm *comm);

/* ---- agreeing in memory to form a team (agree.c) ---- */

struct lwm_word;
/* By the first rank of a communicator, once, and by the others, which wait for it: what it tells of its team, not 0, and places. */
enum { LWM_PLACES = 2 };
void lwm_agree_tell(struct lwm_word *word, uint64_t told, const uint64_t places[LWM_PLACES]);
uint64_t lwm_agree_told(struct lwm_word *word, uint64_t places[LWM_PLACES]);
/* Says to ranks that wait for this one within the team's making that it cannot go on; and whether one has. */
void lwm_agree_give_up(struct lwm_word *word);
bool lwm_agree_gave_up(const struct lwm_word *word);
/* After a call that all ranks went into: whether all are there and form the team now. */
bool lwm_agree_all(struct lwm_comm *comm);
/* Counts a collective of a communicator, before it goes to the host. Who may have waited for a team then looks for it again. */
void lwm_agree_count(struct lwm_comm *comm);
/* What the host made of one: a call that failed bars the word. Returns the result. */
int lwm_agree_saw(struct lwm_comm *comm, int result);
/* On the way out of the call with the number to agree at: forms the team, if all ranks are there. */
void lwm_agree(struct lwm_comm *comm);
/* The same of one that was started, at this time if it is the one to agree at, else 0. Its ranks agree when it is completed. */
int lwm_agree_started(struct lwm_comm *comm, MPI_Request *request, uint64_t began_ns, int result);
void lwm_agree_forget(const struct lwm_comm *comm);
/* Which requests of an array are such ones, before they may be completed; and what follows when they are. Returns the result. */
enum { LWM_WATCHED = 16 };
struct lwm_watch {
    int many, at[LWM_WATCHED];
    struct lwm_comm *comms[LWM_WATCHED];
    uint64_t began_ns;
};
extern uint64_t lwm_watches;
void lwm_watch(struct lwm_watch *watch, int count, const MPI_Request *array);
int lwm_watched(const struct lwm_watch *watch, const MPI_Request *array, int result);

#endif
