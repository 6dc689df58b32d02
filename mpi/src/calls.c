/*
 * The course of one call: the communicator is looked up, lineweave or the host carries out the call, and the outcome is recorded.
 *
 * If asked to (LINEWEAVE_MPI_RACE=1, the default), the library compares: of the first calls of one kind and power of two of bytes on a
 * communicator, each side carries out some in turns. All ranks agree by the host on the sums of both times, and the slower side is not called
 * until the next contest. So a program never pays for long where lineweave is slower than its host.
 *
 * The first contest is short. The second one is long enough for a host whose cells are still to be touched for the first time: Intel MPI takes 7
 * us for a reduce of 16 KiB at first and 3 us after some 250 calls. Later ones, each eight times as far away, find out whether the machine has
 * changed.
 */
#include "collectives.h"
#include "forming.h"
#include "nodes.h"
#include "verdicts.h"
#include "planning.h"
#include "trace.h"

#include <string.h>

struct lwm_count lwm_counts[LWM_KINDS][LWM_CLASSES];
struct lwm_times lwm_times[LWM_KINDS][LWM_CLASSES];
uint64_t lwm_setup[LWM_SETUP];

/* Turns of a contest: each side's first turn warms up, and its fastest other one counts, so that one interruption decides nothing. Of long calls
 * each half of a turn counts by itself: in so long a time, interruptions hit many turns. If lineweave is within a fiftieth of the host's time, it
 * keeps the call. */
#define TURNS 8
/* The race classes of 1 KiB and of 256 KiB. Turns of short messages are long, so that ranks run ahead of each other in them as they
 * will later. */
#define SHORT 11
#define LONG 19
/* The race class of 16 KiB, up to which turns of later contests are longest. */
#define WARMS 15

/* Returns the number of calls in a turn, by the race class that sets its pace. In later contests the host's first turn is so long that it moves 8
 * MiB. */
static uint32_t calls_a_turn(unsigned contest, unsigned turn, int pace)
{
    if (contest == 0) return pace >= LONG ? 2 : pace > SHORT ? 8 : 32;
    int doublings = pace > WARMS ? pace - WARMS : 0;
    uint32_t many = doublings > 6 ? 2 : 128u >> doublings;
    return turn == 1 ? 4 * many : many;
}

/* Ratio of the host's time to lineweave's at which the host has lost at once, if it is found at two looks in a row: ranks that wait for each
 * other without yielding a CPU that they share need milliseconds for each call. The host is looked at some times in its first turn. */
#define CLEAR 16
static bool looks(uint32_t calls) { return calls == 8 || calls == 24 || (calls > 0 && calls % 32 == 0); }

/* Overhead of the clock, and whether turns are timed as a whole. Reading the clock at each call changes the time of short calls: the time between
 * two calls decides whether a line goes between ranks once or twice. So where a program calls in a tight loop, which the first contest tells,
 * later ones time turns as a whole. Outside the calls the program may then spend as much time as in them, and the clock's overhead. */
#define CLOCK_NS 100
static bool whole_turns(const struct lwm_race *race) { return race->contest > 0 && !race->loose && race->pace <= SHORT; }

/* Returns the number of calls from the end of a contest to the next: twice as many as the next one has, then 16, 128 and so on times as many. */
static uint64_t calls_to_next(unsigned contest, int pace)
{
    return (uint64_t)(TURNS + 3) * calls_a_turn(1, 0, pace) << (1 + 3 * (contest < 12 ? contest : 12));
}

bool lwm_begin(struct lwm_call *call, enum lwm_kind kind, MPI_Comm handle)
{
    call->kind = kind;
    call->size_class = 0;
    call->bytes = 0;
    call->start_ns = 0;
    call->race = NULL;
    call->each = 0;
    call->shape.collective = -1;
    call->introduces = LWM_UNLIKELY(!lwm_active) && lwm_open && handle == lwm_host.world;
    struct lwm_comm *comm = lwm_comm_counted(handle, LWM_BLOCKING, &call->numbered);
    call->comm = comm;
    call->why = lwm_active ? LWM_WHY_ARGUMENT : LWM_WHY_INACTIVE;
    if (LWM_UNLIKELY(!comm)) return false;
    if (kind < LWM_HOT) {
        /* Repeated calls count towards the next contest, and so does this call. */
        if (LWM_UNLIKELY(comm->hot[kind].left || comm->hot[kind].done)) lwm_count_hot(comm, kind);
    }
    call->why = comm->why;
    return LWM_LIKELY(comm->way == LWM_TEAM || comm->way == LWM_NODES);
}

void lwm_told(struct lwm_call *call, MPI_Count count, MPI_Datatype type)
{
    size_t bytes;
    if (count <= 0 || !(lwm_active || lwm_open) || __builtin_mul_overflow((size_t)count, lwm_size_of_known(type), &bytes)) return;
    call->bytes = bytes;
    call->size_class = lwm_class(bytes);
}

bool lwm_away(struct lwm_call *call, MPI_Count count, MPI_Datatype type)
{
    lwm_told(call, count, type);
    return lwm_leave(call, call->why);
}

static struct lwm_times *times_of(const struct lwm_call *call) { return &lwm_times[call->kind][call->size_class]; }

void lwm_race_settle(struct lwm_race *race, bool host, bool between)
{
    race->left = calls_to_next(race->contest, race->pace);
    race->contest++;
    race->host = host;
    race->loose = between;
}

/* Ends a contest that was held, for which the sums over all ranks are known: the times of each side, and of ranks that saw other things between. */
static void decide(struct lwm_call *call, const long long sums[3])
{
    struct lwm_race *race = call->race;
    lwm_race_settle(race, sums[0] > sums[1] + sums[1] / 50, sums[2] != 0);
    race->calls = race->turn = race->turn_ns = race->half_ns = 0;
    memset(race->best_ns, 0, sizeof race->best_ns);
    if (race->planned >= LWM_FIRST_PLANNED) {
        race->decided = call->comm->decided = true;
        lwm_verdict_remember(lwm_verdict_name(call->comm, call->kind, call->race_class), lwm_verdict_now(race));
    }
}

/* Returns whether the contest is over, by the sums over all ranks. Called by all ranks at the same call. */
static bool is_over(struct lwm_call *call)
{
    struct lwm_race *race = call->race;
    /* Each call is looked at once: the call that was looked at before may have been refused, and comes again. */
    bool last = race->turn >= TURNS, look = race->turn == 1 && looks(race->calls) && race->calls != race->looked_calls;
    if (!last && !look) return false;
    uint32_t many = calls_a_turn(race->contest, 0, race->pace);
    uint64_t *ours = race->best_ns[0], *theirs = race->best_ns[1];
    long long mine[3] = {(long long)(ours[0] + ours[1]), (long long)(theirs[0] + theirs[1]), race->loose}, all[3] = {0};
    uint64_t now = lwm_now_ns(), spent = whole_turns(race) ? now - race->began_ns : race->turn_ns;
    if (look) mine[1] = (long long)((spent - race->looked_ns) * many / (race->calls - race->looked_calls));
    if (race->contest == 0) mine[2] = race->loose > TURNS / 2;
    if (lwm_host.Allreduce(mine, all, 3, lwm_host.long_long, lwm_host.sum, call->comm->handle) != 0) return false;
    race->began_ns += lwm_now_ns() - now;
    race->looked_ns = spent;
    race->looked_calls = race->calls;
    race->clear = look && all[1] > CLEAR * all[0] ? race->clear + 1 : 0;
    if (race->clear) lwm_sample(&times_of(call)->gains, (double)(mine[1] - mine[0]) / many);
    if (!last && race->clear < 2) return false;
    decide(call, all);
    return true;
}

/* Call times that set the pace where ranks know no common length: the pace is that of the bytes that take so long. All ranks agree on it after
 * the first two calls, of which the first has chosen a plan; these warm up. */
#define LONG_NS 20000
#define SHORT_NS 2000
static void agree_on_pace(struct lwm_call *call)
{
    struct lwm_race *race = call->race;
    long long mine = (long long)(race->turn_ns - race->looked_ns), all = 0;
    if (lwm_host.Allreduce(&mine, &all, 1, lwm_host.long_long, lwm_host.sum, call->comm->handle) != 0) return;
    long long ns = all / call->comm->size;
    race->pace = ns > LONG_NS ? LONG : ns > SHORT_NS ? SHORT + 1 : SHORT;
    race->calls = race->turn_ns = 0;
}

/* Takes the next turn; returns true if it is lineweave's. */
static bool turn(struct lwm_call *call)
{
    struct lwm_race *race = call->race;
    if (race->pace == 0 && race->calls == 2) agree_on_pace(call);
    if (is_over(call)) {
        call->race = NULL;
        return !race->host;
    }
    bool whole = whole_turns(race);
    uint64_t now = whole && race->calls > 0 ? 0 : lwm_now_ns();
    if (race->calls == 0) {
        race->began_ns = now;
        race->looked_ns = race->looked_calls = race->clear = 0;
    }
    if (!whole) call->start_ns = now;
    return race->turn % 2 == 0;
}

/* Records a call of a contest that took so long, if it was timed. */
static void ran(struct lwm_call *call, uint64_t took)
{
    struct lwm_race *race = call->race;
    uint32_t many = calls_a_turn(race->contest, race->turn, race->pace);
    race->turn_ns += took;
    if (race->pace == 0 && race->calls == 0) race->looked_ns = took;
    bool half = ++race->calls == many / 2 && race->pace >= LONG;
    if (race->calls < many && !half) return;
    uint64_t all = lwm_now_ns() - race->began_ns;
    if (whole_turns(race)) race->turn_ns = all;
    else if (!half && race->contest == 0 && all > 2 * race->turn_ns + (uint64_t)CLOCK_NS * many) race->loose++;
    /* The first turns count until there is another. */
    uint64_t ns = (race->turn_ns - race->half_ns) * calls_a_turn(race->contest, 0, race->pace) / many;
    uint64_t *best = &race->best_ns[race->turn % 2][half ? 0 : 1];
    if (race->turn < 4 || ns < *best) *best = ns;
    race->half_ns = half ? race->turn_ns : 0;
    if (half) return;
    if (race->turn % 2 == 0) race->ours_ns = race->turn_ns / many;
    else if (race->turn > 1) lwm_sample(&times_of(call)->gains, (double)race->turn_ns / many - (double)race->ours_ns);
    if (race->turn < TURNS) race->turn++;
    race->calls = race->turn_ns = 0;
}

bool lwm_mine(struct lwm_call *call, size_t bytes, bool alike)
{
    struct lwm_comm *comm = call->comm;
    call->bytes = bytes;
    call->size_class = lwm_class(bytes);
    call->race_class = alike ? lwm_race_class(bytes) : 0;
    struct lwm_race *race = &comm->races[call->kind][call->race_class];
    if (LWM_UNLIKELY(race->left == 0) && alike) race->pace = call->race_class > 0 ? (uint8_t)call->race_class : SHORT;
    /* Where the host has won, nobody needs plans before the next contest. */
    bool needs = race->planned != LWM_PLANNED && alike && (race->left == 0 || !race->host);
    if (LWM_UNLIKELY(needs) && !lwm_planning_came(call, race)) return lwm_leave(call, LWM_WHY_PLANS);
    if (lwm_settings.race) {
        if (LWM_UNLIKELY(race->left == 0)) {
            call->race = race;
            if (!turn(call)) return lwm_leave(call, LWM_WHY_RACE);
        } else {
            race->left--;
            if (LWM_UNLIKELY(race->host)) return lwm_leave(call, LWM_WHY_RACE);
        }
    }
    struct lwm_count *count = &lwm_counts[call->kind][call->size_class];
    if (call->start_ns == 0 && LWM_UNLIKELY(lwm_is_timed(count->taken))) call->start_ns = lwm_now_ns();
    return true;
}

static void count_taken(struct lwm_call *call)
{
    struct lwm_count *count = &lwm_counts[call->kind][call->size_class];
    lwm_add(&count->taken, 1);
    lwm_add(&count->taken_bytes, call->bytes);
    if (LWM_UNLIKELY(lwm_tracing)) lwm_trace_saw(LWM_REASONS, call->bytes);
    uint64_t took = 0;
    if (LWM_UNLIKELY(call->start_ns != 0)) {
        took = lwm_now_ns() - call->start_ns;
        lwm_add(&count->taken_timed, 1);
        lwm_add(&count->taken_ns, took);
        lwm_sample(&times_of(call)->ours, (double)took);
    }
    if (LWM_UNLIKELY(call->race != NULL)) ran(call, took);
}

bool lwm_nothing(struct lwm_call *call)
{
    call->bytes = 0;
    call->size_class = 0;
    count_taken(call);
    call->result = 0;
    return true;
}

static bool failed(struct lwm_call *call, const char *what, const char *why)
{
    lwm_say("%s of %zu bytes failed at rank %d: %s", what, call->bytes, call->comm ? call->comm->rank : lwm_world_rank, why);
    lwm_host.Comm_call_errhandler(call->comm ? call->comm->handle : lwm_host.world, LWM_ERR_OTHER);
    call->result = LWM_ERR_OTHER;
    return true;
}

bool lwm_short(struct lwm_call *call) { return failed(call, lwm_kind_names[call->kind], "no memory to pack in, or the host cannot pack this type"); }

bool lwm_done(struct lwm_call *call, lw_status status)
{
    if (LWM_UNLIKELY(status != LW_OK)) return failed(call, lwm_kind_names[call->kind], lw_last_error());
    count_taken(call);
    call->result = 0;
    return true;
}

int lwm_ended(enum lwm_kind kind, size_t bytes, uint64_t start_ns, struct lwm_comm *comm, lw_status status)
{
    struct lwm_call call = {.comm = comm, .kind = kind, .bytes = bytes, .size_class = lwm_class(bytes), .start_ns = start_ns};
    lwm_done(&call, status);
    if (LWM_UNLIKELY(lwm_tracing) && status == LW_OK && start_ns != 0) lwm_trace_ended(kind, bytes, start_ns, comm);
    return call.result;
}

/* Calls below this time are short: to read the clock twice takes a noticeable part of them. */
enum { BRIEF_NS = 2000, UNTIMED = 7 };

/* Returns whether a call on a communicator that may get a team is to be timed. */
static bool is_due(struct lwm_comm *comm)
{
    if (comm->way != LWM_NEW) return false;
    if (comm->untimed_left == 0) return true;
    comm->untimed_left--;
    comm->untimed++;
    return false;
}

/* Counts a timed call of a communicator that may get a team, and those like it that were not timed. */
static void spend(struct lwm_comm *comm, uint64_t took)
{
    if (comm->way != LWM_NEW) return;
    comm->passed_ns += took * (1 + comm->untimed);
    comm->untimed = 0;
    comm->brief = took < BRIEF_NS;
    comm->untimed_left = comm->brief ? UNTIMED : 0;
}

bool lwm_leave(struct lwm_call *call, enum lwm_reason why)
{
    struct lwm_count *count = &lwm_counts[call->kind][call->size_class];
    call->why = why;
    if (LWM_UNLIKELY(lwm_tracing)) lwm_trace_saw(why, call->bytes);
    /* All of them for a report, which adds their times up: calls of one kind on other communicators may take quite another time. */
    bool timed = lwm_is_timed(count->passed) || lwm_settings.report || (call->comm && is_due(call->comm));
    if (call->start_ns == 0 && timed) call->start_ns = lwm_now_ns();
    lwm_add(&count->passed, 1);
    lwm_add(&count->why[why], 1);
    return false;
}

bool lwm_meets(struct lwm_call *call, MPI_Count each, MPI_Datatype type)
{
    call->each = each;
    call->each_type = type;
    return false;
}

/* Returns whether every rank entered a call, as this rank can know after leaving it. */
static bool all_went_in(const struct lwm_call *call)
{
    struct lwm_type info;
    return call->each > 0 && lwm_type_of(call->each_type, &info) && info.size > 0;
}

/* Makes ranks learn of each other, after the first call of MPI_COMM_WORLD that no rank leaves before all entered it, also if it failed at one of
 * them after that. The call is the first that counts towards a team. Returns the record of MPI_COMM_WORLD, or null if not all ranks have the
 * library. */
static struct lwm_comm *introduced(void)
{
    lwm_set_up();
    return lwm_active ? lwm_comm_of(lwm_host.world) : NULL;
}

bool lwm_is_refusal(int result)
{
    int class;
    return result != 0 && lwm_host.Error_class(result, &class) == 0 && class <= LWM_ERR_ARG;
}

int lwm_passed(struct lwm_call *call, int result)
{
    struct lwm_comm *comm = call->comm;
    lwm_agree_saw(comm, result);
    if (LWM_UNLIKELY(lwm_is_refusal(result))) {
        /* The call counts nowhere in decisions that ranks make together. */
        if (call->why == LWM_WHY_RACE && !call->race) comm->races[call->kind][call->race_class].left++;
        if (call->why == LWM_WHY_PLANS) lwm_planning_back(comm->races[call->kind][call->race_class].planning, 1);
        return lwm_beside_saw(call->numbered, LWM_BLOCKING, result);
    }
    uint64_t took = 0;
    if (LWM_UNLIKELY(call->start_ns != 0)) {
        struct lwm_count *count = &lwm_counts[call->kind][call->size_class];
        took = lwm_now_ns() - call->start_ns;
        lwm_add(&count->passed_timed, 1);
        lwm_add(&count->passed_ns, took);
        lwm_sample(&times_of(call)->theirs, (double)took);
        if (comm) spend(comm, took);
    }
    if (LWM_UNLIKELY(call->race != NULL)) ran(call, took);
    if (LWM_UNLIKELY(call->introduces) && all_went_in(call)) comm = introduced();
    if (comm && comm->way == LWM_NEW) {
        if (all_went_in(call)) lwm_comm_came(comm, result == 0);
        else if (comm->word) lwm_agree(comm);
    }
    return result;
}

struct lwm_comm *lwm_count_passed(enum lwm_kind kind, MPI_Comm handle)
{
    struct lwm_comm *unnumbered, *comm = lwm_comm_counted(handle, LWM_UNNUMBERED, &unnumbered);
    struct lwm_count *count = &lwm_counts[kind][0];
    lwm_add(&count->passed, 1);
    lwm_add(&count->why[LWM_WHY_KIND], 1);
    return comm;
}
