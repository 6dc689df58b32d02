/*
 * How ranks agree to form a team after a call that a rank may leave before others came: a bcast, a reduce, one that was started.
 *
 * 1. The ranks of a node share some words, in memory that its first rank made when ranks learned of each other (calls.c). MPI_COMM_WORLD has
 *    the first one. Where a communicator is made all of its ranks take part, and there its first rank takes a word and tells the others.
 * 2. Each rank counts the collectives that it hands to the host on this communicator. If one is refused or fails, it bars the word for ever.
 * 3. On its way out of the call with a certain number (4, 16, 64 and so on) a rank adds itself to those who came, and waits for them. It does not
 *    wait long: then it withdraws the attempt, for all ranks.
 * 4. Who comes last decides, by the same change of the word: all form the team, or all go on. What is withdrawn cannot be decided any more,
 *    nor withdrawn what is decided.
 *
 * Ranks that came to one number were refused nothing, so they are at the same place of their program; and as all are in a call on this
 * communicator, none waits for another thread or message. (docs/mpi.md, "Why no rank forms a team alone".)
 */
#define _GNU_SOURCE
#include "lwm.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

/* `state`: ranks that came; whether that attempt was withdrawn or came too early, or was decided; its number; whether it is barred. */
#define CAME 0xffffu
#define OVER ((uint64_t)1 << 16)
#define FORMS ((uint64_t)1 << 17)
#define ATTEMPT(state) ((state) >> 32 & 0x7fffffffu)
#define BARRED ((uint64_t)1 << 63)
/* In `heard`: a rank could not make a duplicate. */
#define BARREN ((uint64_t)1 << 63)
struct lwm_word {
    uint64_t state;
    uint64_t spent_ns;  /* by all ranks together, in calls that passed */
    uint64_t users;     /* ranks whose communicator has it */
    union {
        uint64_t token; /* of the first word, which no communicator has: whose memory it is */
        uint64_t heard; /* of others: how often a rank has taken `heir` */
    };
    uint64_t told;      /* what its first rank tells of its team (teams.c); 0: nothing yet */
    uint64_t places[LWM_PLACES];
    uint64_t heir;      /* the word of its last duplicate, above the number of that */
};
_Static_assert(sizeof(struct lwm_word) == 64, "a line for each");
enum { WORDS = 32768, PROBES = 256 };
#define BYTES (WORDS * sizeof(struct lwm_word))
static struct lwm_word *words;
static int file = -1;
static uint32_t hint = 1;

/* In `position`: a thread agrees, and a call that another one starts waits for the outcome. */
#define AGREES ((uint64_t)1 << 63)

/* A rank waits for others so long at most: 1/SHARE of the time since the communicator's first call, and never longer than this. Where calls are
 * counted for it, which is for tests, it is this. */
#define LONGEST_NS 100000000u
#define SHARE 128

void lwm_agree_offer(long long mine[LWM_OFFER])
{
    uint64_t token = 0;
    file = memfd_create("lineweave-mpi", MFD_CLOEXEC);
    if (file >= 0 && (ftruncate(file, BYTES) != 0 || getrandom(&token, sizeof token, 0) != sizeof token ||
                      pwrite(file, &token, sizeof token, offsetof(struct lwm_word, token)) != sizeof token)) {
        close(file);
        file = -1;
    }
    mine[0] = getpid();
    mine[1] = file;
    mine[2] = (long long)token;
}

void lwm_agree_open(const long long offer[LWM_OFFER], bool ours)
{
    int from = -1;
    if (!ours && offer[1] >= 0) {
        char path[64];
        snprintf(path, sizeof path, "/proc/%lld/fd/%lld", offer[0], offer[1]);
        from = open(path, O_RDWR | O_CLOEXEC);
    }
    int used = ours ? file : from;
    void *at = used >= 0 ? mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, used, 0) : MAP_FAILED;
    if (at != MAP_FAILED) words = at;
    /* Another process space has another process by this number. */
    if (words && words->token != (uint64_t)offer[2]) {
        munmap(words, BYTES);
        words = NULL;
    }
    if (from >= 0) close(from);
    if (!ours) lwm_agree_close();
}

/* The memory stays: callbacks of communicators come later. */
void lwm_agree_close(void)
{
    if (file >= 0) close(file);
    file = -1;
}

struct lwm_word *lwm_agree_world(void) { return words ? &words[1] : NULL; }

int lwm_agree_take(int ranks)
{
    for (int i = 0; words && i < PROBES; i++) {
        uint32_t at = 2 + __atomic_fetch_add(&hint, 1, __ATOMIC_RELAXED) % (WORDS - 2);
        uint64_t nobody = 0;
        struct lwm_word *word = &words[at];
        /* Acquire: with the release of the last user. */
        if (!__atomic_compare_exchange_n(&word->users, &nobody, (uint64_t)ranks, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) continue;
        word->state = word->spent_ns = word->told = word->heir = word->heard = 0;
        return (int)at;
    }
    return 0;
}

struct lwm_word *lwm_agree_word(int taken) { return words && taken > 0 ? &words[taken] : NULL; }

void lwm_agree_give_back(struct lwm_word *word) { __atomic_fetch_sub(&word->users, 1, __ATOMIC_RELEASE); }

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

/* Between looks at what another rank does. */
static void pause_at(unsigned turn)
{
    if (turn % 16 == 15) lwm_progress(NULL);
    if (turn > 8) sched_yield();
}

/*
 * A duplicate's word is told by that of the communicator it was made from, if all of its ranks share such words: without a call of the host. A rank that
 * could not make one bars that before it makes another, and no rank has another before all have begun to make it.
 */
int lwm_agree_heir(struct lwm_comm *comm)
{
    struct lwm_word *word = comm->board;
    /* Acquire: what came before the bar. */
    if (__atomic_load_n(&word->heard, __ATOMIC_ACQUIRE) & BARREN) return -1;
    uint64_t number = ++comm->heirs, heir;
    if (comm->rank > 0) {
        for (unsigned turn = 0; (heir = __atomic_load_n(&word->heir, __ATOMIC_ACQUIRE)) >> 32 != (number & UINT32_MAX); turn++) pause_at(turn);
        __atomic_fetch_add(&word->heard, 1, __ATOMIC_RELEASE);
        return (int)(heir & UINT32_MAX);
    }
    /* All have taken the last one. */
    uint64_t before = (number - 1) * (uint64_t)(comm->size - 1);
    for (unsigned turn = 0; __atomic_load_n(&word->heard, __ATOMIC_ACQUIRE) < before; turn++) pause_at(turn);
    int taken = lwm_agree_take(comm->size);
    __atomic_store_n(&word->heir, number << 32 | (uint64_t)taken, __ATOMIC_RELEASE);
    return taken;
}

void lwm_agree_barren(struct lwm_comm *comm) { __atomic_fetch_or(&comm->board->heard, BARREN, __ATOMIC_ACQ_REL); }

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

int lwm_agree_saw(struct lwm_comm *comm, int result)
{
    if (LWM_UNLIKELY(result != 0 && comm && comm->way == LWM_NEW && comm->word)) {
        __atomic_fetch_or(&comm->word->state, BARRED, __ATOMIC_ACQ_REL);
        comm->word = NULL;
    }
    return result;
}

/* Whether all ranks form the team now. */
static bool agree(const struct lwm_comm *comm, uint64_t team_ns)
{
    struct lwm_word *word = comm->word;
    uint64_t now = lwm_now_ns(), spent = now - comm->since_ns, most = spent / SHARE;
    if (lwm_settings.counts || most > LONGEST_NS) most = LONGEST_NS;
    /* Calls cannot have cost more than all the time there was. */
    bool early = !lwm_settings.counts && spent < team_ns;
    uint64_t state = __atomic_load_n(&word->state, __ATOMIC_ACQUIRE), next;
    do {
        if (state & BARRED || ATTEMPT(state) > comm->attempt) return false;
        next = ATTEMPT(state) < comm->attempt ? comm->attempt << 32 : state;
        if (next & OVER) return false;
        if (early) {
            next |= OVER;
        } else if ((++next & CAME) == (uint64_t)comm->size) {
            bool due = lwm_settings.counts || __atomic_load_n(&word->spent_ns, __ATOMIC_RELAXED) / (uint64_t)comm->size > team_ns;
            next |= due ? FORMS : OVER;
        }
        /* What each rank spent is added before it comes. */
    } while (!__atomic_compare_exchange_n(&word->state, &state, next, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
    for (unsigned turns = 0;; turns++) {
        /* No rank goes on to the next attempt from one that was decided so. */
        if (ATTEMPT(next) == comm->attempt && next & FORMS) return true;
        if (ATTEMPT(next) != comm->attempt || next & (OVER | BARRED)) return false;
        lwm_progress(NULL);
        if (turns > 200) sched_yield();
        bool late = lwm_now_ns() - now > most;
        state = __atomic_load_n(&word->state, __ATOMIC_ACQUIRE);
        next = state;
        if (late && state == ((comm->attempt << 32) | (state & CAME)) &&
            __atomic_compare_exchange_n(&word->state, &state, state | OVER, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            return false;
        }
    }
}

void lwm_agree(struct lwm_comm *comm)
{
    uint64_t at = comm->agrees_at;
    /* A call that another thread has started since comes before what this one would do. */
    if (!__atomic_compare_exchange_n(&comm->position, &at, at | AGREES, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return;
    __atomic_fetch_add(&comm->word->spent_ns, comm->passed_ns - comm->told_ns, __ATOMIC_RELAXED);
    comm->told_ns = comm->passed_ns;
    if (agree(comm, lwm_team_ns())) lwm_comm_settle(comm, true);
    __atomic_store_n(&comm->position, at, __ATOMIC_RELEASE);
}

/* ---- calls that were started ---- */

/* Those with a number to agree at that are not completed yet. Who starts more has attempts that fail. */
static struct { MPI_Request request; struct lwm_comm *comm; uint64_t took_ns; } watched[LWM_WATCHED];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
uint64_t lwm_watches;

int lwm_agree_started(struct lwm_comm *comm, MPI_Request *request, uint64_t began_ns, int result)
{
    if (lwm_agree_saw(comm, result) != 0 || !comm || comm->way != LWM_NEW || !comm->word || began_ns == 0) return result;
    uint64_t took = lwm_now_ns() - began_ns;
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
        /* Those since the last attempt took about as long each. */
        comm->passed_ns += took * (comm->agrees_at - comm->agrees_at / 4);
        lwm_agree(comm);
    }
    return result;
}
