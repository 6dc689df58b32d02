/*
 * Detection of the ranks that have this library. No message of lineweave's travels on a communicator of the program unless all of its ranks are
 * known to have it.
 *
 * 1. A launcher (mpirun's daemon on the node, srun's) identifies each process in its environment: the socket to talk to the launcher, the job,
 *    the rank. That identifies this MPI_COMM_WORLD on the node. It counts only if it gives this process the rank that MPI gives it: ranks that an
 *    inner launcher started inherit one rank from outside, which is that of one of them at most.
 * 2. In MPI_Init each rank adds itself to the census of its MPI_COMM_WORLD, a line in memory that the launcher's processes share (board.c). A rank
 *    without the library, with another build of it, or that cannot map that memory does not.
 * 3. After the first call that all ranks are known to have gone into, the census is final: each rank added itself before its first call. So all
 *    ranks read the same and decide alike. If it is not complete, every call is the MPI's for ever.
 * 4. Rank 0 also adds its settings, which hold for all.
 * 5. Ranks on several nodes: presence_nodes.c.
 */
#define _GNU_SOURCE
#include "presence.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static struct lwm_census *census;
static uint64_t launcher_name, world_name, parent_name;

uint64_t lwm_presence_launcher(void) { return launcher_name; }
uint64_t lwm_presence_world(void) { return world_name; }
uint64_t lwm_presence_parent(void) { return parent_name; }

/* Returns a variable's whole number, or -1. */
static long number_of(const char *name)
{
    const char *text = getenv(name);
    char *end = NULL;
    long value = text && *text ? strtol(text, &end, 10) : -1;
    return end && *end == 0 ? value : -1;
}

/* Returns the start time of a process, in the kernel's ticks: with its number this identifies one process for ever. */
static uint64_t start_of(int pid)
{
    char path[40], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *file = fopen(path, "re");
    size_t many = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file) fclose(file);
    text[many] = 0;
    char *at = strrchr(text, ')');
    for (int field = 2; at && field < 22; field++) at = strchr(at + 1, ' ');
    return at ? strtoull(at, NULL, 10) : 0;
}

/* Identifies the job by PMI: the socket to the daemon, which the daemon made; or the daemon's port. Spawned ranks have the daemon of their
 * parents, and nothing that tells one spawn from another. */
static bool by_pmi(int rank, bool *spawned)
{
    if (number_of("PMI_RANK") != rank && number_of("PMI_ID") != rank) return false;
    const char *port = getenv("PMI_PORT");
    struct ucred daemon = {0};
    socklen_t many = sizeof daemon;
    int at = (int)number_of("PMI_FD");
    if (at >= 0 && getsockopt(at, SOL_SOCKET, SO_PEERCRED, &daemon, &many) == 0 && daemon.pid > 0) {
        launcher_name = lwm_mix(lwm_mix(1, (uint64_t)daemon.pid), start_of(daemon.pid));
    } else if (port && *port) {
        launcher_name = lwm_mix_text(2, port);
    } else {
        return false;
    }
    *spawned = number_of("PMI_SPAWNED") > 0;
    world_name = launcher_name;
    return true;
}

/* Identifies the job by PMIx: the daemon's address, and the name space, which each spawn has for itself. */
static bool by_pmix(int rank, bool *spawned)
{
    static const char *const addresses[] = {"PMIX_SERVER_URI41", "PMIX_SERVER_URI4", "PMIX_SERVER_URI3", "PMIX_SERVER_URI21", "PMIX_SERVER_URI2",
                                            "PMIX_SERVER_URI"};
    const char *space = getenv("PMIX_NAMESPACE"), *address = NULL;
    for (size_t i = 0; i < sizeof addresses / sizeof *addresses && !address; i++) address = getenv(addresses[i]);
    if (number_of("PMIX_RANK") != rank || !space || !*space || !address) return false;
    launcher_name = lwm_mix_text(3, address);
    world_name = lwm_mix_text(launcher_name, space);
    *spawned = false;
    return true;
}

/* Identifies the job by Slurm's step, without PMI or PMIx. */
static bool by_slurm(int rank, bool *spawned)
{
    const char *job = getenv("SLURM_JOB_ID"), *step = getenv("SLURM_STEP_ID");
    if (number_of("SLURM_PROCID") != rank || number_of("SLURM_STEP_NUM_TASKS") != lwm_world_size || !job || !step) return false;
    launcher_name = world_name = lwm_mix_text(lwm_mix_text(4, job), step);
    *spawned = false;
    return true;
}

/* Finds the names of the launcher and of MPI_COMM_WORLD. */
static bool identify(void)
{
    static bool (*const ways[])(int, bool *) = {
#ifdef LWM_OPENMPI
        by_pmix, by_pmi, by_slurm,
#else
        by_pmi, by_pmix, by_slurm,
#endif
    };
    bool spawned = false, known = false;
    for (size_t i = 0; i < sizeof ways / sizeof *ways && !known; i++) known = ways[i](lwm_world_rank, &spawned);
    if (!known) return false;
    unsigned long long launcher = 0, spawn = 0;
    const char *told = getenv(LWM_SPAWN_VARIABLE);
    /* It may be inherited through another launcher. */
    if (told && sscanf(told, "%llx:%llx", &launcher, &spawn) == 2 && launcher == launcher_name) parent_name = spawn;
    if (spawned && !parent_name) return false;
    world_name = lwm_mix(lwm_mix(world_name, parent_name), (uint64_t)lwm_world_size);
    return true;
}

static void raise_to(uint32_t *to, uint32_t value)
{
    uint32_t seen = __atomic_load_n(to, __ATOMIC_RELAXED);
    while (seen < value && !__atomic_compare_exchange_n(to, &seen, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
}

/* Returns the number of ranks that the launcher started on this node; -1 where it does not say. */
static long local_size(void)
{
#ifdef LWM_OPENMPI
    return number_of("OMPI_COMM_WORLD_LOCAL_SIZE");
#else
    return number_of("MPI_LOCALNRANKS");
#endif
}

bool lwm_presence_is_lone(void) { return lwm_world_size < 2 && !census && !getenv(LWM_SPAWN_VARIABLE); }

void lwm_presence_announce(void)
{
    if (!identify()) return;
    /* The communicator's own name has another line. */
    struct lwm_line *line = lwm_board_open(launcher_name, lwm_world_size, lwm_world_rank) ? lwm_board_take(lwm_mix(LWM_NAME_CENSUS, world_name)) : NULL;
    if (!line) {
        world_name = 0;
        return;
    }
    census = (struct lwm_census *)line->words;
    if (lwm_world_rank == 0) census->rules = lwm_rules_here();
    raise_to(&census->from_top, (uint32_t)(lwm_world_size - lwm_world_rank));
    raise_to(&census->upto, (uint32_t)lwm_world_rank + 1);
    __atomic_fetch_add(&census->sum, lwm_rank_number((uint64_t)lwm_world_rank), __ATOMIC_RELAXED);
    /* Release: all that was written before. */
    long now = (long)__atomic_add_fetch(&census->count, 1, __ATOMIC_ACQ_REL);
    if (now < lwm_world_size && now == local_size()) lwm_nodes_publish(census);
}

bool lwm_presence_is_one_node(void) { return census && __atomic_load_n(&census->count, __ATOMIC_ACQUIRE) == (uint32_t)lwm_world_size; }

int lwm_presence_count(bool *first)
{
    *first = census && lwm_world_size - (int)census->from_top == lwm_world_rank;
    return census ? (int)__atomic_load_n(&census->count, __ATOMIC_ACQUIRE) : 0;
}

/* Returns whether the ranks of all nodes are there, as this node's first rank finds out. That rank is in the same call, and waits for no rank of
 * this node. */
static bool all_nodes(void)
{
    bool first;
    if (lwm_presence_count(&first) != local_size()) return false;
    if (first) {
        uint32_t found = lwm_nodes_all_published(census) ? LWM_ALL_ARE_THERE : LWM_SOME_LACK;
        __atomic_store_n(&census->verdict, found, __ATOMIC_RELEASE);
    }
    uint32_t verdict;
    while ((verdict = __atomic_load_n(&census->verdict, __ATOMIC_ACQUIRE)) == 0) {
        lwm_progress(NULL);
        sched_yield();
    }
    return verdict == LWM_ALL_ARE_THERE;
}

uint64_t lwm_rank_numbers(int first, int stride, int many)
{
    uint64_t sum = 0;
    for (int i = 0; i < many; i++) sum += lwm_rank_number((uint64_t)first + (uint64_t)stride * (uint64_t)i);
    return sum;
}

bool lwm_presence_of_all(void)
{
    if (!census) return false;
    bool here = lwm_presence_is_one_node();
    if (here ? census->sum != lwm_rank_numbers(0, 1, lwm_world_size) : !all_nodes()) return false;
    if (here) lwm_follow(census->rules);
    return true;
}
