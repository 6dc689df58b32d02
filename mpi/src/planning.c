/*
 * Choosing plans beside the program: the first calls of a kind and race class on a communicator pass to the host, while a thread of each process
 * chooses and proves lineweave's plans. Then all ranks change over at one call (change.c), and the contest begins (calls.c).
 *
 * 1. A rank's first call of the class takes the class's line of the memory that the processes share (board.c), and gives the class to the thread.
 * 2. The thread has the plans chosen and proved: one process does it, the others take its record (lw_planner_plan). Then it says in the line that
 *    it is ready; also if there are no plans, which the call itself finds out.
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

/* What the ranks share of one class: the word of the change-over, the number of ranks that are ready, and rank 0's last proposal; and what rank 0
 * knows of the contest. */
struct shared {
    uint64_t word, ready, attempt, at, verdict;
};
_Static_assert(sizeof(struct shared) <= sizeof(((struct lwm_line *)0)->words), "what a line has room for");

struct lwm_planning {
    struct lwm_change change;
    struct lwm_line *line;
    struct shared *shared;
    lw_planner *planner;
    struct lwm_shape shape;
    /* The name of its verdict. */
    uint64_t name;
    int rank, size;
    /* Progress of the thread: the plans are there; the attempt that it voted on; calls of its rank when it proposed last. */
    bool planned;
    uint64_t voted, before;
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

/* Returns whether the thread has nothing more to do with a class: all have voted, all attempts failed, or its communicator is gone. */
static bool is_over(struct lwm_planning *p)
{
    bool last = p->voted == LWM_ATTEMPTS || __atomic_load_n(&p->left, __ATOMIC_RELAXED);
    return last || (p->voted > 0 && lwm_change_outcome(&p->shared->word, p->voted) == LWM_AGREED);
}

/* Does what can be done without waiting; returns whether anything was. */
static bool go_on(struct lwm_planning *p)
{
    struct shared *all = p->shared;
    if (!p->planned) {
        uint64_t began = lwm_now_ns();
        unsigned verdict = lwm_verdict_kept(p->planner, p->name);
        /* Where the host has won, too: for the second contest. */
        lw_planner_plan(p->planner, p->shape.collective, p->shape.count, p->shape.type, p->shape.op, p->shape.root);
        /* The others see it with the number that are ready. */
        if (p->rank == 0) __atomic_store_n(&all->verdict, verdict, __ATOMIC_RELAXED);
        __atomic_fetch_add(&lwm_setup[LWM_BESIDE_NS], lwm_now_ns() - began, __ATOMIC_RELAXED);
        p->planned = true;
        __atomic_add_fetch(&all->ready, 1, __ATOMIC_ACQ_REL);
    }
    uint64_t attempt = __atomic_load_n(&all->attempt, __ATOMIC_ACQUIRE);
    bool undecided = attempt > 0 && lwm_change_outcome(&all->word, attempt) != LWM_WITHDRAWN;
    if (p->rank == 0 && !undecided && attempt < LWM_ATTEMPTS && __atomic_load_n(&all->ready, __ATOMIC_ACQUIRE) == (uint64_t)p->size) {
        uint64_t calls[LWM_CHANGES];
        lwm_change_calls(&p->change, calls);
        __atomic_store_n(&all->at, calls[0] + 1 + ((calls[0] - p->before) << attempt), __ATOMIC_RELAXED);
        p->before = calls[0];
        __atomic_store_n(&all->attempt, ++attempt, __ATOMIC_RELEASE);
    }
    if (attempt == p->voted) return false;
    uint64_t at[LWM_CHANGES] = {__atomic_load_n(&all->at, __ATOMIC_RELAXED), UINT64_MAX};
    lwm_change_try(&p->change, &all->word, p->size, attempt, at);
    p->voted = attempt;
    return true;
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

static struct lwm_planning *begin(const struct lwm_call *call)
{
    struct lwm_comm *comm = call->comm;
    struct lwm_planning *p = calloc(1, sizeof *p);
    if (p) p->line = lwm_board_take(lwm_mix_for(LWM_NAME_PLANS, comm->name, (uint64_t)call->kind * LWM_RACE_CLASSES + (uint64_t)call->race_class));
    if (!p || !p->line || lw_comm_planner(comm->team, &p->planner) != LW_OK) {
        /* This rank never votes, so the class stays the host's. */
        if (p && p->line) lwm_board_give_back(p->line);
        free(p);
        return NULL;
    }
    p->shared = (struct shared *)p->line->words;
    p->shape = call->shape;
    p->name = lwm_verdict_name(comm, call->kind, call->race_class);
    p->rank = comm->rank;
    p->size = comm->size;
    p->alone = p->released = !give(p);
    return p;
}

/* Lets lineweave carry out calls of a class, or the host where it is known to win. */
static void changed_over(struct lwm_race *race, unsigned verdict)
{
    race->planned = LWM_PLANNED;
    if (verdict == LWM_UNDECIDED) return;
    lwm_race_settle(race, (verdict & LWM_WINNER) == LWM_HOSTS, (verdict & LWM_BETWEEN) != 0);
    __atomic_fetch_add(&lwm_setup[LWM_RECALLED], 1, __ATOMIC_RELAXED);
}

bool lwm_planning_came(struct lwm_call *call, struct lwm_race *race)
{
    struct lwm_comm *comm = call->comm;
    if (race->planned == LWM_PLANNED || !lwm_settings.beside || !comm->word || comm->way != LWM_TEAM || call->shape.collective < 0) return true;
    if (race->planned == LWM_UNPLANNED) {
        unsigned verdict;
        if (lwm_verdict_of(lwm_verdict_name(comm, call->kind, call->race_class), &verdict)) {
            changed_over(race, verdict);
            return true;
        }
        race->planning = begin(call);
        race->planned = race->planning ? LWM_BEING_PLANNED : LWM_UNPLANNABLE;
    }
    struct lwm_planning *p = race->planning;
    if (!p) return false;
    bool over = lwm_change_came(&p->change, &p->shared->word, 0);
    if (over) {
        unsigned verdict = (unsigned)__atomic_load_n(&p->shared->verdict, __ATOMIC_RELAXED);
        race->planning = NULL;
        lwm_verdict_remember(p->name, verdict);
        changed_over(race, verdict);
        part(p, &p->left, &p->released);
    } else if (p->alone) {
        go_on(p);
    }
    return over;
}

bool lwm_planning_ahead(struct lwm_planning *p, uint32_t many) { return !p->alone && lwm_change_ahead(&p->change, &p->shared->word, 0, many); }

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
