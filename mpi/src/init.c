/*
 * Beginning and end: MPI_Init, MPI_Init_thread, MPI_Finalize, and the settings.
 */
#include "collectives.h"
#include "presence.h"
#include "trace.h"

#include <linux/membarrier.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct lwm_settings lwm_settings;
_Atomic bool lwm_open, lwm_active;
bool lwm_threads;
uint64_t lwm_began_ns;

uint64_t lwm_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void lwm_say(const char *format, ...)
{
    if (lwm_settings.quiet) return;
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "lineweave: %s\n", text);
}

/* Returns a variable's whole number, if it is at least `least`; rank 0 prints a line about another text, which has no effect. */
static long long whole(const char *name, long long otherwise, long long least, bool speaks)
{
    const char *text = getenv(name);
    if (!text || !*text) return otherwise;
    char *end;
    long long value = strtoll(text, &end, 10);
    if (*end == 0 && value >= least) return value;
    if (speaks) lwm_say("%s=`%s` has no effect: expected a whole number from %lld on", name, text, least);
    return otherwise;
}

/* True if it turned out that not all ranks have lineweave. */
static bool left_out;

static void read_settings(bool speaks)
{
    const char *report = getenv("LINEWEAVE_MPI_REPORT"), *link = getenv("LINEWEAVE_MPI_LINK");
    lwm_settings.quiet = whole("LINEWEAVE_QUIET", 0, 0, false) != 0;
    lwm_settings.ranks_per_node = (int)whole("LINEWEAVE_RANKS_PER_NODE", 0, 0, speaks);
    lwm_settings.leaders = (int)whole("LINEWEAVE_MPI_LEADERS", 4, 1, speaks);
    long long after = whole("LINEWEAVE_MPI_AFTER", -1, 0, speaks);
    lwm_settings.counts = after >= 0;
    lwm_settings.after = after >= 0 ? (uint64_t)after : 4;
    lwm_settings.race = whole("LINEWEAVE_MPI_RACE", 1, 0, speaks) != 0;
    const char *form = getenv("LINEWEAVE_MPI_FORM");
    bool within = form && strcmp(form, "within") == 0, beside = form && strcmp(form, "beside") == 0;
    if (speaks && form && *form && !within && !beside) lwm_say("LINEWEAVE_MPI_FORM=`%s` has no effect: expected beside or within", form);
    /* Who says after how many calls wants it at that call. */
    lwm_settings.beside = beside || (!within && !lwm_settings.counts);
    lwm_settings.report = report && *report ? report : NULL;
    lwm_settings.link = link && *link ? link : NULL;
}

/*
 * Ranks that sleep are woken by help of membarrier(2), for which a process has to register. Once it has several threads, as MPI's
 * processes have, the kernel waits for all CPUs first, 11 to 17 ms on a 2-CPU machine, in the middle of forming the first team;
 * before that it is done at once. Where it cannot be had, forming the team says so.
 */
__attribute__((constructor)) static void register_before_threads(void)
{
    syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0);
}

struct lwm_rules lwm_rules_here(void)
{
    return (struct lwm_rules){
        .after = lwm_settings.after, .ranks_per_node = (uint32_t)lwm_settings.ranks_per_node, .counts = lwm_settings.counts,
        .leaders = (uint8_t)(lwm_settings.leaders < UINT8_MAX ? lwm_settings.leaders : UINT8_MAX), .race = lwm_settings.race,
        .links = lwm_settings.link != NULL, .beside = lwm_settings.beside,
    };
}

void lwm_follow(struct lwm_rules rules)
{
    lwm_settings.after = rules.after;
    lwm_settings.ranks_per_node = (int)rules.ranks_per_node;
    lwm_settings.leaders = rules.leaders;
    lwm_settings.counts = rules.counts;
    lwm_settings.race = rules.race;
    lwm_settings.links = rules.links;
    lwm_settings.beside = rules.beside;
}

/* Begins at each rank separately, after the host's MPI_Init: no message is sent. A rank that lacks memory or other means counts as one without
 * lineweave. */
static void begin(void)
{
    read_settings(false);
    lwm_began_ns = lwm_now_ns();
    if (lwm_open || lwm_active || !lwm_host_open()) return;
    int level = 0;
    lwm_threads = lwm_host.Query_thread(&level) != 0 || level > 2;
    lwm_host.Comm_rank(lwm_host.world, &lwm_world_rank);
    lwm_host.Comm_size(lwm_host.world, &lwm_world_size);
    if (lwm_world_rank == 0) read_settings(true);
    lwm_open = lwm_types_open() && lw_check_version(LW_VERSION) == LW_OK && lwm_same_open() && lwm_comms_open();
    if (lwm_open && !lwm_presence_is_lone()) lwm_presence_announce();
    if (lwm_open) lwm_trace_open();
    if (!lwm_open) lwm_say("rank %d cannot use lineweave, for want of memory or of what its MPI gives; nothing is taken over", lwm_world_rank);
}

void lwm_set_up(void)
{
    if (lwm_presence_is_lone()) return;
    lwm_open = false;
    /* With LINEWEAVE_MPI_AFTER=0 this call also forms a team, and is counted there. */
    if (!lwm_presence_is_one_node() && lwm_settings.after > 0) lwm_waits();
    if (!lwm_presence_of_all() || !lwm_comms_meet()) {
        left_out = true;
        return;
    }
    lwm_types_ask();
    if (lwm_settings.links) lwm_link();
    lwm_active = true;
    struct lwm_comm *world = lwm_settings.after == 0 ? lwm_comm_of(lwm_host.world) : NULL;
    if (world && world->way == LWM_NEW) lwm_comm_came(world, true);
}

int MPI_Init(int *argc, char ***argv)
{
    int (*next)(int *, char ***) = lwm_next("Init");
    int result = next(argc, argv);
    if (result == 0) begin();
    return result;
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    int (*next)(int *, char ***, int, int *) = lwm_next("Init_thread");
    int result = next(argc, argv, required, provided);
    if (result == 0) begin();
    return result;
}

int MPI_Finalize(void)
{
    if (lwm_active) {
        lwm_active = false;
        lwm_comms_count();
        lwm_report(true);
        lwm_comms_close();
    } else if (lwm_open || left_out) {
        lwm_open = left_out = false;
        lwm_report(false);
    }
    lwm_trace_close();
    int (*next)(void) = lwm_next("Finalize");
    return next();
}
