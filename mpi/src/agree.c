/*
 * Agreement in memory: the ranks of a communicator on one node form a team, or do not. A rank that has the communicator's word (board.c) and
 * arrives is known to take part; if one does not arrive, all go on as without lineweave.
 *
 * After a call that a rank may leave before others entered it (a bcast, a reduce, a started call):
 * 1. Each rank counts the collectives that it hands to the host on this communicator, from its first one on. If one is refused or fails, it bars this
 *    for ever.
 * 2. On its way out of the call with a certain number (4, 16, 64 and so on) a rank adds itself to those that arrived, and waits for the others.
 *    It does not wait long: then it withdraws the attempt, for all ranks.
 * 3. The rank that arrives last decides, by the same change of the word: all form the team, or all go on. An attempt that was withdrawn cannot be
 *    decided any more, nor can a decided one be withdrawn.
 *
 * No call was refused at ranks that arrived at one number, so they are at the same place of their program; and as all are in a call on this
 * communicator, none waits for another thread or message. (docs/explanation/mpi-teams.md.)
 *
 * After a call that no rank leaves before all entered it, which is counted separately (teams.c), the same steps use another part of the word.
 * There all ranks are about to arrive, so a rank waits longer.
 */
#define _GNU_SOURCE
#include "agree.h"
#include "board.h"
#include "forming.h"
#include "started.h"
#include "trace.h"

#include <pthread.h>
#include <sched.h>

/* Fields of an attempt: ranks that arrived; bits that say that it was withdrawn, came too early, or was decided; its number; a bit that bars all
 * later ones. */
#define CAME 0xffffu
#define OVER ((uint64_t)1 << 16)
#define FORMS ((uint64_t)1 << 17)
/* A bit of `state` alone: a rank cannot take part in the team that was decided. */
#define GAVE_UP ((uint64_t)1 << 18)
#define ATTEMPT(state) ((state) >> 32 & 0x7fffffffu)
#define BARRED ((uint64_t)1 << 63)
struct lwm_word {
    uint64_t state;     /* after calls of any kind */
    uint64_t all_state; /* after calls that all went into */
    uint64_t spent_ns;  /* by all ranks together, in calls that passed; for the change-over (change.c) once a team forms */
    uint64_t told;      /* what its first rank tells of its team (forming.c); 0: nothing yet */
    uint64_t places[LWM_PLACES];
};
_Static_assert(sizeof(struct lwm_word) == sizeof(((struct lwm_line *)0)->words), "what a line has room for");

uint64_t *lwm_agree_change(struct lwm_word *word) { return &word->spent_ns; }

/* A bit of `position`: a thread agrees, and a call that another one starts waits for the outcome. */
#define AGREES ((uint64_t)1 << 63)

/* Longest time that a rank waits for others: 1/SHARE of the time since the communicator's first call, and never longer than this. Where calls are
 * counted for it, which is for tests, it is this. */
#define LONGEST_NS 100000000u
#define SHARE 128
/* As LONGEST_NS, where all ranks are about to arrive: a rank that shares its CPU with many others may take so long to leave a call. */
#define ALL_COME_NS 1000000000u

void lwm_agree_count(struct lwm_comm *comm)
{
    uint64_t seen = __atomic_load_n(&comm->position, __ATOMIC_RELAXED);
    do {
        while (LWM_UNLIKELY(seen & AGREES)) {
            sched_yield();
            seen = __atomic_load_n(&comm->position, __ATOMIC_RELAXED);
        }
        /* Acquire: whether there is a team now. */
    } while (!__atomic_compare_exchange_n(&comm->position, &seen, seen + 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED));
    if (seen >= comm->agrees_at) {
        comm->agrees_at *= 4;
        comm->attempt++;
    }
}

/* Pauses between two looks at another rank's word. */
static void pause_at(unsigned turn)
{
    if (turn % 16 == 15) lwm_progress(NULL);
    if (turn > 8) sched_yield();
}

void lwm_agree_tell(struct lwm_word *word, uint64_t told, const uint64_t places[LWM_PLACES])
{
    for (int i = 0; i < LWM_PLACES; i++) word->places[i] = places[i];
    /* Release: the places. */
    __atomic_store_n(&word->told, told, __ATOMIC_RELEASE);
}

uint64_t lwm_agree_told(struct lwm_word *word, uint64_t places[LWM_PLACES])
{
    uint64_t told;
    /* Acquire: the places. */
    for (unsigned turns = 0; (told = __atomic_load_n(&word->told, __ATOMIC_ACQUIRE)) == 0; turns++) pause_at(turns);
    for (int i = 0; i < LWM_PLACES; i++) places[i] = word->places[i];
    return told;
}

void lwm_agree_give_up(struct lwm_word *word) { __atomic_fetch_or(&word->state, GAVE_UP, __ATOMIC_ACQ_REL); }
bool lwm_agree_gave_up(const struct lwm_word *word) { return __atomic_load_n(&word->state, __ATOMIC_ACQUIRE) & GAVE_UP; }

int lwm_agree_saw(struct lwm_comm *comm, int result)
{
    if (LWM_UNLIKELY(result != 0 && comm && comm->way == LWM_NEW && comm->word)) __atomic_fetch_or(&comm->word->state, BARRED, __ATOMIC_ACQ_REL);
    return result;
}

/* One attempt: its state, the number that all ranks give it, the longest wait, and whether this rank already knows that it is too early. */
struct attempt {
    uint64_t *state, number, most_ns;
    bool early;
};

/* Returns whether all ranks form the team now. */
static bool come(const struct lwm_comm *comm, struct attempt it)
{
    struct lwm_word *word = comm->word;
    uint64_t now = lwm_now_ns(), team_ns = lwm_team_ns(), state = __atomic_load_n(it.state, __ATOMIC_ACQUIRE), next;
    do {
        if (state & BARRED || ATTEMPT(state) > it.number) return false;
        next = ATTEMPT(state) < it.number ? it.number << 32 : state;
        if (next & OVER) return false;
        if (it.early) {
            next |= OVER;
        } else if ((++next & CAME) == (uint64_t)comm->size) {
            bool due = lwm_settings.counts || __atomic_load_n(&word->spent_ns, __ATOMIC_RELAXED) / (uint64_t)comm->size > team_ns;
            next |= due ? FORMS : OVER;
        }
        /* What each rank spent is added before it comes. */
    } while (!__atomic_compare_exchange_n(it.state, &state, next, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
    if (next & OVER) return false;
    /* Ranks that form the team now also wait for each other in this call. */
    lwm_waits();
    for (unsigned turns = 0;; turns++) {
        /* No rank goes on to the next attempt from one that was decided so. */
        if (ATTEMPT(next) == it.number && next & FORMS) return true;
        if (ATTEMPT(next) != it.number || next & (OVER | BARRED)) return false;
        lwm_progress(NULL);
        if (turns > 200) sched_yield();
        bool late = lwm_now_ns() - now > it.most_ns;
        state = __atomic_load_n(it.state, __ATOMIC_ACQUIRE);
        next = state;
        if (late && state == ((it.number << 32) | (state & CAME)) &&
            __atomic_compare_exchange_n(it.state, &state, state | OVER, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            return false;
        }
    }
}

static void tell_spent(struct lwm_comm *comm)
{
    __atomic_fetch_add(&comm->word->spent_ns, comm->passed_ns - comm->told_ns, __ATOMIC_RELAXED);
    comm->told_ns = comm->passed_ns;
}

bool lwm_agree_all(struct lwm_comm *comm)
{
    tell_spent(comm);
    return come(comm, (struct attempt){&comm->word->all_state, comm->looks++, ALL_COME_NS, false});
}

void lwm_agree(struct lwm_comm *comm)
{
    uint64_t at = comm->agrees_at;
    if (LWM_LIKELY(__atomic_load_n(&comm->position, __ATOMIC_RELAXED) != at)) return;
    uint64_t spent = lwm_now_ns() - comm->since_ns;
    /* A call that another thread has started since goes before the attempt of this one. */
    if (!__atomic_compare_exchange_n(&comm->position, &at, at | AGREES, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return;
    tell_spent(comm);
    struct attempt it = {&comm->word->state, comm->attempt, spent / SHARE, false};
    if (lwm_settings.counts || it.most_ns > LONGEST_NS) it.most_ns = LONGEST_NS;
    /* Calls cannot have cost more than all the time there was. */
    it.early = !lwm_settings.counts && spent < lwm_team_ns();
    if (come(comm, it)) lwm_comm_settle(comm, true);
    __atomic_store_n(&comm->position, at, __ATOMIC_RELEASE);
}

/* ---- calls that were started ---- */

/* The started calls with a number to agree at that are not completed yet. With more of them, attempts fail. */
static struct { MPI_Request request; struct lwm_comm *comm; uint64_t took_ns; } watched[LWM_WATCHED];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
uint64_t lwm_watches;

int lwm_agree_prepared(const struct lwm_order *order, int result)
{
    return lwm_beside_saw(order->numbered, LWM_STARTED, lwm_agree_saw(order->comm, result));
}

int lwm_agree_started(const struct lwm_order *order, MPI_Request *request, int result)
{
    struct lwm_comm *comm = order->comm;
    if (LWM_UNLIKELY(lwm_tracing) && result == 0) lwm_trace_left(order->start_ns, comm, *request);
    if (lwm_agree_prepared(order, result) != 0 || !comm || comm->way != LWM_NEW || !comm->word || order->began_ns == 0) return result;
    uint64_t took = lwm_now_ns() - order->began_ns;
    pthread_mutex_lock(&lock);
    int at = 0;
    while (at < LWM_WATCHED && watched[at].comm && watched[at].comm != comm) at++;
    if (at < LWM_WATCHED) {
        if (!watched[at].comm) __atomic_fetch_add(&lwm_watches, 1, __ATOMIC_RELAXED);
        watched[at].request = *request;
        watched[at].comm = comm;
        watched[at].took_ns = took;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

static void forget(int at)
{
    watched[at].comm = NULL;
    __atomic_fetch_sub(&lwm_watches, 1, __ATOMIC_RELAXED);
}

void lwm_agree_forget(const struct lwm_comm *comm)
{
    if (LWM_LIKELY(__atomic_load_n(&lwm_watches, __ATOMIC_RELAXED) == 0)) return;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < LWM_WATCHED; i++) {
        if (watched[i].comm == comm) forget(i);
    }
    pthread_mutex_unlock(&lock);
}

void lwm_watch(struct lwm_watch *watch, int count, const MPI_Request *array)
{
    watch->many = 0;
    if (LWM_LIKELY(__atomic_load_n(&lwm_watches, __ATOMIC_RELAXED) == 0)) return;
    watch->began_ns = lwm_now_ns();
    pthread_mutex_lock(&lock);
    for (int i = 0; i < LWM_WATCHED; i++) {
        for (int at = 0; watched[i].comm && at < count; at++) {
            if (array[at] != watched[i].request) continue;
            watch->comms[watch->many] = watched[i].comm;
            watch->at[watch->many++] = at;
            break;
        }
    }
    pthread_mutex_unlock(&lock);
}

int lwm_watched(const struct lwm_watch *watch, const MPI_Request *array, int result)
{
    for (int i = 0; i < watch->many; i++) {
        if (array[watch->at[i]] != lwm_host.no_request) continue;
        struct lwm_comm *comm = watch->comms[i];
        uint64_t took = lwm_now_ns() - watch->began_ns;
        bool known = false;
        pthread_mutex_lock(&lock);
        for (int w = 0; w < LWM_WATCHED && !known; w++) {
            if (watched[w].comm != comm) continue;
            known = true;
            took += watched[w].took_ns;
            forget(w);
        }
        pthread_mutex_unlock(&lock);
        if (!known || comm->way != LWM_NEW || lwm_agree_saw(comm, result) != 0 || !comm->word) continue;
        /* The calls since the last attempt are taken to have lasted as long as this one. */
        comm->passed_ns += took * (comm->agrees_at - comm->agrees_at / 4);
        lwm_agree(comm);
    }
    return result;
}
