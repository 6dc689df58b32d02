/*
 * What is known of each communicator, and how it gets its team.
 *
 * 1. Every call counts the communicator's calls; the count is equal on all ranks, which make the same calls in one order.
 * 2. At the same call, all ranks exchange by the host where they run and a name at which to meet.
 * 3. The ranks of a node meet there and form a team.
 * 4. All ranks say by the host whether it worked. If one could not, none does: the communicator passes for ever.
 *
 * A record hangs on its communicator as an attribute, so that it goes when the communicator is freed. Records are kept and
 * used again, never given back: who finds one by a stale slot sees another handle in it and looks it up properly.
 */
#define _GNU_SOURCE
#include "lwm.h"
#include "nodes.h"
#include "started.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct lwm_comm *lwm_slots[LWM_SLOTS];
int *lwm_node_of;
int lwm_world_size, lwm_world_rank;

/* All records in use, and those that were freed. The lock is never held across a call of the host. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct lwm_comm *records, *vacant;
static int keyval;
static MPI_Group world_group;
static uint64_t meetings;

/* CPUs of a mask that are passed on: more are left out. */
#define CPUS 1024

/* What ranks tell each other. */
struct card {
    char name[64];
    uint64_t mask[CPUS / 64];
};

static int no_copy(MPI_Comm comm, int key, void *extra, void *value, void *to, int *flag)
{
    (void)comm, (void)key, (void)extra, (void)value, (void)to;
    *flag = 0;
    return 0;
}

static void retire(struct lwm_comm *comm)
{
    lwm_comm_count(comm);
    lwm_started_finish(comm);
    if (comm->started) lw_comm_free(comm->started);
    if (comm->team) lw_comm_free(comm->team);
    if (comm->nodes) lwm_nodes_free(comm->nodes);
    comm->started = NULL;
    comm->team = NULL;
    comm->nodes = NULL;
    pthread_mutex_lock(&lock);
    struct lwm_comm **at = &records;
    while (*at && *at != comm) at = &(*at)->next;
    if (*at) *at = comm->next;
    size_t slot = lwm_slot(comm->handle);
    if (lwm_slots[slot] == comm) __atomic_store_n(&lwm_slots[slot], NULL, __ATOMIC_RELEASE);
    comm->handle = lwm_host.null;
    comm->plain_barriers = 0;
    comm->next = vacant;
    vacant = comm;
    pthread_mutex_unlock(&lock);
}

static int freed(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)extra;
    retire(value);
    return 0;
}

/* Each rank's node: who shares memory, or as many in a row as LINEWEAVE_RANKS_PER_NODE says. */
static bool find_nodes(void)
{
    MPI_Comm node;
    if (lwm_host.Comm_split_type(lwm_host.world, LWM_COMM_TYPE_SHARED, 0, lwm_host.no_info, &node) != 0) return false;
    int first = lwm_world_rank, place = 0;
    bool known = lwm_host.Bcast(&first, 1, lwm_host.integer, 0, node) == 0;
    known = known && lwm_host.Comm_rank(node, &place) == 0 && lwm_host.Comm_free(&node) == 0;
    int many = lwm_settings.ranks_per_node;
    int mine[2] = {first, many > 0 ? place / many : 0};
    int *all = malloc(sizeof mine * (size_t)lwm_world_size);
    lwm_node_of = malloc(sizeof *lwm_node_of * (size_t)lwm_world_size);
    if (!all || !lwm_node_of) known = false;
    /* Memory for some numbers: a process without them is about to end. */
    if (known) known = lwm_host.Allgather(mine, 2, lwm_host.integer, all, 2, lwm_host.integer, lwm_host.world) == 0;
    /* The number of a node is the least rank in it. */
    for (int r = 0; known && r < lwm_world_size; r++) {
        lwm_node_of[r] = r;
        for (int q = 0; q < r; q++) {
            if (all[2 * q] == all[2 * r] && all[2 * q + 1] == all[2 * r + 1]) {
                lwm_node_of[r] = lwm_node_of[q];
                break;
            }
        }
    }
    free(all);
    return known;
}

bool lwm_comms_open(void)
{
    return lwm_host.Comm_size(lwm_host.world, &lwm_world_size) == 0 && lwm_host.Comm_rank(lwm_host.world, &lwm_world_rank) == 0 &&
           lwm_host.Comm_group(lwm_host.world, &world_group) == 0 &&
           lwm_host.Comm_create_keyval(no_copy, freed, &keyval, NULL) == 0 && find_nodes();
}

/* Frees the teams that are left. Their communicators are the host's to free. */
void lwm_comms_close(void)
{
    for (struct lwm_comm *comm = records; comm; comm = comm->next) {
        lwm_started_finish(comm);
        if (comm->started) lw_comm_free(comm->started);
        if (comm->team) lw_comm_free(comm->team);
        comm->started = NULL;
        comm->team = NULL;
        if (comm->nodes) lwm_nodes_close(comm->nodes);
        comm->plain_barriers = 0;
        comm->way = LWM_AWAY;
        comm->why = LWM_WHY_INACTIVE;
    }
}

void lwm_comm_count(struct lwm_comm *comm)
{
    struct lwm_count *count = &lwm_counts[LWM_BARRIER][0];
    __atomic_fetch_add(&count->taken, comm->barriers - comm->plain_barriers, __ATOMIC_RELAXED);
    comm->barriers = comm->plain_barriers = 0;
    for (int kind = 0; kind < LWM_HOT; kind++) {
        lwm_count_hot(comm, kind);
        comm->hot[kind].left = 0;
    }
}

void lwm_comms_count(void)
{
    pthread_mutex_lock(&lock);
    for (struct lwm_comm *comm = records; comm; comm = comm->next) lwm_comm_count(comm);
    pthread_mutex_unlock(&lock);
}

/* The record of a handle that is in no slot or has none yet; null when it is no communicator or there is no memory. */
struct lwm_comm *lwm_comm_slow(MPI_Comm handle)
{
    if (!lwm_active || handle == lwm_host.null || handle == (MPI_Comm)0) return NULL;
    pthread_mutex_lock(&lock);
    struct lwm_comm *found = records;
    while (found && found->handle != handle) found = found->next;
    if (!found) {
        found = vacant;
        if (found) vacant = found->next;
        else if ((found = aligned_alloc(64, (sizeof *found + 63) & ~(size_t)63))) memset(found, 0, sizeof *found);
        if (found) {
            memset(found, 0, sizeof *found);
            found->handle = handle;
            found->next = records;
            records = found;
        }
    } else {
        __atomic_store_n(&lwm_slots[lwm_slot(handle)], found, __ATOMIC_RELEASE);
        pthread_mutex_unlock(&lock);
        return found;
    }
    pthread_mutex_unlock(&lock);
    if (!found) return NULL;
    /* Asked of the host without the lock; nobody else uses a communicator that is new to this library. */
    int inter = 0;
    bool valid = lwm_host.Comm_test_inter(handle, &inter) == 0 && lwm_host.Comm_rank(handle, &found->rank) == 0 &&
                 lwm_host.Comm_size(handle, &found->size) == 0 && lwm_host.Comm_set_attr(handle, keyval, found) == 0;
    if (!valid) {
        retire(found);
        return NULL;
    }
    found->way = inter || found->size == 1 ? LWM_AWAY : LWM_NEW;
    found->why = inter ? LWM_WHY_INTER : found->size == 1 ? LWM_WHY_ALONE : LWM_WHY_EARLY;
    __atomic_store_n(&lwm_slots[lwm_slot(handle)], found, __ATOMIC_RELEASE);
    return found;
}

/* The node of each rank of a communicator, in memory to free; null when one is not in MPI_COMM_WORLD, or without memory. */
static int *nodes_of(struct lwm_comm *comm)
{
    int *ranks = malloc(2 * sizeof *ranks * (size_t)comm->size), *there = ranks + comm->size;
    MPI_Group group;
    if (!ranks || lwm_host.Comm_group(comm->handle, &group) != 0) {
        free(ranks);
        return NULL;
    }
    for (int r = 0; r < comm->size; r++) ranks[r] = r;
    bool known = lwm_host.Group_translate_ranks(group, comm->size, ranks, world_group, there) == 0;
    lwm_host.Group_free(&group);
    for (int r = 0; r < comm->size && known; r++) {
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

/* Where ranks with these masks run: each on the first of its CPUs that has the fewest so far. Returns how many CPUs
 * they may use together. */
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

/* Called while a rank waits in lineweave: the host moves what other ranks may need of this one before they come. Looking for a
 * message takes none away. (MPICH does nothing for others when asked about MPI_COMM_SELF.) */
void lwm_progress(void *unused)
{
    (void)unused;
    int flag;
    lwm_host.Iprobe(LWM_ANY_SOURCE, 0, lwm_host.world, &flag, LWM_STATUS_IGNORE);
}

/* Meets the ranks of this rank's node. */
static lw_comm *meet(struct lwm_comm *comm, const struct card *cards, const int *nodes, int *members, int *first)
{
    const struct card **local = malloc(sizeof *local * (size_t)comm->size);
    int *cpus = malloc(sizeof *cpus * (size_t)comm->size), allowed[CPUS];
    lw_comm *team = NULL;
    int many = 0, mine = 0;
    *first = -1;
    for (int r = 0; r < comm->size; r++) {
        if (nodes[r] != nodes[comm->rank]) continue;
        if (*first < 0) *first = r;
        if (r == comm->rank) mine = many;
        if (local) local[many] = &cards[r];
        many++;
    }
    *members = many;
    if (local && cpus && many > 1) {
        int usable = place(local, many, cpus, allowed);
        lw_status made = lw_comm_connect_on(cards[*first].name, mine, many, cpus, allowed, usable, &team);
        if (made != LW_OK) {
            lwm_say("rank %d cannot join its node's team: %s", comm->rank, lw_last_error());
            team = NULL;
        } else {
            lw_comm_set_progress(team, lwm_progress, NULL);
        }
    }
    free(local);
    free(cpus);
    return team;
}

/* What started calls run on, if all ranks can have it. The rank may next wait for a message in the host, and others for such a
 * call, so a thread carries them on. */
static void make_started(struct lwm_comm *comm)
{
    lw_comm *made = NULL;
    int fine = lw_comm_dup(comm->team, &made) == LW_OK && lw_comm_set_progress(made, lwm_progress, NULL) == LW_OK &&
               lw_comm_set_progress_thread(made, 1) == LW_OK, all = 0;
    if (lwm_host.Allreduce(&fine, &all, 1, lwm_host.integer, lwm_host.min, comm->handle) == 0 && all) comm->started = made;
    else if (made) lw_comm_free(made);
}

static void away(struct lwm_comm *comm, enum lwm_reason why)
{
    comm->way = LWM_AWAY;
    comm->why = why;
}

void lwm_comm_settle(struct lwm_comm *comm)
{
    int *nodes = nodes_of(comm);
    if (!nodes) return away(comm, LWM_WHY_FOREIGN);
    int shared = 0, several = 0;
    for (int r = 0; r < comm->size; r++) {
        several = several || nodes[r] != nodes[0];
        for (int q = 0; q < r && !shared; q++) shared = nodes[q] == nodes[r];
    }
    struct card *cards = NULL, mine;
    int fine = 1, members = 0, first = 0;
    if (!shared) {
        away(comm, LWM_WHY_SPREAD);
    } else {
        fill(&mine);
        cards = malloc(sizeof mine * (size_t)comm->size);
        /* Who has no memory for the cards cannot take part in the exchange, nor tell the others. */
        if (!cards) lwm_host.Abort(comm->handle, 1);
        fine = lwm_host.Allgather(&mine, sizeof mine, lwm_host.byte, cards, sizeof mine, lwm_host.byte, comm->handle) == 0;
        lw_comm *team = fine ? meet(comm, cards, nodes, &members, &first) : NULL;
        fine = fine && (team || members == 1);
        if (fine && several) fine = (comm->nodes = lwm_nodes_make(comm, nodes, team)) != NULL;
        int all = 0;
        bool agreed = lwm_host.Allreduce(&fine, &all, 1, lwm_host.integer, lwm_host.min, comm->handle) == 0 && all;
        if (agreed && several) agreed = lwm_nodes_join(comm, comm->nodes);
        if (agreed) {
            comm->team = team;
            comm->way = several ? LWM_NODES : LWM_TEAM;
            if (!several) make_started(comm);
        } else {
            if (team) lw_comm_free(team);
            if (comm->nodes) lwm_nodes_free(comm->nodes);
            comm->nodes = NULL;
            away(comm, LWM_WHY_FAILED);
            if (comm->rank == 0) lwm_say("a communicator of %d ranks has no team, and passes to the host", comm->size);
        }
    }
    free(cards);
    free(nodes);
}
