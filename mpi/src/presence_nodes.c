/*
 * Detection of the ranks of other nodes that have this library, by names that the launcher keeps (MPI_Publish_name), without any communicator.
 *
 * 1. A node's last rank to announce itself publishes the node's ranks: the first, their distance and their number, and this build. It does so
 *    within MPI_Init, so before any call that all ranks went into.
 * 2. After such a call the first rank of rank 0's node looks up one node after the other: the node of rank 0, then that of the least rank that is on
 *    none of those before, until all ranks are accounted for or a name is not there. It publishes what came out.
 * 3. The first ranks of the other nodes look up whether the node of rank 0 is there at all, and then wait for that outcome.
 *
 * Where a launcher keeps no names, or the ranks of a node are not evenly spaced, the program is left to its MPI.
 */
#include "presence.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The room for a port in the MPI that gives it most. */
enum { PORT = 1024 };

/* The published description of a node. */
struct ranks {
    int first, stride, many;
};

/* Makes a name for something of this job. A launcher keeps names for one job and those it spawned. */
static void name_it(char *name, size_t room, const char *what, int number)
{
    const char *space = getenv("PMIX_NAMESPACE");
    uint64_t job = lwm_mix(lwm_mix_text(lwm_presence_parent(), space ? space : ""), (uint64_t)lwm_world_size);
    snprintf(name, room, "lineweave-%016llx-%s-%d", (unsigned long long)job, what, number);
}

/* Error handlers to restore. The launcher's errors go to MPI_COMM_WORLD or MPI_COMM_SELF, where the program may have made them fatal. */
struct handlers {
    MPI_Errhandler world, self;
};

static struct handlers bear_errors(void)
{
    struct handlers before;
    lwm_host.Comm_get_errhandler(lwm_host.world, &before.world);
    lwm_host.Comm_get_errhandler(lwm_host.self, &before.self);
    lwm_host.Comm_set_errhandler(lwm_host.world, lwm_host.errors_return);
    lwm_host.Comm_set_errhandler(lwm_host.self, lwm_host.errors_return);
    return before;
}

static void as_before(struct handlers before)
{
    lwm_host.Comm_set_errhandler(lwm_host.world, before.world);
    lwm_host.Comm_set_errhandler(lwm_host.self, before.self);
    lwm_host.Errhandler_free(&before.world);
    lwm_host.Errhandler_free(&before.self);
}

static bool publish(const char *what, int number, const char *text)
{
    char name[64];
    name_it(name, sizeof name, what, number);
    return lwm_host.Publish_name(name, lwm_host.no_info, text) == 0;
}

static bool look_up(const char *what, int number, char text[PORT])
{
    char name[64];
    name_it(name, sizeof name, what, number);
    memset(text, 0, PORT);
    return lwm_host.Lookup_name(name, lwm_host.no_info, text) == 0;
}

void lwm_nodes_publish(const struct lwm_census *here)
{
    int first = lwm_world_size - (int)here->from_top, last = (int)here->upto - 1, many = (int)here->count;
    int stride = many > 1 ? (last - first) / (many - 1) : 1;
    if (here->sum != lwm_rank_numbers(first, stride, many)) return;
    char text[64];
    snprintf(text, sizeof text, "%016llx.%d.%d.%d", (unsigned long long)lwm_build(), first, stride, many);
    struct handlers before = bear_errors();
    publish("node", first, text);
    as_before(before);
}

/* Marks the ranks of a node that begins with this one; returns their number, or 0 if the node is not published as it should be. */
static int mark_node(int first, char *there)
{
    char text[PORT];
    unsigned long long build;
    struct ranks node;
    bool known = look_up("node", first, text) && sscanf(text, "%llx.%d.%d.%d", &build, &node.first, &node.stride, &node.many) == 4 &&
                 build == lwm_build() && node.first == first && node.stride > 0 && node.many > 0;
    for (int i = 0; i < node.many && known; i++) {
        long rank = first + (long)i * node.stride;
        known = rank < lwm_world_size && !there[rank];
        if (known) there[rank] = 1;
    }
    return known ? node.many : 0;
}

static bool all_nodes_are_there(void)
{
    char *there = calloc((size_t)lwm_world_size, 1);
    int found = 0;
    for (int rank = 0; there && rank < lwm_world_size; rank++) {
        if (there[rank]) continue;
        int many = mark_node(rank, there);
        if (many == 0) break;
        found += many;
    }
    free(there);
    return found == lwm_world_size;
}

bool lwm_nodes_all_published(const struct lwm_census *here)
{
    struct handlers before = bear_errors();
    bool of_first = here->from_top == (uint32_t)lwm_world_size, all = false;
    char text[PORT];
    if (of_first) {
        /* Without the outcome, the other nodes would wait for it. */
        all = all_nodes_are_there();
        if (!publish("all", 0, all ? "yes" : "no")) lwm_host.Abort(lwm_host.world, 1);
    } else if (look_up("node", 0, text)) {
        while (!look_up("all", 0, text)) {
            nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
            lwm_progress(NULL);
        }
        all = strcmp(text, "yes") == 0;
    }
    as_before(before);
    return all;
}
