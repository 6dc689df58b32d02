/* Detection of the ranks that have this library, without the program's communicators (presence.c, between nodes: presence_nodes.c). */
#ifndef LWM_PRESENCE_H
#define LWM_PRESENCE_H

#include "board.h"
#include "agree.h"

/* The ranks of one MPI_COMM_WORLD on one node that are known to each other: the words of a line. Each rank adds itself once, before its first
 * call. */
struct lwm_census {
    struct lwm_rules rules; /* rank 0's */
    uint64_t sum;           /* of a number for each rank that is there: it tells a rank that came twice from two ranks */
    uint32_t count;
    uint32_t from_top, upto;  /* the size less the least rank, and the greatest one + 1; 0: none came */
    uint32_t verdict;         /* of the node's first rank, for jobs of several nodes; 0: none yet, else one of these */
};
enum { LWM_ALL_ARE_THERE = 1, LWM_SOME_LACK = 2 };
_Static_assert(sizeof(struct lwm_census) <= sizeof(((struct lwm_line *)0)->words), "it is in a line");

/* Announces in memory that this rank has the library, and at rank 0 the settings. Called before the program's first call; by a rank alone in its
 * MPI_COMM_WORLD when it first spawns others, as no other rank looks for it. */
void lwm_presence_announce(void);
/* Returns whether this rank is alone in its MPI_COMM_WORLD, was not spawned, and has spawned nobody yet. */
bool lwm_presence_is_lone(void);
/* Returns whether all ranks of MPI_COMM_WORLD have announced themselves, and takes over the settings of rank 0. All that have call it after a
 * call that all entered, so that a rank that is missing then will never come. */
bool lwm_presence_of_all(void);
/* Returns the number of ranks of this node that have the library, and stores whether this is the first of them; 0 where that cannot be known. */
int lwm_presence_count(bool *first);
/* Returns whether all ranks of MPI_COMM_WORLD are on this node. */
bool lwm_presence_is_one_node(void);
/* Returns the name of MPI_COMM_WORLD among all communicators on this node; 0: its ranks cannot find each other. */
uint64_t lwm_presence_world(void);

/* The variable that identifies a spawn to its children: the launcher, and the name of the intercommunicator; null if this process was not spawned
 * by one with the library. */
#define LWM_SPAWN_VARIABLE "LINEWEAVE_MPI_SPAWN"
uint64_t lwm_presence_launcher(void);
/* Returns the name of the intercommunicator to this process's parents; 0: none is known. */
uint64_t lwm_presence_parent(void);

/* ---- several nodes (presence_nodes.c) ---- */

/* Called by the last rank of a node to announce itself: tells other nodes which ranks are there. */
void lwm_nodes_publish(const struct lwm_census *here);
/* Called by a node's first rank: returns whether the ranks of all nodes are there. */
bool lwm_nodes_all_published(const struct lwm_census *here);
/* Return a number for each rank; and the sum of those of `many` ranks from `first` on, each `stride` after the last. */
static inline uint64_t lwm_rank_number(uint64_t rank) { return lwm_mix(LWM_NAME_RANK, rank); }
uint64_t lwm_rank_numbers(int first, int stride, int many);

#endif
