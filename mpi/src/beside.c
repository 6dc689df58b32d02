/*
 * Forming a team beside the program: a thread of each rank does it, while calls pass to the host. Then all ranks change over at one call (change.c).
 *
 * 1. On their way out of the call in which they agreed, the ranks start their threads. A rank that may have none forms the team within this call.
 * 2. The thread forms the team, in its turn where ranks outnumber CPUs, or says by the word of agree.c that it cannot. Then no rank has one, and every
 *    call passes for ever.
 * 3. The threads agree on the call to change over at; they use the team for that, which is still theirs. Afterwards they end.
 *
 * The thread runs no code of the host's. A communicator that is freed meanwhile leaves the team to its thread. MPI_Finalize ends and waits for all
 * threads.
 */
#define _GNU_SOURCE
#include "board.h"
#include "forming.h"
#include "helper.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

/* The longest pause after an attempt that was withdrawn; the time that one rank has a CPU to itself for its part in forming a team, which takes
 * 0.6 to 3 ms; the longest sleep before it. */
enum { LONGEST_NS = 20000000, PART_NS = 6000000, SLEEP_NS = 1000000 };

enum progress { FORMS, FORMED, FAILED };
struct lwm_beside {
    struct lwm_change change;
    enum progress progress;
    /* True once the communicator is freed; its line, which the thread gives back. */
    bool left;
    struct lwm_line *line;
};

/* Protects `progress` and `left` of all; the numbers of threads, and of those that meet others. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ended = PTHREAD_COND_INITIALIZER;
static int threads, meeting;

static void discard(struct lwm_forming *f)
{
    if (f->beside->line) lwm_board_give_back(f->beside->line);
    free(f->beside);
    lwm_forming_free(f);
}

/* True from MPI_Finalize on. */
static bool ends;
void lwm_beside_end(void) { __atomic_store_n(&ends, true, __ATOMIC_RELEASE); }
bool lwm_beside_goes_on(void) { return !__atomic_load_n(&ends, __ATOMIC_ACQUIRE); }

/* Returns whether no rank has given up, and this one's communicator is there. */
static bool goes_on(struct lwm_forming *f)
{
    return lwm_beside_goes_on() && !__atomic_load_n(&f->beside->left, __ATOMIC_ACQUIRE) && !lwm_agree_gave_up(f->word);
}

/* Waits until an attempt is decided; withdraws it once a rank has given up. */
static enum lwm_outcome await(struct lwm_forming *f, uint64_t *word, uint64_t attempt)
{
    struct timespec pause = {0, 20000};
    while (lwm_change_outcome(word, attempt) == LWM_OPEN && goes_on(f)) {
        nanosleep(&pause, NULL);
        if (pause.tv_nsec < 2000000) pause.tv_nsec *= 2;
    }
    /* Nobody goes on where this rank does not. */
    return lwm_change_withdraw(word, attempt);
}

/* Stores the number of calls of the rank that has made most; false if not all go on. */
static bool most_calls(struct lwm_forming *f, uint64_t most[LWM_CHANGES])
{
    uint64_t mine[LWM_CHANGES + 1], all[LWM_CHANGES + 1];
    lwm_change_calls(&f->beside->change, mine);
    mine[LWM_CHANGES] = !goes_on(f);
    if (lw_allreduce(f->made[LWM_BLOCKING], mine, all, LWM_CHANGES + 1, LW_U64, LW_MAX) != LW_OK || all[LWM_CHANGES]) return false;
    for (int i = 0; i < LWM_CHANGES; i++) most[i] = all[i];
    return true;
}

/* Agrees with the threads of the other ranks on the call from which on lineweave carries them out. */
static bool change_over(struct lwm_forming *f)
{
    struct lwm_change *change = &f->beside->change;
    uint64_t *word = lwm_agree_change(f->word), before[LWM_CHANGES], most[LWM_CHANGES];
    /* The others see this once they have heard of it in the collective. */
    if (f->rank == 0) __atomic_store_n(word, 0, __ATOMIC_RELAXED);
    if (!most_calls(f, before)) return false;
    struct timespec pause = {0, 20000};
    for (uint64_t attempt = 1;; attempt++) {
        uint64_t at[LWM_CHANGES];
        if (!most_calls(f, most)) return false;
        for (int i = 0; i < LWM_CHANGES; i++) {
            at[i] = lwm_change_next(most[i], before[i], attempt + 1);
            before[i] = most[i];
        }
        lwm_change_try(change, word, f->size, attempt, at);
        enum lwm_outcome outcome = await(f, word, attempt);
        /* A rank that does not go on says so in the next collective, for which the others wait. */
        if (outcome != LWM_WITHDRAWN) return outcome == LWM_AGREED;
        nanosleep(&pause, NULL);
        if (pause.tv_nsec < LONGEST_NS) pause.tv_nsec *= 2;
    }
}

static uint64_t processor_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Forms the team and changes over, in a thread or within a call. */
static void carry_out(struct lwm_forming *f, bool within)
{
    uint64_t began = lwm_now_ns(), worked = processor_ns();
    bool fine = lwm_forming_make(f, NULL);
    __atomic_fetch_sub(&meeting, 1, __ATOMIC_RELEASE);
    fine = fine && change_over(f);
    if (!fine) lwm_agree_give_up(f->word);
    /* The call counts its own time. */
    lwm_team_cost(processor_ns() - worked, within ? 0 : lwm_now_ns() - began, LWM_BESIDE_NS);
    pthread_mutex_lock(&lock);
    __atomic_store_n(&f->beside->progress, fine ? FORMED : FAILED, __ATOMIC_RELEASE);
    bool left = f->beside->left;
    pthread_mutex_unlock(&lock);
    if (left) discard(f);
}

/* Returns whether the node's ranks outnumber their CPUs. */
static bool crowded(const struct lwm_forming *f) { return f->many > lwm_forming_cpus(f); }

/* Where ranks outnumber CPUs, waits until it is this thread's turn. A thread that computes takes its CPU from ranks that yield; if all began at once,
 * one call of the program would pay for all of them. */
static void await_turn(struct lwm_forming *f)
{
    if (!crowded(f)) return;
    uint64_t now = lwm_now_ns(), turn = now + (uint64_t)(f->mine + 1) * (uint64_t)(PART_NS / lwm_forming_cpus(f));
    for (; now < turn && goes_on(f); now = lwm_now_ns()) {
        struct timespec pause = {0, turn - now < SLEEP_NS ? (long)(turn - now) : SLEEP_NS};
        nanosleep(&pause, NULL);
    }
}

static void in_thread(void *forming)
{
    await_turn(forming);
    lw_thread_throttle(crowded(forming));
    carry_out(forming, false);
    pthread_mutex_lock(&lock);
    threads--;
    pthread_cond_broadcast(&ended);
    pthread_mutex_unlock(&lock);
}

static bool start(struct lwm_forming *f)
{
    pthread_mutex_lock(&lock);
    bool started = lwm_helper_start(in_thread, f);
    threads += started;
    pthread_mutex_unlock(&lock);
    return started;
}

void lwm_beside_begin(struct lwm_comm *comm, struct lwm_forming *f)
{
    /* A program may have started a call already that another rank starts after this one. */
    for (int i = 0; i < LWM_CHANGES; i++) f->beside->change.calls[i] = comm->numbers[i];
    comm->forming = f;
    comm->way = LWM_FORMS;
    __atomic_fetch_add(&meeting, 1, __ATOMIC_RELAXED);
    if (!start(f)) carry_out(f, true);
}

bool lwm_beside_is_due(struct lwm_forming *f)
{
    if (!lwm_settings.beside || !f->meets || !f->word || f->many < f->size) return false;
    f->beside = calloc(1, sizeof *f->beside);
    /* The ranks are known to be there: without memory this one cannot tell the others. */
    if (!f->beside) lwm_host.Abort(lwm_host.world, 1);
    return true;
}

/* Returns whether calls of this kind may change over to lineweave. */
static bool is_pending(const struct lwm_comm *comm, int which)
{
    return which == LWM_STARTED ? !comm->started && comm->way != LWM_AWAY : comm->way == LWM_FORMS;
}

bool lwm_beside_meets(void) { return __atomic_load_n(&meeting, __ATOMIC_ACQUIRE) > 0; }

void lwm_beside_number(struct lwm_comm *comm, int which)
{
    struct lwm_forming *f = comm->forming;
    if (!f) __atomic_fetch_add(&comm->numbers[which], 1, __ATOMIC_RELAXED);
    else if (!is_pending(comm, which)) return;
    else if (lwm_change_came(&f->beside->change, lwm_agree_change(f->word), which)) {
        /* Persistent calls are made by the one for blocking calls, whichever kind changes over first. */
        lwm_forming_give(f, &comm->team, LWM_BLOCKING);
        if (which == LWM_STARTED) lwm_forming_give(f, &comm->started, LWM_STARTED);
        else lwm_comm_has_team(comm, LWM_TEAM);
    } else if (__atomic_load_n(&f->beside->progress, __ATOMIC_ACQUIRE) == FAILED) {
        lwm_comm_has_none(comm);
    }
}

int lwm_beside_saw(struct lwm_comm *numbered, int which, int result)
{
    if (LWM_LIKELY(result == 0 || !numbered) || !lwm_is_refusal(result)) return result;
    if (!numbered->forming) __atomic_fetch_sub(&numbered->numbers[which], 1, __ATOMIC_RELAXED);
    else if (is_pending(numbered, which)) lwm_change_back(&numbered->forming->beside->change, which, 1);
    return result;
}

bool lwm_beside_ahead(struct lwm_comm *comm, uint32_t many)
{
    return lwm_change_ahead(&comm->forming->beside->change, lwm_agree_change(comm->forming->word), LWM_BLOCKING, many);
}

void lwm_beside_back(struct lwm_comm *comm, uint32_t many) { lwm_change_back(&comm->forming->beside->change, LWM_BLOCKING, many); }

void lwm_beside_leave(struct lwm_comm *comm)
{
    struct lwm_forming *f = comm->forming;
    comm->forming = NULL;
    if (!f) return;
    pthread_mutex_lock(&lock);
    bool forms = f->beside->progress == FORMS;
    if (forms) {
        f->beside->line = comm->line;
        comm->line = NULL;
        __atomic_store_n(&f->beside->left, true, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&lock);
    if (!forms) discard(f);
}

void lwm_beside_close(void)
{
    pthread_mutex_lock(&lock);
    while (threads > 0) pthread_cond_wait(&ended, &lock);
    pthread_mutex_unlock(&lock);
}
