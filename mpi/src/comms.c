/*
 * The record of each communicator. Forming its team is in teams.c.
 *
 * A record is attached to its communicator as an attribute, so that it goes when the communicator is freed. Records are kept and used again,
 * never given back: a caller that finds one by a stale slot sees another handle in it and looks it up properly.
 */
#define _GNU_SOURCE
#include "bases.h"
#include "board.h"
#include "forming.h"
#include "nodes.h"
#include "verdicts.h"
#include "planning.h"
#include "presence.h"
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
static int keyval;
MPI_Group lwm_world_group;

int lwm_no_copy(MPI_Comm comm, int key, void *extra, void *value, void *to, int *flag)
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
    lwm_beside_leave(comm);
    lwm_planning_leave(comm);
    lwm_verdicts_keep(comm);
    if (comm->started) lw_comm_free(comm->started);
    if (comm->team) lw_comm_free(comm->team);
    if (comm->nodes) lwm_nodes_free(comm->nodes);
    comm->started = NULL;
    comm->team = NULL;
    comm->nodes = NULL;
    if (comm->line) lwm_board_give_back(comm->line);
    lwm_names_forget(comm);
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

/* Returns a number for the kernel, the network namespace and the shared memory of this process: processes with the same number can meet. */
static uint64_t node_number(void)
{
    char text[256] = "";
    ssize_t length = 0;
    int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (file >= 0) length = read(file, text, 64);
    if (file >= 0) close(file);
    if (length <= 0) length = gethostname(text, 64) == 0 ? (ssize_t)strnlen(text, 64) : 0;
    ssize_t more = readlink("/proc/self/ns/net", text + length, 64);
    if (more > 0) length += more;
    text[length] = 0;
    return lwm_mix_text(lwm_board_token(), text);
}

bool lwm_comms_open(void)
{
    lwm_node_of = calloc((size_t)lwm_world_size, sizeof *lwm_node_of);
    return lwm_node_of && lwm_host.Comm_group(lwm_host.world, &lwm_world_group) == 0 && lwm_names_open() &&
           lwm_host.Comm_create_keyval(lwm_no_copy, freed, &keyval, NULL) == 0;
}

/* Numbers the nodes, each by the least rank on it: nodes as they are, or as many ranks in a row as LINEWEAVE_RANKS_PER_NODE says. `kernels` has a
 * number for each rank, or is null where all share one. */
static void number_nodes(const long long *kernels, int each)
{
    int a_node = lwm_settings.ranks_per_node;
    for (int r = 0; r < lwm_world_size; r++) {
        int before = 0;
        lwm_node_of[r] = r;
        if (!kernels) {
            lwm_node_of[r] = a_node > 0 ? r - r % a_node : 0;
            continue;
        }
        for (int q = 0; q < r; q++) {
            if (kernels[(size_t)q * each] != kernels[(size_t)r * each]) continue;
            if (a_node <= 0 || before % a_node == 0) lwm_node_of[r] = q;
            before++;
            if (a_node <= 0) break;
        }
        if (a_node > 0 && before % a_node == 0) lwm_node_of[r] = r;
    }
}

bool lwm_comms_meet(void)
{
    if (lwm_presence_is_one_node()) {
        number_nodes(NULL, 0);
        return true;
    }
    struct card { long long kernel; struct lwm_rules rules; } mine = {(long long)node_number(), lwm_rules_here()};
    int words = sizeof mine / sizeof(long long);
    struct card *all = malloc(sizeof mine * (size_t)lwm_world_size);
    /* Memory for some numbers: a process without them is about to end. */
    if (!all) lwm_host.Abort(lwm_host.world, 1);
    bool told = lwm_host.Allgather(&mine, words, lwm_host.long_long, all, words, lwm_host.long_long, lwm_host.world) == 0;
    if (told) {
        lwm_follow(all[0].rules);
        number_nodes(&all[0].kernel, words);
    }
    free(all);
    return told;
}

/* Frees the remaining teams. Their communicators are the host's to free. */
void lwm_comms_close(void)
{
    lwm_beside_end();
    for (struct lwm_comm *comm = records; comm; comm = comm->next) {
        lwm_started_finish(comm);
        lwm_beside_leave(comm);
        lwm_planning_leave(comm);
        lwm_verdicts_keep(comm);
        if (comm->started) lw_comm_free(comm->started);
        if (comm->team) lw_comm_free(comm->team);
        comm->started = NULL;
        comm->team = NULL;
        if (comm->nodes) lwm_nodes_close(comm->nodes);
        comm->plain_barriers = 0;
        comm->way = LWM_AWAY;
        comm->why = LWM_WHY_INACTIVE;
    }
    lwm_beside_close();
    lwm_planning_close();
    lwm_bases_close();
    lwm_same_close();
    lwm_board_close();
}

static void count_plans(lw_comm *team)
{
    struct lw_setup setup;
    if (!team || lw_comm_setup(team, &setup) != LW_OK) return;
    __atomic_fetch_add(&lwm_setup[LWM_PLANS], setup.plans, __ATOMIC_RELAXED);
    __atomic_fetch_add(&lwm_setup[LWM_PLANS_NS], setup.took_ns, __ATOMIC_RELAXED);
    __atomic_fetch_add(&lwm_setup[LWM_WAITED], setup.held_up, __ATOMIC_RELAXED);
}

/* Counts a communicator before it is freed, or before the report: once for each. */
void lwm_comm_count(struct lwm_comm *comm)
{
    count_plans(comm->team);
    count_plans(comm->started);
    struct lwm_count *count = &lwm_counts[LWM_BARRIER][0];
    __atomic_fetch_add(&count->taken, comm->barriers - comm->plain_barriers, __ATOMIC_RELAXED);
    comm->barriers = comm->plain_barriers = 0;
    if (comm->pass_given) lwm_pass_end(comm);
    for (int kind = 0; kind < LWM_HOT; kind++) lwm_count_hot(comm, kind);
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

/* Returns the record of a handle: the existing one, or a new one with `taken` set. The lock is not held across calls of the host. */
static struct lwm_comm *record(MPI_Comm handle, bool *taken)
{
    pthread_mutex_lock(&lock);
    struct lwm_comm *found = records;
    while (found && found->handle != handle) found = found->next;
    *taken = !found;
    if (!found) {
        found = vacant;
        if (found) vacant = found->next;
        else found = aligned_alloc(64, (sizeof *found + 63) & ~(size_t)63);
        if (found) {
            memset(found, 0, sizeof *found);
            found->handle = handle;
            found->next = records;
            records = found;
        }
    }
    pthread_mutex_unlock(&lock);
    return found;
}

struct lwm_comm *lwm_record_of(MPI_Comm handle)
{
    bool taken;
    struct lwm_comm *found = record(handle, &taken);
    if (!found || !taken) return found;
    /* Nobody else uses a communicator that is new to this library. */
    if (lwm_host.Comm_set_attr(handle, keyval, found) != 0) {
        retire(found);
        return NULL;
    }
    found->name = lwm_name_of(handle);
    return found;
}

/* Examines a communicator: its size, its nodes, and whether its ranks can agree in memory. False for a handle that is none. */
static bool look_into(struct lwm_comm *comm)
{
    int inter = 0;
    bool valid = lwm_host.Comm_test_inter(comm->handle, &inter) == 0 && lwm_host.Comm_rank(comm->handle, &comm->rank) == 0 &&
                 lwm_host.Comm_size(comm->handle, &comm->size) == 0;
    if (!valid) return false;
    comm->look_at = lwm_settings.after;
    comm->agrees_at = lwm_settings.after > 0 ? lwm_settings.after : 1;
    /* Calls from the time before ranks knew of each other. */
    for (; comm->position >= comm->agrees_at; comm->agrees_at *= 4) comm->attempt++;
    comm->since_ns = lwm_now_ns();
    comm->why = inter ? LWM_WHY_INTER : comm->size == 1 ? LWM_WHY_ALONE : LWM_WHY_EARLY;
    int *nodes = comm->why == LWM_WHY_EARLY ? lwm_nodes_of(comm->handle, comm->size) : NULL;
    bool here = nodes || (comm->name && lwm_settings.ranks_per_node == 0);
    for (int r = 0; nodes && r < comm->size && here; r++) here = nodes[r] == lwm_node_of[lwm_world_rank];
    if (comm->why == LWM_WHY_EARLY && !nodes) {
        /* Processes that MPI_COMM_WORLD does not have may be without lineweave; those that share the word are not. */
        comm->foreign = true;
        if (!here) comm->why = LWM_WHY_FOREIGN;
    }
    for (int r = 0; nodes && r < comm->size; r++) comm->members = lwm_mix(comm->members, (uint64_t)nodes[comm->size + r] + 1);
    free(nodes);
    if (comm->why == LWM_WHY_EARLY && here && comm->name) {
        comm->line = lwm_board_take(comm->name);
        if (comm->line) comm->word = (struct lwm_word *)comm->line->words;
        else comm->why = LWM_WHY_FAILED;
    }
    comm->way = comm->why == LWM_WHY_EARLY ? LWM_NEW : LWM_AWAY;
    return true;
}

/* Returns the record of a handle that is in no slot or has none yet; null when it is no communicator or there is no memory. */
struct lwm_comm *lwm_comm_slow(MPI_Comm handle)
{
    if (!lwm_active || handle == lwm_host.null || handle == (MPI_Comm)0) return NULL;
    struct lwm_comm *found = lwm_record_of(handle);
    if (found && found->way == LWM_FIRST && !look_into(found)) {
        retire(found);
        found = NULL;
    }
    if (found) __atomic_store_n(&lwm_slots[lwm_slot(handle)], found, __ATOMIC_RELEASE);
    return found;
}

/* Returns the record of a communicator, as lwm_record_of does: for calls before ranks know of each other, mostly on one communicator. Records are
 * never unmapped, and one that is retired has no handle. */
static struct lwm_comm *early_record_of(MPI_Comm handle)
{
    static struct lwm_comm *latest;
    /* Acquire: with the release below. */
    struct lwm_comm *found = __atomic_load_n(&latest, __ATOMIC_ACQUIRE);
    if (LWM_LIKELY(found && found->handle == handle)) return found;
    found = lwm_record_of(handle);
    if (found) __atomic_store_n(&latest, found, __ATOMIC_RELEASE);
    return found;
}

struct lwm_comm *lwm_comm_counted(MPI_Comm handle, int which, struct lwm_comm **numbered)
{
    *numbered = NULL;
    if (LWM_UNLIKELY(!lwm_active)) {
        struct lwm_comm *early = lwm_open && handle != lwm_host.null && handle != (MPI_Comm)0 ? early_record_of(handle) : NULL;
        if (early) __atomic_fetch_add(&early->position, 1, __ATOMIC_RELAXED);
        if (early && which != LWM_UNNUMBERED) lwm_beside_number(*numbered = early, which);
        return NULL;
    }
    struct lwm_comm *comm = lwm_comm_of(handle);
    if (comm && LWM_UNLIKELY(comm->pass_given)) lwm_pass_end(comm);
    if (comm && LWM_UNLIKELY(comm->way == LWM_NEW && comm->word)) lwm_agree_count(comm);
    bool may_change = comm && (comm->way <= LWM_FORMS || (which == LWM_STARTED && comm->forming));
    if (LWM_UNLIKELY(may_change) && which != LWM_UNNUMBERED) lwm_beside_number(*numbered = comm, which);
    return comm;
}
