/*
 * Verdicts of contests that are known before these begin: of an earlier communicator of the same ranks, or of an earlier run of the same program.
 * Such a call has no first contest (calls.c); the second one comes as it would, and corrects what is not true any more.
 *
 * Within a run, all ranks remember the same, since contests are decided by all of them at one call, and MPI's rules put the calls of two
 * communicators into one order at all ranks that have both. Not so where several threads call; then each communicator is by itself.
 *
 * From run to run rank 0 of a communicator keeps them, beside the kept plans. They are found by the program (its file, and its first argument that is
 * no option, which is what a script is called), the MPI, and the communicator's ranks and CPUs; what rank 0 finds counts for all (planning.c). Now and
 * then, one time in REPEATS, it does not look, so that the verdict of a disturbed run does not stay for ever.
 */
#define _GNU_SOURCE
#include "verdicts.h"
#include "board.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { REPEATS = 16 };

/* What is remembered. Nothing is forgotten: ranks have different communicators, and must not remember differently. */
static struct known {
    uint64_t name;
    unsigned verdict;
    struct known *next;
} *known[256];

uint64_t lwm_verdict_name(const struct lwm_comm *comm, enum lwm_kind kind, int race_class)
{
    return comm->members && !lwm_threads ? lwm_mix(comm->members, (uint64_t)kind * LWM_RACE_CLASSES + (uint64_t)race_class) : 0;
}

static struct known *find(uint64_t name)
{
    struct known *at = known[name % 256];
    while (at && at->name != name) at = at->next;
    return at;
}

bool lwm_verdict_of(uint64_t name, unsigned *verdict)
{
    const struct known *at = find(name);
    *verdict = at ? at->verdict : LWM_UNDECIDED;
    return at != NULL;
}

void lwm_verdict_remember(uint64_t name, unsigned verdict)
{
    if (name == 0) return;
    struct known *at = find(name);
    if (!at) {
        at = malloc(sizeof *at);
        /* The others remember it. */
        if (!at) lwm_host.Abort(lwm_host.world, 1);
        *at = (struct known){name, LWM_UNDECIDED, known[name % 256]};
        known[name % 256] = at;
    }
    if (verdict != LWM_UNDECIDED) at->verdict = verdict;
}

/* Returns a number for this program and its MPI. */
static uint64_t program(void)
{
    struct stat file = {0};
    char arguments[4096] = "";
    if (stat("/proc/self/exe", &file) != 0) return 0;
    uint64_t number = lwm_mix(lwm_mix((uint64_t)file.st_dev, (uint64_t)file.st_ino), (uint64_t)file.st_mtim.tv_sec);
    int from = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t length = from >= 0 ? read(from, arguments, sizeof arguments - 1) : 0;
    if (from >= 0) close(from);
    const char *end = arguments + (length > 0 ? length : 0), *at = arguments + strlen(arguments) + 1;
    while (at < end && *at == '-') at += strlen(at) + 1;
    number = lwm_mix_text(number, at < end ? at : "");
    return lwm_mix_text(lwm_mix(number, (uint64_t)lwm_world_size), lwm_host_title);
}

/* Returns the name by which a verdict is kept. */
static uint64_t kept_name(uint64_t name)
{
    static uint64_t here;
    uint64_t known = __atomic_load_n(&here, __ATOMIC_RELAXED);
    if (known == 0) __atomic_store_n(&here, known = program(), __ATOMIC_RELAXED);
    return lwm_mix(known, name);
}

/* Returns what is kept under a name. */
static unsigned kept(lw_planner *planner, uint64_t name)
{
    uint64_t value = LWM_UNDECIDED;
    bool found = lw_planner_kept(planner, kept_name(name), &value) == LW_OK && value < 2 * LWM_BETWEEN;
    unsigned winner = found ? (unsigned)value & LWM_WINNER : LWM_UNDECIDED;
    return winner == LWM_OURS || winner == LWM_HOSTS ? (unsigned)value : LWM_UNDECIDED;
}

unsigned lwm_verdict_kept(lw_planner *planner, uint64_t name)
{
    bool repeats = lwm_mix(lwm_board_token(), name) % REPEATS == 0;
    return name == 0 || repeats ? LWM_UNDECIDED : kept(planner, name);
}

unsigned lwm_verdict_now(const struct lwm_race *race) { return (race->host ? LWM_HOSTS : LWM_OURS) | (race->loose ? LWM_BETWEEN : 0); }

void lwm_verdicts_keep(struct lwm_comm *comm)
{
    lw_planner *planner = NULL;
    if (!comm->decided || comm->rank != 0 || !comm->team || lw_comm_planner(comm->team, &planner) != LW_OK) return;
    for (int kind = 0; kind < LWM_TAKEN; kind++) {
        for (int class = 0; class < LWM_RACE_CLASSES; class++) {
            const struct lwm_race *race = &comm->races[kind][class];
            uint64_t name = race->decided ? lwm_verdict_name(comm, (enum lwm_kind)kind, class) : 0;
            unsigned verdict = lwm_verdict_now(race);
            if (name && kept(planner, name) != verdict) lw_planner_keep(planner, kept_name(name), verdict);
        }
    }
    lw_planner_free(planner);
    comm->decided = false;
}
