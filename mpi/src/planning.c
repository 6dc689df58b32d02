/*
 * Choosing plans beside the program: the first calls of a kind and race class on a communicator pass to the host, while a thread of each process
 * chooses and proves lineweave's plans. Then all ranks change over at one call (change.c), and the contest begins (calls.c).
 *
 * This is done twice for a class. First for the first call's length and root, which is all that most programs need. Calls with another length or root
 * pass on to the host, and from the first of them on the thread plans the rest of the class: one of all calls that share a plan
 * (lw_planner_plan_alike). Then these change over too. Each time:
 *
 * 1. A rank's first call of the class takes the class's line of the memory that the processes share (board.c), and gives the class to the thread.
 * 2. The thread has the plans chosen and proved: one process does it, the others take its record (lw_planner_plan). Of many plans each rank begins with
 *    others. Then it says in the line that it is ready; also if there are no plans, which the call itself finds out, but not if memory lacks for them.
 * 3. Once all are ready, rank 0's thread proposes a call some way ahead of its own rank, and all vote. If that call came too soon for a rank, rank 0's
 *    thread proposes a later one.
 *
 * Communicators of the same ranks have the same plans, so what one has changed over for, later ones need not choose. Where it is known who wins the
 * contest, it is over as it begins (verdicts.c): rank 0 says so in the line.
 *
 * One thread goes through all classes again and again, and never waits for another rank with one of them. It ends when there has been nothing to do
 * for a while. Where a process may start no thread, calls of the class do its work.
 */
#define _GNU_SOURCE
#include "planning.h"
#include "board.h"
#include "change.h"
#include "helper.h"
#include "verdicts.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

/* What the ranks share of one class: the change-over, and what rank 0 knows of the contest. */
struct shared {
    struct lwm_proposal change;
    uint64_t verdict;
};
_Static_assert(sizeof(struct shared) <= sizeof(((struct lwm_line *)0)->words), "what a line has room for");

struct lwm_planning {
    struct lwm_change change;
    struct lwm_line *line;
    struct shared *shared;
    lw_planner *planner;
    struct lwm_shape shape;
    /* The name of its verdict, and that of the first call's shape. */
    uint64_t name, first;
    int rank, size;
    /* True if it is the rest of the class; the calls that are planned, and their number. */
    bool rest;
    size_t planned, many;
    /* Memory lacks for the plans: this rank is never ready, so these calls stay the host's. */
    bool no_memory;
    /* The communicator has no use for it any more; the thread has nothing more to do with it. Whoever comes second frees it. */
    bool left, released;
    /* True if there is no thread, and calls do its work. */
    bool alone;
    struct lwm_planning *next;
};

/* Pauses between two looks at what other ranks do; and the time after which the thread ends. */
enum { SHORTEST_NS = 20000, LONGEST_NS = 10000000, IDLE_S = 1 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER, ended = PTHREAD_COND_INITIALIZER;
/* What the thread does not know yet. */
static struct lwm_planning *begun;
static bool runs, ends;

static void discard(struct lwm_planning *p)
{
    lw_planner_free(p->planner);
    lwm_board_give_back(p->line);
    free(p);
}

/* Gives up one side's part: the communicator's (`left`) or the thread's (`released`). */
static void part(struct lwm_planning *p, bool *mine, const bool *other)
{
    pthread_mutex_lock(&lock);
    bool last = *other;
    *mine = true;
    pthread_mutex_unlock(&lock);
    if (last) discard(p);
}

/* Returns whether the thread has nothing more to do with a class: all have voted, or its communicator is gone. */
static bool is_over(struct lwm_planning *p)
{
    uint64_t attempt = p->change.attempt;
    return __atomic_load_n(&p->left, __ATOMIC_RELAXED) || (attempt > 0 && lwm_change_outcome(&p->shared->change.word, attempt) == LWM_AGREED);
}

/* Takes note if memory lacks for plans; the first time, the user is told. One thread makes plans, or calls do. */
static void note(struct lwm_planning *p, lw_status status)
{
    static bool said;
    if (status != LW_ERR_MEMORY) return;
    p->no_memory = true;
    if (!said) lwm_say("rank %d has no memory for long messages, which stay with %s: %s", p->rank, lwm_host_title, lw_last_error());
    said = true;
}

/* Has the `which`-th call planned that is like that of the class; beyond the last: none. Returns their number. */
static size_t plan_alike(struct lwm_planning *p, size_t which)
{
    size_t many = 0;
    note(p, lw_planner_plan_alike(p->planner, p->shape.collective, p->shape.count, p->shape.type, p->shape.op, p->shape.root, which, &many));
    return many;
}

/* Has the next call of the class planned. */
static void plan_next(struct lwm_planning *p)
{
    uint64_t began = lwm_now_ns();
    if (p->planned == 0) {
        unsigned verdict = p->rest ? LWM_UNDECIDED : lwm_verdict_kept(p->planner, p->name);
        /* Where the host has won, too: for the second contest. */
        note(p, lw_planner_plan(p->planner, p->shape.collective, p->shape.count, p->shape.type, p->shape.op, p->shape.root));
        /* The others see it with the number that are ready. */
        if (p->rank == 0) __atomic_store_n(&p->shared->verdict, verdict, __ATOMIC_RELAXED);
        /* Without a thread the call would wait for all of them. */
        p->many = 1 + (p->rest && !p->alone ? plan_alike(p, SIZE_MAX) : 0);
    } else {
        size_t others = p->many - 1;
        plan_alike(p, (p->planned - 1 + others * (size_t)p->rank / (size_t)p->size) % others);
    }
    p->planned++;
    __atomic_fetch_add(&lwm_setup[LWM_BESIDE_NS], lwm_now_ns() - began, __ATOMIC_RELAXED);
}

/* Does what can be done without waiting, or has one call planned; returns whether anything was. */
static bool go_on(struct lwm_planning *p)
{
    struct shared *all = p->shared;
    if (p->planned == 0 || p->planned < p->many) {
        if (p->alone) lwm_waits();
        plan_next(p);
        if (p->planned < p->many) return true;
        if (p->no_memory) return false;
        __atomic_add_fetch(&all->change.ready, 1, __ATOMIC_ACQ_REL);
    }
    return lwm_change_follow(&p->change, &all->change, p->rank, p->size);
}

/* Goes on with all of a list, and takes those that are over out of it; returns whether anything was done. */
static bool go_through(struct lwm_planning **list)
{
    bool did = false;
    while (*list) {
        struct lwm_planning *p = *list;
        if (is_over(p)) {
            *list = p->next;
            part(p, &p->released, &p->left);
        } else {
            did = go_on(p) || did;
            list = &p->next;
        }
    }
    return did;
}

/* Moves all of one list to another. */
static void move(struct lwm_planning **from, struct lwm_planning **to)
{
    for (struct lwm_planning *p; (p = *from);) {
        *from = p->next;
        p->next = *to;
        *to = p;
    }
}

static void in_thread(void *unused)
{
    (void)unused;
    struct timespec pause = {0, SHORTEST_NS}, until;
    struct lwm_planning *mine = NULL;
    bool idles = false;
    pthread_mutex_lock(&lock);
    while (!ends && !(idles && !begun)) {
        bool news = begun != NULL;
        move(&begun, &mine);
        if (!mine) {
            clock_gettime(CLOCK_REALTIME, &until);
            until.tv_sec += IDLE_S;
            idles = pthread_cond_timedwait(&more, &lock, &until) == ETIMEDOUT;
            continue;
        }
        pthread_mutex_unlock(&lock);
        bool did = go_through(&mine) || news;
        pause.tv_nsec = did ? SHORTEST_NS : pause.tv_nsec < LONGEST_NS ? 2 * pause.tv_nsec : pause.tv_nsec;
        nanosleep(&pause, NULL);
        pthread_mutex_lock(&lock);
    }
    /* What is left when the program ends. */
    move(&mine, &begun);
    runs = false;
    pthread_cond_broadcast(&ended);
    pthread_mutex_unlock(&lock);
}

/* Gives a class to the thread, which is started if need be; false where there can be none. */
static bool give(struct lwm_planning *p)
{
    pthread_mutex_lock(&lock);
    runs = runs || lwm_helper_start(in_thread, NULL);
    bool given = runs;
    if (given) {
        p->next = begun;
        begun = p;
        pthread_cond_signal(&more);
    }
    pthread_mutex_unlock(&lock);
    return given;
}

/* Returns a name of what the plans of a call depend on, of what is equal on all ranks. */
static uint64_t shape_of(const struct lwm_call *call)
{
    bool own = call->shape.type >= LW_BYTES(0);
    return lwm_mix(lwm_mix(call->bytes, (uint64_t)call->shape.root), own || call->shape.count == 0 ? 0 : call->bytes / call->shape.count);
}

/* Returns the name under which it is remembered that calls of a class and shape are planned; shape 0: all of them. */
static uint64_t mark(uint64_t name, uint64_t shape) { return name ? lwm_mix(name, shape) : 0; }

/* Begins to plan the first call of a class, or the rest of the class; null: this rank never votes, so these calls stay the host's. */
static struct lwm_planning *begin(const struct lwm_call *call, bool rest)
{
    struct lwm_comm *comm = call->comm;
    struct lwm_planning *p = calloc(1, sizeof *p);
    uint64_t class = (uint64_t)call->kind * LWM_RACE_CLASSES + (uint64_t)call->race_class;
    if (p) p->line = lwm_board_take(lwm_mix_for(LWM_NAME_PLANS, comm->name, 2 * class + rest));
    if (!p || !p->line || lw_comm_planner(comm->team, &p->planner) != LW_OK) {
        if (p && p->line) lwm_board_give_back(p->line);
        free(p);
        return NULL;
    }
    p->shared = (struct shared *)p->line->words;
    p->shape = call->shape;
    p->name = lwm_verdict_name(comm, call->kind, call->race_class);
    p->first = shape_of(call);
    p->rest = rest;
    p->rank = comm->rank;
    p->size = comm->size;
    p->alone = p->released = !give(p);
    return p;
}

/* Lets lineweave carry out calls of a class, or the host where it is known to win. */
static void settle(struct lwm_race *race, unsigned verdict)
{
    if (verdict == LWM_UNDECIDED || !lwm_settings.race) return;
    lwm_race_settle(race, (verdict & LWM_WINNER) == LWM_HOSTS, (verdict & LWM_BETWEEN) != 0);
    __atomic_fetch_add(&lwm_setup[LWM_RECALLED], 1, __ATOMIC_RELAXED);
}

/* Takes what another communicator of these ranks has planned. */
static void recall(const struct lwm_call *call, struct lwm_race *race, uint64_t shape)
{
    uint64_t name = lwm_verdict_name(call->comm, call->kind, call->race_class);
    unsigned verdict, none;
    if (lwm_verdict_of(mark(name, 0), &none)) race->planned = LWM_PLANNED;
    else if (lwm_verdict_of(mark(name, shape), &none)) race->planned = LWM_FIRST_PLANNED;
    else return;
    race->shape = shape;
    if (lwm_verdict_of(name, &verdict)) settle(race, verdict);
}

/* Ends what all ranks have changed over for. */
static void changed_over(struct lwm_race *race)
{
    struct lwm_planning *p = race->planning;
    unsigned verdict = (unsigned)__atomic_load_n(&p->shared->verdict, __ATOMIC_RELAXED);
    /* All barriers are alike. */
    bool all = p->rest || p->shape.collective == LW_BARRIER;
    race->planning = NULL;
    race->planned = all ? LWM_PLANNED : LWM_FIRST_PLANNED;
    lwm_verdict_remember(mark(p->name, all ? 0 : p->first), LWM_UNDECIDED);
    if (!p->rest) {
        lwm_verdict_remember(p->name, verdict);
        settle(race, verdict);
    }
    part(p, &p->left, &p->released);
}

/* Counts a call for what is under way; returns whether all ranks have changed over with it. */
static bool came(struct lwm_race *race)
{
    struct lwm_planning *p = race->planning;
    bool over = p && lwm_change_came(&p->change, &p->shared->change.word, 0);
    if (over) changed_over(race);
    else if (p && p->alone) go_on(p);
    return over;
}

bool lwm_planning_came(struct lwm_call *call, struct lwm_race *race)
{
    struct lwm_comm *comm = call->comm;
    if (race->planned == LWM_PLANNED || !lwm_settings.beside || !comm->word || comm->way != LWM_TEAM || call->shape.collective < 0) return true;
    uint64_t shape = shape_of(call);
    if (race->planned == LWM_UNPLANNED) {
        recall(call, race, shape);
        if (race->planned == LWM_PLANNED) return true;
        if (race->planned == LWM_UNPLANNED) {
            race->shape = shape;
            race->planning = begin(call, false);
            race->planned = LWM_FIRST_BEGUN;
        }
    }
    if (race->planned == LWM_FIRST_BEGUN && !came(race)) return false;
    if (race->planned == LWM_PLANNED || race->shape == shape) return true;
    if (race->planned == LWM_FIRST_PLANNED) {
        race->planning = begin(call, true);
        race->planned = LWM_REST_BEGUN;
    }
    return came(race);
}

bool lwm_planning_ahead(struct lwm_planning *p, uint32_t many) { return !p->alone && lwm_change_ahead(&p->change, &p->shared->change.word, 0, many); }

void lwm_planning_back(struct lwm_planning *p, uint32_t many)
{
    if (p) lwm_change_back(&p->change, 0, many);
}

void lwm_planning_leave(struct lwm_comm *comm)
{
    for (int kind = 0; kind < LWM_TAKEN; kind++) {
        for (int class = 0; class < LWM_RACE_CLASSES; class++) {
            struct lwm_race *race = &comm->races[kind][class];
            if (race->planning) part(race->planning, &race->planning->left, &race->planning->released);
            race->planning = NULL;
        }
    }
}

void lwm_planning_close(void)
{
    pthread_mutex_lock(&lock);
    ends = true;
    pthread_cond_broadcast(&more);
    while (runs) pthread_cond_wait(&ended, &lock);
    for (struct lwm_planning *p; (p = begun);) {
        begun = p->next;
        pthread_mutex_unlock(&lock);
        part(p, &p->released, &p->left);
        pthread_mutex_lock(&lock);
    }
    pthread_mutex_unlock(&lock);
}
