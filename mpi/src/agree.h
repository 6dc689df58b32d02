/* Functions by which ranks find each other in memory, and agree there. */
#ifndef LWM_AGREE_H
#define LWM_AGREE_H

#include "lwm.h"

/* ---- names of communicators (names.c) ---- */

/* Give a communicator its name after it was made, at each of its ranks, and return the result. For a duplicate; for calls that all ranks of
 * `parent` are in (see lwm_introduced_by); and for calls that only the ranks of a group are in. */
int lwm_duplicated(MPI_Comm parent, int result, const MPI_Comm *made);
int lwm_all_made(MPI_Comm parent, int result, const MPI_Comm *made);
int lwm_group_made(MPI_Comm parent, MPI_Group group, int tag, int result, const MPI_Comm *made);
/* Called after a communicator was made: if all ranks of MPI_COMM_WORLD are in it, they now learn whether all have the library. */
int lwm_introduced_by(MPI_Comm parent, int result, const MPI_Comm *made);
/* Gives a communicator a name. */
void lwm_named(MPI_Comm comm, uint64_t name);
/* Returns the name of a communicator; 0: none. */
uint64_t lwm_name_of(MPI_Comm comm);
bool lwm_names_open(void);
void lwm_names_forget(struct lwm_comm *comm);

/* ---- agreeing in memory to form a team (agree.c) ---- */

struct lwm_word;
struct lwm_order;
/* Pass a word and places from the first rank of a communicator, once, to the others, which wait for it: the word about its team is not 0. */
enum { LWM_PLACES = 2 };
void lwm_agree_tell(struct lwm_word *word, uint64_t told, const uint64_t places[LWM_PLACES]);
uint64_t lwm_agree_told(struct lwm_word *word, uint64_t places[LWM_PLACES]);
/* Tell the ranks that wait for this one while the team is made that it cannot go on; and return whether a rank has done so. */
void lwm_agree_give_up(struct lwm_word *word);
bool lwm_agree_gave_up(const struct lwm_word *word);
/* The word by which ranks that form a team change over (change.c). */
uint64_t *lwm_agree_change(struct lwm_word *word);
/* Called after a call that all ranks entered: returns whether all are there and form the team now. */
bool lwm_agree_all(struct lwm_comm *comm);
/* Counts a collective of a communicator, before it goes to the host. A rank that may have waited for a team then looks for it again. */
void lwm_agree_count(struct lwm_comm *comm);
/* Records the host's result of a collective: a failed call bars the word. Returns the result. */
int lwm_agree_saw(struct lwm_comm *comm, int result);
/* Called on the way out of the call with the number to agree at: forms the team, if all ranks are there. */
void lwm_agree(struct lwm_comm *comm);
/* Does the same for a started call, with its result. Its ranks agree when it is completed. */
int lwm_agree_started(const struct lwm_order *order, MPI_Request *request, int result);
/* Called with the host's result for a persistent call that was prepared. Returns it. */
int lwm_agree_prepared(const struct lwm_order *order, int result);
void lwm_agree_forget(const struct lwm_comm *comm);
/* Note which requests of an array are such calls, before they may be completed; and agree when they are. Return the result. */
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
