/*
 * Forming the team of a communicator.
 *
 * 1. Ranks count the calls that all of them entered, as each can know after leaving: not those that were refused at a rank, nor those that end at
 *    one rank without the others. So the count is equal on all ranks. When calls that passed have cost about as much as a team costs, the
 *    communicator gets one, after such a call or another (docs/explanation/mpi-teams.md). On one node the ranks agree to it in memory (agree.c),
 *    which also shows that all of them are there. On several nodes rank 0 decides, and tells the others by the host: all ranks of MPI_COMM_WORLD
 *    are known to be there (presence.c).
 * 2. Directly after the same call, within it, all ranks exchange by the host: an existing team that has all ranks of their node, places in its
 *    memory, and whether the call went well.
 * 3. If they name the same team, they join the communicator there. They wait for each other in that memory, and all succeed or none does. A team
 *    in which all of its ranks have joined a communicator in this way is sure: all have it, so the first rank of the next communicator tells the
 *    others only by the word of agree.c that they join there. Ranks of several MPI_COMM_WORLD have no such team.
 * 4. Otherwise they exchange their CPUs and a name. The ranks of a node meet there and form a team, in whose memory later ones are made.
 * 5. Then, and with several nodes, all ranks tell by the host whether it worked. If it failed at one, none has a team: the communicator passes
 *    for ever.
 */
#define _GNU_SOURCE
#include "agree.h"
#include "bases.h"
#include "board.h"
#include "nodes.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static uint64_t meetings;

/* CPUs of a mask that are passed on: more are left out. */
#define CPUS 1024

/* Time that a team has cost rank 0 lately, in nanoseconds; before the first team, about the cost on known machines. */
static uint64_t team_ns = 3000000;
uint64_t lwm_team_ns(void) { return __atomic_load_n(&team_ns, __ATOMIC_RELAXED); }

/* The offer that ranks exchange of the team that has all ranks of their node: places are those of the node's first rank. */
enum { TEAM, STARTED };
struct offer {
    uint64_t fine, base, places[LWM_PLACES];
};
/* The first rank's message by a word instead: the number of a sure team, or this value, which is no such number, if there is none. */
enum { UNSURE = 1 };

/* The card that ranks exchange to meet. */
struct card {
    char name[64];
    uint64_t mask[CPUS / 64];
};

int *lwm_nodes_of(MPI_Comm comm, int size)
{
    int *ranks = malloc(2 * sizeof *ranks * (size_t)size), *there = ranks + size;
    MPI_Group group;
    if (!ranks || lwm_host.Comm_group(comm, &group) != 0) {
        free(ranks);
        return NULL;
    }
    for (int r = 0; r < size; r++) ranks[r] = r;
    bool known = lwm_host.Group_translate_ranks(group, size, ranks, lwm_world_group, there) == 0;
    lwm_host.Group_free(&group);
    for (int r = 0; r < size && known; r++) {
        known = there[r] != LWM_UNDEFINED && there[r] >= 0;
        if (known) ranks[r] = lwm_node_of[there[r]];
    }
    if (known) return ranks;
    free(ranks);
    return NULL;
}

static void fill(struct card *card)
{
    memset(card, 0, sizeof *card);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(card->name, sizeof card->name, "@lineweave-mpi-%d-%llu-%lld%09ld", (int)getpid(),
             (unsigned long long)__atomic_add_fetch(&meetings, 1, __ATOMIC_RELAXED), (long long)now.tv_sec, now.tv_nsec);
    cpu_set_t mask;
    if (sched_getaffinity(0, sizeof mask, &mask) != 0) return;
    for (int cpu = 0; cpu < CPUS && cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, &mask)) card->mask[cpu / 64] |= (uint64_t)1 << cpu % 64;
    }
}

/* Places ranks with these masks on CPUs: each on the first of its CPUs that has the fewest so far. Returns the number of CPUs that they may use
 * together. */
static int place(const struct card *const *cards, int ranks, int *cpus, int *allowed)
{
    int load[CPUS] = {0}, many = 0;
    for (int r = 0; r < ranks; r++) {
        int best = -1;
        for (int cpu = 0; cpu < CPUS; cpu++) {
            bool mine = cards[r]->mask[cpu / 64] >> cpu % 64 & 1;
            if (mine && (best < 0 || load[cpu] < load[best])) best = cpu;
        }
        cpus[r] = best < 0 ? 0 : best;
        load[cpus[r]]++;
    }
    for (int cpu = 0; cpu < CPUS; cpu++) {
        bool anybody = false;
        for (int r = 0; r < ranks && !anybody; r++) anybody = cards[r]->mask[cpu / 64] >> cpu % 64 & 1;
        if (anybody) allowed[many++] = cpu;
    }
    if (many == 0) allowed[many++] = 0;
    return many;
}

/* Lets the host move messages while a rank waits in lineweave: other ranks may need them before they arrive. Probing for a message takes none
 * away. (MPICH does nothing for others when asked about MPI_COMM_SELF.) */
void lwm_progress(void *unused)
{
    (void)unused;
    int flag;
    lwm_host.Iprobe(LWM_ANY_SOURCE, 0, lwm_host.world, &flag, LWM_STATUS_IGNORE);
}

/* Makes the communicator for started calls, if all ranks can have it. The rank may next wait for a message in the host, and others for such a
 * call, so a thread carries them on. */
static void make_started(struct lwm_comm *comm)
{
    lw_comm *made = NULL;
    int fine = lw_comm_dup(comm->team, &made) == LW_OK && lw_comm_set_progress(made, lwm_progress, NULL) == LW_OK &&
               lw_comm_set_progress_thread(made, 1) == LW_OK, all = 0;
    if (lwm_host.Allreduce(&fine, &all, 1, lwm_host.integer, lwm_host.min, comm->handle) == 0 && all) comm->started = made;
    else if (made) lw_comm_free(made);
}

/* The ranks of a communicator that are on this one's node, in its order. */
struct local {
    int many, mine, first;
    int *ranks, *world, *in_base;
};

static struct local local_of(const struct lwm_comm *comm, const int *nodes, int *memory)
{
    struct local local = {.first = -1, .ranks = memory, .world = memory + comm->size, .in_base = memory + 2 * comm->size};
    for (int r = 0; r < comm->size; r++) {
        if (nodes[r] != nodes[comm->rank]) continue;
        if (local.first < 0) local.first = r;
        if (r == comm->rank) local.mine = local.many;
        local.ranks[local.many] = r;
        local.world[local.many++] = nodes[comm->size + r];
    }
    return local;
}

/* Joins the communicator, and the one for started calls, at places in the memory of a team; null if that failed at a rank. */
static lw_comm *join_at(struct lwm_comm *comm, const struct local *local, lw_site *site, const uint64_t *places)
{
    lw_comm *made[LWM_PLACES] = {NULL};
    if (lw_site_join(site, places, LWM_PLACES, local->in_base, local->many, lwm_progress, NULL, made) != LW_OK)
        lwm_say("rank %d cannot join a communicator: %s", comm->rank, lw_last_error());
    else lw_comm_set_progress_thread(made[STARTED], 1);
    comm->started = made[STARTED];
    return made[TEAM];
}

static bool take_places(const struct lwm_base *base, const struct local *local, uint64_t places[LWM_PLACES])
{
    for (int i = 0; i < LWM_PLACES; i++) {
        if (lw_site_place(base->site, local->in_base, local->many, &places[i]) != LW_OK) return false;
    }
    return true;
}

/* Joins where the first rank says by the word that all have the team; false, before anything was done, if it says that they may not. */
static bool join_sure(struct lwm_comm *comm, const struct local *local, bool fine, lw_comm **team)
{
    if (!comm->word || local->many < comm->size) return false;
    struct lwm_base base = {0};
    uint64_t places[LWM_PLACES] = {0}, told = UNSURE;
    if (comm->rank == 0) {
        base = lwm_base_find(local->world, local->many, local->in_base);
        if (base.id && base.sure && take_places(&base, local, places)) told = base.id;
        lwm_agree_tell(comm->word, told, places);
    } else {
        told = lwm_agree_told(comm->word, places);
    }
    if (told == UNSURE) return false;
    if (comm->rank != 0) base = lwm_base_sure(told, local->world, local->many, local->in_base);
    if (fine) *team = join_at(comm, local, base.site, places);
    else lw_site_decline(base.site, places, LWM_PLACES, local->in_base, local->many);
    return true;
}

/* Joins in the memory of a team that exists; null if that failed, or if not all ranks of the communicator know such a team on their node, which
 * `known` tells. `fine` is set to whether it was true at all ranks. */
static lw_comm *join(struct lwm_comm *comm, const struct local *local, bool *fine, bool *known)
{
    lw_comm *team = NULL;
    if (join_sure(comm, local, *fine, &team)) {
        *known = true;
        return team;
    }
    /* A rank that is alone needs no team. */
    struct lwm_base base = local->many > 1 ? lwm_base_find(local->world, local->many, local->in_base) : (struct lwm_base){.id = UNSURE};
    struct offer mine = {.fine = *fine, .base = base.id}, *offers = malloc(sizeof mine * (size_t)comm->size);
    /* A rank without memory cannot take part in the exchange, nor tell the others. */
    if (!offers) lwm_host.Abort(comm->handle, 1);
    bool first = local->first == comm->rank;
    if (first && base.site && !take_places(&base, local, mine.places)) mine.base = 0;
    bool told = lwm_host.Allgather(&mine, sizeof mine, lwm_host.byte, offers, sizeof mine, lwm_host.byte, comm->handle) == 0;
    *known = *fine = told;
    for (int r = 0; r < comm->size; r++) {
        if (offers[r].base == 0) *known = false;
        if (!offers[r].fine) *fine = false;
    }
    for (int i = 0; i < local->many; i++) {
        if (offers[local->ranks[i]].base != offers[local->first].base) *known = false;
    }
    if (*known && *fine && base.site) team = join_at(comm, local, base.site, offers[local->first].places);
    if (team && comm->word && local->many == base.size) lwm_base_make_sure(base.id);
    free(offers);
    return team;
}

/* Returns whether no rank gave up, asked while ranks wait for each other to meet: a rank that cannot go on tells so by the word, where there is
 * one. */
static int nobody_gave_up(void *comm)
{
    const struct lwm_comm *it = comm;
    return !it->word || !lwm_agree_gave_up(it->word);
}

/* Meets the ranks of the node and forms a team with them. */
static lw_comm *meet(struct lwm_comm *comm, const struct local *local)
{
    struct card mine, *cards = malloc(sizeof mine * (size_t)comm->size);
    /* As above. */
    if (!cards) lwm_host.Abort(comm->handle, 1);
    fill(&mine);
    lw_comm *team = NULL;
    bool told = lwm_host.Allgather(&mine, sizeof mine, lwm_host.byte, cards, sizeof mine, lwm_host.byte, comm->handle) == 0;
    const struct card **there = malloc(sizeof *there * (size_t)local->many);
    int *cpus = malloc(sizeof *cpus * (size_t)local->many), allowed[CPUS];
    if (told && there && cpus && local->many > 1) {
        for (int i = 0; i < local->many; i++) there[i] = &cards[local->ranks[i]];
        int usable = place(there, local->many, cpus, allowed);
        const char *name = cards[local->first].name;
        if (lw_comm_connect_on(name, local->mine, local->many, cpus, allowed, usable, nobody_gave_up, comm, &team) != LW_OK) {
            /* Ranks that waited for one that gave up need not repeat the message. */
            if (nobody_gave_up(comm)) lwm_say("rank %d cannot join its node's team: %s", comm->rank, lw_last_error());
            team = NULL;
        } else {
            lw_comm_set_progress(team, lwm_progress, NULL);
            __atomic_fetch_add(&lwm_setup[LWM_MET], 1, __ATOMIC_RELAXED);
            if (!comm->foreign) lwm_base_keep(team, name, local->world, local->many);
        }
    }
    if (!team && local->many > 1 && comm->word) lwm_agree_give_up(comm->word);
    free(there);
    free(cpus);
    free(cards);
    return team;
}

static void away(struct lwm_comm *comm, enum lwm_reason why)
{
    comm->way = LWM_AWAY;
    comm->why = why;
}

/* Returns whether all ranks have the library, after a call that all entered. Of ranks of one MPI_COMM_WORLD it is known; of others, each that has
 * the library took the line before the call. */
static bool all_are_there(struct lwm_comm *comm)
{
    bool there = !comm->foreign || lwm_board_users(comm->line) >= comm->size;
    comm->why = there ? LWM_WHY_EARLY : LWM_WHY_ABSENT;
    return there;
}

/* Returns whether it is time to make the communicator's team, and all ranks are there for it. */
static bool is_due(struct lwm_comm *comm)
{
    if (comm->calls < comm->look_at) return false;
    comm->look_at = 2 * comm->calls;
    if (comm->word) return all_are_there(comm) && lwm_agree_all(comm);
    if (lwm_settings.counts) return true;
    int due = comm->passed_ns > lwm_team_ns();
    return lwm_host.Bcast(&due, 1, lwm_host.integer, 0, comm->handle) == 0 && due;
}

/* Gives a communicator a team of each node that has several of its ranks, if all is `well` at every rank. */
static void make(struct lwm_comm *comm, const int *nodes, bool several, bool well)
{
    int *memory = malloc(3 * sizeof *memory * (size_t)comm->size);
    /* As above. */
    if (!memory) lwm_host.Abort(comm->handle, 1);
    struct local local = local_of(comm, nodes, memory);
    bool known;
    lw_comm *team = join(comm, &local, &well, &known);
    bool met = well && !known;
    if (met) team = meet(comm, &local);
    int fine = well && (team || local.many == 1), all = fine;
    if (fine && several) fine = (comm->nodes = lwm_nodes_make(comm, nodes, team)) != NULL;
    /* A rank that joined in memory knows that all did. */
    bool agreed = !well || (!met && !several) ? fine :
        lwm_host.Allreduce(&fine, &all, 1, lwm_host.integer, lwm_host.min, comm->handle) == 0 && all;
    if (agreed && several) agreed = lwm_nodes_join(comm, comm->nodes);
    if (agreed) {
        comm->team = team;
        comm->way = several ? LWM_NODES : LWM_TEAM;
        if (!several && met) make_started(comm);
    } else {
        if (team) lw_comm_free(team);
        if (comm->started) lw_comm_free(comm->started);
        if (comm->nodes) lwm_nodes_free(comm->nodes);
        comm->started = NULL;
        comm->nodes = NULL;
        away(comm, LWM_WHY_FAILED);
        if (comm->rank == 0) lwm_say("a communicator of %d ranks has no team, and passes to the host", comm->size);
    }
    free(memory);
}

/* Returns the result of lwm_nodes_of for ranks that share a node and are no ranks of this MPI_COMM_WORLD. */
static int *nowhere(int size)
{
    int *nodes = malloc(2 * sizeof *nodes * (size_t)size);
    for (int r = 0; nodes && r < size; r++) {
        nodes[r] = 0;
        nodes[size + r] = -1;
    }
    return nodes;
}

void lwm_comm_settle(struct lwm_comm *comm, bool fine)
{
    uint64_t began = lwm_now_ns();
    int *nodes = comm->foreign ? nowhere(comm->size) : lwm_nodes_of(comm->handle, comm->size);
    /* The ranks are known to be there: without memory this one cannot tell the others. */
    if (!nodes) lwm_host.Abort(comm->handle, 1);
    bool shared = false, several = false;
    for (int r = 0; r < comm->size; r++) {
        several = several || nodes[r] != nodes[0];
        for (int q = 0; q < r && !shared; q++) shared = nodes[q] == nodes[r];
    }
    if (shared) make(comm, nodes, several, fine);
    else away(comm, LWM_WHY_SPREAD);
    free(nodes);
    uint64_t took = lwm_now_ns() - began, before = lwm_team_ns();
    __atomic_store_n(&team_ns, (before + took) / 2, __ATOMIC_RELAXED);
    __atomic_fetch_add(&lwm_setup[LWM_TEAMS], comm->way == LWM_TEAM || comm->way == LWM_NODES, __ATOMIC_RELAXED);
    __atomic_fetch_add(&lwm_setup[LWM_TEAMS_NS], took, __ATOMIC_RELAXED);
}

void lwm_comm_came(struct lwm_comm *comm, bool fine)
{
    comm->calls++;
    if (is_due(comm)) lwm_comm_settle(comm, fine);
}
