/*
 * Teams whose ranks met: communicators of some of their ranks are made in their memory, without meeting again.
 */
#include "bases.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* The lock of the teams below; it is never held across a call of the host. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Most teams without common ranks that are kept; beyond them, ranks meet again. */
enum { BASES = 16 };
static struct lwm_base bases[BASES];

/* Returns whether a base has all these ranks of MPI_COMM_WORLD, and stores their ranks in it. */
static bool covers(const struct lwm_base *base, const int *world, int many, int *ranks)
{
    for (int at = 0; at < many; at++) {
        int r = 0;
        while (r < base->size && base->world[r] != world[at]) r++;
        if (r == base->size) return false;
        if (ranks) ranks[at] = r;
    }
    return true;
}

void lwm_base_keep(lw_comm *team, const char *name, const int *world, int size)
{
    struct lwm_base made = {.size = size, .world = malloc(sizeof *world * (size_t)size)};
    if (!made.world || lw_comm_site(team, &made.site) != LW_OK) {
        free(made.world);
        return;
    }
    memcpy(made.world, world, sizeof *world * (size_t)size);
    made.id = 0xcbf29ce484222325u;
    for (; *name; name++) made.id = (made.id ^ (unsigned char)*name) * 0x100000001b3u;
    made.id |= 2;
    pthread_mutex_lock(&lock);
    int i = 0;
    while (i < BASES && bases[i].id && !(bases[i].id < made.id && covers(&bases[i], world, size, NULL))) i++;
    bool kept = i < BASES && bases[i].id == 0;
    if (kept) bases[i] = made;
    pthread_mutex_unlock(&lock);
    if (kept) return;
    lw_site_free(made.site);
    free(made.world);
}

struct lwm_base lwm_base_find(const int *world, int many, int *ranks)
{
    struct lwm_base found = {0};
    pthread_mutex_lock(&lock);
    for (int i = 0; i < BASES && bases[i].id; i++) {
        bool better = !found.id || bases[i].id < found.id;
        if (better && covers(&bases[i], world, many, NULL)) found = bases[i];
    }
    pthread_mutex_unlock(&lock);
    if (found.id) covers(&found, world, many, ranks);
    return found;
}

struct lwm_base lwm_base_sure(uint64_t id, const int *world, int many, int *ranks)
{
    struct lwm_base found = {0};
    pthread_mutex_lock(&lock);
    for (int i = 0; i < BASES; i++) {
        if (bases[i].id == id) found = bases[i];
    }
    pthread_mutex_unlock(&lock);
    if (found.id) covers(&found, world, many, ranks);
    return found;
}

void lwm_base_make_sure(uint64_t id)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < BASES; i++) bases[i].sure = bases[i].sure || bases[i].id == id;
    pthread_mutex_unlock(&lock);
}

void lwm_bases_close(void)
{
    for (int i = 0; i < BASES; i++) {
        lw_site_free(bases[i].site);
        free(bases[i].world);
        bases[i] = (struct lwm_base){0};
    }
}
