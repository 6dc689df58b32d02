/*
 * What is known of each communicator. How it gets its team is in teams.c.
 *
 * A record hangs on its communicator as an attribute, so that it goes when the communicator is freed. Records are kept and
 * used again, never given back: who finds one by a stale slot sees another handle in it and looks it up properly.
 */
#define _GNU_SOURCE
#include "bases.h"
#include "nodes.h"
#include "started.h"

#include <fcntl.h>
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
static int keyval, word_keyval;
MPI_Group lwm_world_group;

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
    lwm_agree_forget(comm);
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

static int word_freed(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)extra;
    lwm_agree_give_back(value);
    return 0;
}

/* A number for the kernel and the network namespace that this process is in: who shares both can meet. */
static uint64_t kernel(void)
{
    char text[256] = "";
    ssize_t length = 0;
    int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (file >= 0) length = read(file, text, 64);
    if (file >= 0) close(file);
    if (length <= 0) length = gethostname(text, 64) == 0 ? (ssize_t)strnlen(text, 64) : 0;
    ssize_t more = readlink("/proc/self/ns/net", text + length, 64);
    if (more > 0) length += more;
    /* FNV-1a. */
    uint64_t hash = 0xcbf29ce484222325u;
    for (ssize_t i = 0; i < length; i++) hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3u;
    return hash;
}

/* All ranks tell each other once what they need to know: everything later is decided alike by it. */
bool lwm_comms_open(bool fine, long long *settings, int many)
{
    enum { HEAD = 2 + LWM_OFFER };
    int words = HEAD + many;
    fine = lwm_world_size > 0 && lwm_host.Comm_group(lwm_host.world, &lwm_world_group) == 0 &&
           lwm_host.Comm_create_keyval(no_copy, freed, &keyval, NULL) == 0 &&
           lwm_host.Comm_create_keyval(no_copy, word_freed, &word_keyval, NULL) == 0 && fine;
    long long *all = malloc((size_t)words * sizeof *all * ((size_t)lwm_world_size + 1)), *mine = all + (size_t)words * lwm_world_size;
    lwm_node_of = malloc(sizeof *lwm_node_of * (size_t)lwm_world_size);
    /* Memory for some numbers: a process without them is about to end. */
    if (!all || !lwm_node_of) lwm_host.Abort(lwm_host.world, 1);
    mine[0] = (long long)kernel();
    mine[1] = fine;
    lwm_agree_offer(mine + 2);
    memcpy(mine + HEAD, settings, sizeof *settings * (size_t)many);
    fine = lwm_host.Allgather(mine, words, lwm_host.long_long, all, words, lwm_host.long_long, lwm_host.world) == 0;
    /* Rank 0's count: what is decided by them must be the same on all ranks. */
    memcpy(settings, all + HEAD, sizeof *settings * (size_t)many);
    long long a_node = settings[LWM_SETTING_RANKS_PER_NODE];
    /* The number of a node is the least rank in it: as they are, or as many in a row as LINEWEAVE_RANKS_PER_NODE says. */
    for (int r = 0; r < lwm_world_size; r++) {
        const long long *it = all + (size_t)words * r;
        fine = fine && it[1];
        int before = 0;
        lwm_node_of[r] = r;
        for (int q = 0; q < r; q++) {
            if (all[(size_t)words * q] != it[0]) continue;
            if (a_node <= 0 || before % a_node == 0) lwm_node_of[r] = q;
            before++;
            if (a_node <= 0) break;
        }
        if (a_node > 0 && before % a_node == 0) lwm_node_of[r] = r;
    }
    int first = lwm_node_of[lwm_world_rank];
    lwm_agree_open(all + (size_t)words * first + 2, first == lwm_world_rank);
    bool one_node = true;
    for (int r = 0; r < lwm_world_size; r++) one_node = one_node && lwm_node_of[r] == first;
    struct lwm_word *word = one_node ? lwm_agree_world() : NULL;
    if (word && lwm_host.Comm_set_attr(lwm_host.world, word_keyval, word) != 0) lwm_host.Abort(lwm_host.world, 1);
    free(all);
    return fine;
}

/* Ranks wait for each other by it, so one that has no memory to keep it cannot go on. */
static void give_word(MPI_Comm made, int taken)
{
    struct lwm_word *word = lwm_agree_word(taken);
    if (word && lwm_host.Comm_set_attr(made, word_keyval, word) != 0) lwm_host.Abort(made, 1);
}

/* What follows has all ranks take part at once: who has a new communicator knows that all ranks made it. */
int lwm_made(int result, const MPI_Comm *made)
{
    int inter = 1, size = 1, rank = 0, taken = 0;
    if (result != 0 || !lwm_active || !made || *made == lwm_host.null) return result;
    bool asked = lwm_host.Comm_test_inter(*made, &inter) == 0 && !inter && lwm_host.Comm_size(*made, &size) == 0 &&
                 lwm_host.Comm_rank(*made, &rank) == 0;
    if (!asked || size == 1) return result;
    /* Processes of another MPI_COMM_WORLD, which may be without lineweave, are seen by all ranks. */
    int *nodes = lwm_nodes_of(*made, size);
    if (!nodes) return result;
    bool here = true;
    for (int r = 0; r < size && here; r++) here = nodes[r] == lwm_node_of[lwm_world_rank];
    free(nodes);
    if (!here) return result;
    if (rank == 0) taken = lwm_agree_take(size);
    if (lwm_host.Bcast(&taken, 1, lwm_host.integer, 0, *made) != 0) return result;
    give_word(*made, taken);
    return result;
}

int lwm_all_made(MPI_Comm parent, int result, const MPI_Comm *made)
{
    if (LWM_UNLIKELY(lwm_open) && result == 0 && parent == lwm_host.world) lwm_set_up();
    return lwm_made(result, made);
}

/* A duplicate has the ranks of the other one, where they are. */
int lwm_duplicated(MPI_Comm handle, int result, const MPI_Comm *made)
{
    struct lwm_comm *from = lwm_active ? lwm_comm_of(handle) : NULL;
    if (!from || !from->shares) return lwm_all_made(handle, result, made);
    if (result != 0) {
        lwm_agree_barren(from);
        return result;
    }
    int taken = lwm_agree_heir(from);
    if (taken < 0) return lwm_made(result, made);
    give_word(*made, taken);
    return result;
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
    lwm_bases_close();
    lwm_same_close();
    lwm_agree_close();
}

static void count_plans(lw_comm *team)
{
    struct lw_setup setup;
    if (!team || lw_comm_setup(team, &setup) != LW_OK) return;
    __atomic_fetch_add(&lwm_setup[LWM_PLANS], setup.plans, __ATOMIC_RELAXED);
    __atomic_fetch_add(&lwm_setup[LWM_PLANS_NS], setup.took_ns, __ATOMIC_RELAXED);
}

/* Before it goes, or before the report: once for each communicator. */
void lwm_comm_count(struct lwm_comm *comm)
{
    count_plans(comm->team);
    count_plans(comm->started);
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

void lwm_comm_finish(MPI_Comm handle)
{
    /* Relaxed: as in lwm_started_finish. */
    if (LWM_LIKELY(__atomic_load_n(&lwm_started_live, __ATOMIC_RELAXED) == 0)) return;
    struct lwm_comm *found = __atomic_load_n(&lwm_slots[lwm_slot(handle)], __ATOMIC_ACQUIRE);
    if (!found || found->handle != handle) {
        pthread_mutex_lock(&lock);
        for (found = records; found && found->handle != handle;) found = found->next;
        pthread_mutex_unlock(&lock);
    }
    if (found) lwm_started_finish(found);
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
    found->look_at = lwm_settings.after;
    found->agrees_at = lwm_settings.after > 0 ? lwm_settings.after : 1;
    found->since_ns = lwm_now_ns();
    int there = 0;
    if (found->way == LWM_NEW) lwm_host.Comm_get_attr(handle, word_keyval, &found->word, &there);
    if (!there) found->word = NULL;
    found->board = found->word;
    __atomic_store_n(&lwm_slots[lwm_slot(handle)], found, __ATOMIC_RELEASE);
    return found;
}
