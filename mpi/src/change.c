/*
 * The change-over from the host to lineweave: at one call for all ranks, and nobody waits for anybody.
 *
 * 1. Each rank numbers its calls on the communicator: the blocking ones, and those that it starts. They are numbered by themselves, as a program may
 *    start one before a blocking call at one rank and after it at another.
 * 2. The threads that have formed the team make an attempt: they agree, by a collective of the team, on a number of either kind that is above those
 *    of all ranks. Each publishes the attempt to its own rank, and then looks how far its rank has come. If it has not reached either number, the
 *    thread adds its vote to the word that all ranks share; otherwise it withdraws the attempt there.
 * 3. A rank that gets to a number of the latest attempt looks at the word. If all have voted, lineweave carries out this call and later ones of
 *    the kind. If not, it withdraws the attempt, and the call is the host's.
 *
 * A rank may take the numbers of some calls ahead, so that it need not look at each: to its thread they are made. It gives those back that it does not
 * use.
 *
 * An attempt is agreed on or withdrawn, never both: either is an atomic change of one word. A rank either sees an attempt that it has gone too far
 * for, or its thread sees, before it votes, that it has gone too far: each writes first and reads then, sequentially consistent. So when an attempt
 * is agreed on, no rank has made one of its calls, and every rank gets to them with the word as it then is.
 *
 * There are as many attempts as it takes. Only the latest one's calls are kept: a rank that reads them beside the number of an earlier attempt is at a
 * call of the host's in either case, as that one is withdrawn, and its thread sees that call when it looks how far its rank has come.
 */
#include "change.h"

#include <stddef.h>

/* Fields of the word: the votes; whether the attempt was withdrawn, or all have voted; its number. */
#define VOTES 0xffffu
#define WITHDRAWN ((uint64_t)1 << 16)
#define AGREED ((uint64_t)1 << 17)
#define ATTEMPT(word) ((word) >> 32)

/* Most times that the distance of an attempt is doubled. */
enum { DOUBLINGS = 5 };

enum lwm_outcome lwm_change_outcome(const uint64_t *word, uint64_t attempt)
{
    /* Acquire: what the others did before they voted. */
    uint64_t seen = __atomic_load_n(word, __ATOMIC_ACQUIRE);
    if (ATTEMPT(seen) < attempt) return LWM_OPEN;
    /* Only one that was withdrawn has another one after it. */
    if (ATTEMPT(seen) > attempt || seen & WITHDRAWN) return LWM_WITHDRAWN;
    return seen & AGREED ? LWM_AGREED : LWM_OPEN;
}

/* Votes for an attempt of so many ranks, or withdraws it, unless it is decided. */
static void decide(uint64_t *word, uint64_t attempt, bool votes, int ranks)
{
    uint64_t seen = __atomic_load_n(word, __ATOMIC_ACQUIRE), next;
    do {
        if (ATTEMPT(seen) > attempt) return;
        next = ATTEMPT(seen) < attempt ? attempt << 32 : seen;
        if (next & (WITHDRAWN | AGREED)) return;
        if (!votes) next |= WITHDRAWN;
        else if ((++next & VOTES) == (uint64_t)ranks) next |= AGREED;
    } while (!__atomic_compare_exchange_n(word, &seen, next, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
}

enum lwm_outcome lwm_change_withdraw(uint64_t *word, uint64_t attempt)
{
    decide(word, attempt, false, 0);
    return lwm_change_outcome(word, attempt);
}

bool lwm_change_came(struct lwm_change *change, uint64_t *word, int which)
{
    uint64_t number = __atomic_add_fetch(&change->calls[which], 1, __ATOMIC_SEQ_CST);
    uint64_t attempt = __atomic_load_n(&change->attempt, __ATOMIC_SEQ_CST);
    if (attempt == 0 || number < __atomic_load_n(&change->at[which], __ATOMIC_RELAXED)) return false;
    return lwm_change_withdraw(word, attempt) == LWM_AGREED;
}

bool lwm_change_ahead(struct lwm_change *change, const uint64_t *word, int which, uint64_t many)
{
    uint64_t last = __atomic_add_fetch(&change->calls[which], many, __ATOMIC_SEQ_CST);
    uint64_t attempt = __atomic_load_n(&change->attempt, __ATOMIC_SEQ_CST);
    /* A later attempt finds the last number. */
    if (attempt == 0 || last < __atomic_load_n(&change->at[which], __ATOMIC_RELAXED) || lwm_change_outcome(word, attempt) == LWM_WITHDRAWN) return true;
    lwm_change_back(change, which, many);
    return false;
}

void lwm_change_back(struct lwm_change *change, int which, uint64_t many) { __atomic_sub_fetch(&change->calls[which], many, __ATOMIC_SEQ_CST); }

void lwm_change_calls(struct lwm_change *change, uint64_t calls[LWM_CHANGES])
{
    for (int i = 0; i < LWM_CHANGES; i++) calls[i] = __atomic_load_n(&change->calls[i], __ATOMIC_SEQ_CST);
}

uint64_t lwm_change_next(uint64_t calls, uint64_t before, uint64_t doublings)
{
    /* Numbers may have been given back since. */
    uint64_t since = calls > before ? calls - before : 0;
    return calls + 1 + (since << (doublings < DOUBLINGS ? doublings : DOUBLINGS));
}

void lwm_change_try(struct lwm_change *change, uint64_t *word, int ranks, uint64_t attempt, const uint64_t at[LWM_CHANGES])
{
    uint64_t calls[LWM_CHANGES];
    bool votes = true;
    for (int i = 0; i < LWM_CHANGES; i++) __atomic_store_n(&change->at[i], at[i], __ATOMIC_RELAXED);
    __atomic_store_n(&change->attempt, attempt, __ATOMIC_SEQ_CST);
    lwm_change_calls(change, calls);
    for (int i = 0; i < LWM_CHANGES; i++) votes = votes && calls[i] < at[i];
    decide(word, attempt, votes, ranks);
}

bool lwm_change_follow(struct lwm_change *change, struct lwm_proposal *proposal, int rank, int ranks)
{
    uint64_t attempt = __atomic_load_n(&proposal->attempt, __ATOMIC_ACQUIRE);
    bool undecided = attempt > 0 && lwm_change_outcome(&proposal->word, attempt) != LWM_WITHDRAWN;
    if (rank == 0 && !undecided && __atomic_load_n(&proposal->ready, __ATOMIC_ACQUIRE) == (uint64_t)ranks) {
        uint64_t calls[LWM_CHANGES];
        lwm_change_calls(change, calls);
        __atomic_store_n(&proposal->at, lwm_change_next(calls[0], change->before, attempt), __ATOMIC_RELAXED);
        change->before = calls[0];
        __atomic_store_n(&proposal->attempt, ++attempt, __ATOMIC_RELEASE);
    }
    if (attempt == change->attempt) return false;
    /* Of a later attempt, if this one was withdrawn meanwhile. */
    uint64_t at[LWM_CHANGES] = {__atomic_load_n(&proposal->at, __ATOMIC_RELAXED), UINT64_MAX};
    lwm_change_try(change, &proposal->word, ranks, attempt, at);
    return true;
}
