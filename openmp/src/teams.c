/*
 * Regions and teams: the barrier that a thread is at, and the side that carries it out.
 *
 * A region's threads run its code between `lwo_enter` and `lwo_exit`, so each knows its team. If code reached no barrier when it first ran,
 * its regions begin and end as without this library, until one of their barriers is seen. The team's struct belongs to the thread that begins
 * the region, which uses it again for its next one. The values that threads bring to a region are in their own lines: where CPUs are far
 * apart, each line that they fetch takes as long as a barrier. The first thread that reaches a barrier decides for all, for this region and
 * for those after it that have as many threads, unless a contest is not over.
 *
 * A thread may be in a region that is not known here, within one that is: by another runtime's functions, by a region of one thread, or by
 * code that runs for a device. Each of these changes the level, which is compared at every barrier.
 */
#include "lwo.h"

#include <pthread.h>
#include <sched.h>

__thread struct lwo_me lwo_me;

/* Regions whose lines a team keeps. */
enum { WORKS = 16 };

struct lwo_team {
    /* The decision, for teams of `decided` threads; 0 while there is none, and UNDER_WAY while a thread decides. A decision that may differ in
     * the next region is taken back at the region's end; any other is only read there. */
    int decided;
    int mode;
    bool crowded;
    enum lwo_reason reason;
    struct lwo_contest *contest;
    struct lwo_barrier *barrier;
    /* Fields of the thread that begins the regions: its state when it left the last one, and its counts. */
    _Alignas(LWO_APART) struct lwo_team *next;
    uint32_t index;
    bool met; /* whether it came to a barrier of this region */
    struct lwo_count count;
    struct lwo_work works[WORKS]; /* by the region's code */
};

#define UNDER_WAY (-1)

/* ---- the code of regions ---- */

/* Code that was begun as a region, and the knowledge about it. A slot is taken once and for all. */
enum known { UNKNOWN, HAS_BARRIERS, HAS_NONE };
enum { CODES = 4096 };
static struct {
    const void *code;
    int known;
} codes[CODES];

static size_t hash_of(const void *code) { return ((uintptr_t)code * 0x9e3779b97f4a7c15u) >> 52; }

static int *known_of(const void *code)
{
    size_t at = hash_of(code);
    for (int i = 0; i < 8; i++) {
        size_t slot = (at + (unsigned)i) % CODES;
        const void *there = __atomic_load_n(&codes[slot].code, __ATOMIC_RELAXED);
        if (there == code) return &codes[slot].known;
        if (!there && __atomic_compare_exchange_n(&codes[slot].code, &there, code, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
            return &codes[slot].known;
        }
        if (there == code) return &codes[slot].known;
    }
    return NULL;
}

/* ---- teams ---- */

/* True once a task was made: regions that begin then are left to the runtime. */
static bool tasks_seen;

static __thread struct lwo_team *free_teams __attribute__((tls_model("initial-exec")));
static pthread_key_t at_exit;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void give_back(void *nothing)
{
    (void)nothing;
    for (struct lwo_team *team = free_teams, *next; team; team = next) {
        next = team->next;
        lwo_barrier_free(team->barrier);
        lwo_memory_free(team, sizeof *team);
    }
    free_teams = NULL;
}

static void make_key(void) { pthread_key_create(&at_exit, give_back); }

static struct lwo_team *take_team(void)
{
    struct lwo_team *team = free_teams;
    if (team) {
        free_teams = team->next;
        return team;
    }
    team = lwo_memory(sizeof *team);
    if (!team) return NULL;
    pthread_once(&once, make_key);
    /* Any value that is not null, so that the thread's end frees its teams. */
    pthread_setspecific(at_exit, team);
    return team;
}

void lwo_region_begin(const void *code, struct lwo_region *region)
{
    region->saved = lwo_me;
    region->work = NULL;
    int *known = known_of(code);
    lwo_me = (struct lwo_me){.known = known, .caller = region->saved.caller};
    bool barren = known && __atomic_load_n(known, __ATOMIC_RELAXED) == HAS_NONE;
    if (barren || __atomic_load_n(&tasks_seen, __ATOMIC_RELAXED)) return;
    struct lwo_team *team = take_team();
    if (!team) return;
    team->met = false;
    struct lwo_work *work = &team->works[hash_of(code) % WORKS];
    int level = lwo_host.omp_get_level() + 1;
    LWO_SET(work->team, team);
    LWO_SET(work->first, &lwo_me);
    LWO_SET(work->level, level);
    region->work = work;
}

void lwo_region_end(const struct lwo_region *region)
{
    int *known = lwo_me.known;
    lwo_me = region->saved;
    if (!region->work) return;
    struct lwo_team *team = region->work->team;
    int now = team->met ? HAS_BARRIERS : HAS_NONE;
    if (known && __atomic_load_n(known, __ATOMIC_RELAXED) == UNKNOWN) __atomic_store_n(known, now, __ATOMIC_RELAXED);
    if (team->met) {
        lwo_add(&team->count);
        team->count = (struct lwo_count){0};
        /* Most regions need no write here, for which the others would wait. */
        if (team->contest) lwo_contest_end(team->contest, team->index);
        if (team->contest || team->reason == LWO_OTHER) team->decided = 0;
        if (team->contest) team->contest = NULL;
    }
    team->next = free_teams;
    free_teams = team;
}

void lwo_enter(const struct lwo_work *work, struct lwo_me *saved)
{
    *saved = lwo_me;
    lwo_me = (struct lwo_me){.team = work->team, .level = work->level, .is_first = work->first == &lwo_me};
}

void lwo_exit(const struct lwo_work *work, const struct lwo_me *saved)
{
    struct lwo_team *team = work->team;
    if (lwo_me.mode != UNDECIDED) {
        if (team->barrier) lwo_barrier_keep(team->barrier, lwo_me.place, lwo_me.run);
        if (lwo_me.is_first) {
            team->met = true;
            team->index = lwo_me.index;
        }
    }
    lwo_me = *saved;
}

/* Decides for all threads of the team; called by one of them. */
static void decide_for_all(struct lwo_team *team, int size)
{
    team->crowded = size > lwo_cpus || lwo_host.omp_get_active_level() > 1;
    team->mode = THEIRS;
    team->reason = LWO_CANCEL;
    if (lwo_host.omp_get_cancellation()) return;
    team->reason = LWO_OTHER;
    /* All begin after the run of the first thread, which was in all regions of the team and has not come to a barrier of this one. */
    uint64_t run = team->barrier ? lwo_barrier_run(team->barrier, 0) : 0;
    if (lwo_barrier_room(team->barrier) < size) {
        lwo_barrier_free(team->barrier);
        team->barrier = lwo_barrier_new(size, run);
        if (!team->barrier) return;
    }
    for (int i = 1; i < size; i++) lwo_barrier_keep(team->barrier, i, run);
    int verdict = lwo_verdict(size, team->crowded, &team->contest);
    if (team->contest) team->mode = CONTEST;
    if (verdict == 1) team->mode = OURS;
    if (verdict >= 0) team->reason = LWO_SLOWER;
}

static void decide_mine(struct lwo_team *team, int size)
{
    for (;;) {
        int decided = __atomic_load_n(&team->decided, __ATOMIC_ACQUIRE);
        if (decided == size) break;
        if (decided != UNDER_WAY && __atomic_compare_exchange_n(&team->decided, &decided, UNDER_WAY, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
            decide_for_all(team, size);
            __atomic_store_n(&team->decided, size, __ATOMIC_RELEASE);
            break;
        }
        /* Deciding takes as long as a few calls of the runtime; the first time, memory is requested. */
        for (int i = 0; i < 50 && __atomic_load_n(&team->decided, __ATOMIC_RELAXED) == UNDER_WAY; i++) lwo_relax();
        if (__atomic_load_n(&team->decided, __ATOMIC_RELAXED) == UNDER_WAY) sched_yield();
    }
    lwo_me.place = lwo_host.omp_get_thread_num();
    lwo_me.size = size;
    if (team->barrier) lwo_me.run = lwo_barrier_run(team->barrier, lwo_me.place);
    if (team->contest) lwo_me.index = lwo_contest_begin(team->contest);
    lwo_me.mode = team->mode;
}

static enum lwo_way pass(enum lwo_reason reason)
{
    if (lwo_me.is_first) lwo_me.team->count.passed[reason]++;
    return LWO_PASS;
}

static enum lwo_way decide_unknown(void)
{
    /* This is the first thread of a region that was not examined yet. */
    if (!lwo_me.known || lwo_host.omp_get_num_threads() < 2) return LWO_PASS;
    __atomic_store_n(lwo_me.known, HAS_BARRIERS, __ATOMIC_RELAXED);
    lwo_add_passed(__atomic_load_n(&tasks_seen, __ATOMIC_RELAXED) ? LWO_TASKS : LWO_NEW);
    return LWO_PASS;
}

static __attribute__((noinline)) enum lwo_way decide_slowly(struct lwo_team *team)
{
    if (lwo_me.mode == UNDECIDED) {
        int size = lwo_host.omp_get_num_threads();
        if (size < 2) return LWO_PASS;
        decide_mine(team, size);
    }
    if (lwo_me.mode == CONTEST) {
        int over = lwo_contest_over(team->contest, lwo_me.index);
        if (over < 0) return lwo_contest_ours(lwo_me.index) ? LWO_TAKE_TIMED : LWO_PASS_TIMED;
        lwo_me.mode = over ? OURS : THEIRS;
    }
    if (lwo_me.mode != THEIRS) return LWO_TAKE;
    /* A contest that this team has lost left no reason in the team. */
    return pass(team->contest ? LWO_SLOWER : team->reason);
}

enum lwo_way lwo_decide(void)
{
    struct lwo_team *team = lwo_me.team;
    if (!lwo_active || lwo_me.inside) return LWO_PASS;
    if (!team) return decide_unknown();
    if (__builtin_expect(lwo_host.omp_get_level() != lwo_me.level, 0)) return LWO_PASS;
    if (__builtin_expect(lwo_me.mode == OURS, 1)) return LWO_TAKE;
    enum lwo_way way = decide_slowly(team);
    if (way >= LWO_PASS_TIMED) lwo_contest_arrive(team->contest, lwo_me.place, lwo_me.index);
    if (way == LWO_PASS_TIMED) pass(LWO_COMPARED);
    return way;
}

bool lwo_takes(void)
{
    if (!lwo_active || lwo_me.inside || !lwo_me.team || lwo_host.omp_get_level() != lwo_me.level) return false;
    int size = lwo_me.mode == UNDECIDED ? lwo_host.omp_get_num_threads() : 0;
    if (size > 1) decide_mine(lwo_me.team, size);
    return lwo_me.mode == OURS;
}

bool lwo_wait(void)
{
    struct lwo_team *team = lwo_me.team;
    /* All threads of the team leave in the same run, so their counts stay alike. */
    uint64_t run = ++lwo_me.run;
    if (__builtin_expect(lwo_me.left, 0) || !lwo_barrier_wait(team->barrier, team->crowded, lwo_me.place, lwo_me.size, run)) {
        lwo_me.left = true;
        pass(LWO_TASKS);
        return false;
    }
    if (lwo_me.is_first) team->count.taken++;
    return true;
}

void lwo_timed(void)
{
    lwo_contest_leave(lwo_me.team->contest, lwo_me.place, lwo_me.index);
    lwo_me.index++;
}

void lwo_task(void)
{
    struct lwo_team *team = lwo_me.team;
    if (!lwo_active) return;
    if (!__atomic_load_n(&tasks_seen, __ATOMIC_RELAXED)) __atomic_store_n(&tasks_seen, true, __ATOMIC_RELAXED);
    if (!team || lwo_me.mode == THEIRS || lwo_host.omp_get_level() != lwo_me.level) return;
    /* Before this thread's first barrier there may be no barrier yet to call the others away from. */
    if (lwo_me.mode == UNDECIDED) {
        int size = lwo_host.omp_get_num_threads();
        if (size < 2) return;
        decide_mine(team, size);
        if (lwo_me.mode == THEIRS) return;
    }
    if (lwo_me.left) return;
    lwo_me.left = true;
    lwo_barrier_leave_from(team->barrier, lwo_me.run + 1);
}

const struct lwo_count *lwo_unfinished(void)
{
    return lwo_me.is_first ? &lwo_me.team->count : NULL;
}
