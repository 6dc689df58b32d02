/* Teams in whose memory later ones are made (bases.c). */
#ifndef LWM_BASES_H
#define LWM_BASES_H

#include "lwm.h"

/* A team whose ranks met, and in whose memory communicators of some of them are made. */
struct lwm_base {
    lw_site *site;
    uint64_t id;      /* 0: none */
    int size, *world; /* each rank of the team in MPI_COMM_WORLD */
    bool sure;        /* all of its ranks are known to have it */
};

/* Keeps a team whose ranks met, for communicators of its ranks; not if a team that all prefer has them (`lwm_base_find`). */
void lwm_base_keep(lw_comm *team, const char *name, const int *world, int size);
/* Returns the team with the least number among those that have all these ranks of MPI_COMM_WORLD, and stores their ranks in it. Threads
 * that meet at the same time keep theirs in another order at each rank; that number is one for all. Teams stay until MPI_Finalize. */
struct lwm_base lwm_base_find(const int *world, int many, int *ranks);
/* Returns the sure team with this number, and stores the ranks in it. */
struct lwm_base lwm_base_sure(uint64_t id, const int *world, int many, int *ranks);
void lwm_base_make_sure(uint64_t id);
void lwm_bases_close(void);

#endif
