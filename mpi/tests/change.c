/*
 * The change-over of mpi/src/change.c, under the schedules that matter: its own code, with each of its atomic steps a point at which another rank or
 * thread may go on. Two ranks, each a program that makes calls of both kinds and a thread that makes attempts, are run under every schedule of up
 * to PREEMPTIONS switches away from somebody who could go on, one less in the variants below; then two to four ranks under random ones.
 *
 *   change [PREEMPTIONS [RANDOM]]      3 and 200000 by default
 *
 * The threads agree on attempts by a collective, as in beside.c, or the first rank proposes them through memory, as in planning.c, where a rank's calls
 * may do the work of a thread. The program frees the communicator at its end, and its thread leaves then; or threads go on. In half of the random
 * schedules a program, a thread or a rank of both ends at some step without a word.
 *
 * Whoever makes a call makes it where all others make it: with the host or with lineweave.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

static void step(void);
static uint64_t load(const uint64_t *from) { step(); return *from; }
static void store(uint64_t *to, uint64_t value) { step(); *to = value; }
static uint64_t add(uint64_t *to, uint64_t n) { step(); return *to += n; }
static bool exchange(uint64_t *to, uint64_t *seen, uint64_t next)
{
    step();
    bool same = *to == *seen;
    if (same) *to = next;
    else *seen = *to;
    return same;
}
#define __atomic_load_n(from, order) load(from)
#define __atomic_store_n(to, value, order) store(to, value)
#define __atomic_add_fetch(to, n, order) add(to, n)
#define __atomic_sub_fetch(to, n, order) add(to, -(uint64_t)(n))
#define __atomic_compare_exchange_n(to, seen, next, weak, success, failure) exchange(to, seen, next)
#include "../src/change.c"

enum { RANKS = 4, ACTORS = 2 * RANKS, CALLS = 12, STARTED = 2, STACK = 65536, MOST_STEPS = 8000 };
/* Attempts of threads that do not leave with their program. */
enum { ATTEMPTS = 3 };

/* How ranks agree on attempts, and what happens at the end of a program. */
static enum { BY_COLLECTIVE, BY_PROPOSAL, WITHOUT_THREAD, VARIANTS } variant;
static bool frees;

/* `calls`: of a program, fewer where every schedule is run. */
static int ranks, calls, running, steps;
static ucontext_t scheduler, contexts[ACTORS];
static char stacks[ACTORS][STACK];
static enum { READY, WAITS, OVER } state[ACTORS];

static struct lwm_change changes[RANKS];
static struct lwm_proposal proposal;
static uint64_t *const word = &proposal.word;
/* Set by a program that has freed the communicator, and by a rank or thread that another one must notice as lost. */
static uint64_t left[RANKS];
static bool lost, gone[RANKS];
static bool taken[RANKS][LWM_CHANGES][CALLS], made[RANKS][LWM_CHANGES][CALLS];
static uint64_t told[RANKS][LWM_CHANGES];
static int came, rounds;
static long agreed, withdrawn, aheads, changed;

static void step(void) { swapcontext(&contexts[running], &scheduler); }

static void call(int rank, int which, int number)
{
    taken[rank][which][number] = lwm_change_came(&changes[rank], word, which);
    made[rank][which][number] = true;
    changed += taken[rank][which][number];
}

/* Takes the numbers of two calls ahead and makes them, or only one; returns how many it made. */
static int call_ahead(int rank, int number, int makes)
{
    if (!lwm_change_ahead(&changes[rank], word, 0, 2)) return 0;
    for (int i = 0; i < makes; i++) {
        taken[rank][0][number + i] = false;
        made[rank][0][number + i] = true;
        step();
    }
    if (makes < 2) lwm_change_back(&changes[rank], 0, 1);
    aheads++;
    return makes;
}

/* The ranks disagree about the place of the call that they start, and one of them has a call refused and makes it again. Two of them make some calls
 * whose numbers they took ahead. */
static void program(int rank)
{
    bool alone = variant == WITHOUT_THREAD && rank == ranks - 1, several = variant == BY_COLLECTIVE;
    for (int number = 0, started = 0; number < calls; number++) {
        if (several && number >= 1 + rank % 2 && started < STARTED) call(rank, 1, started++);
        if (rank == 1 && number == 2 && !taken[rank][0][1]) {
            if (!lwm_change_came(&changes[rank], word, 0)) lwm_change_back(&changes[rank], 0, 1);
        }
        if (!alone && rank < 2 && number == 1 - rank && !(number > 0 && taken[rank][0][number - 1])) number += call_ahead(rank, number, 2 - rank);
        call(rank, 0, number);
        if (alone && !taken[rank][0][number]) lwm_change_follow(&changes[rank], &proposal, rank, ranks);
    }
    if (frees) store(&left[rank], 1);
}

/* The collective by which threads agree: they wait for all, and all get the maximum; false if one does not go on, or is lost. */
static bool most_of_all(int rank, uint64_t most[LWM_CHANGES])
{
    int round = rounds;
    lwm_change_calls(&changes[rank], told[rank]);
    gone[rank] = frees && load(&left[rank]);
    if (++came == ranks) {
        came = 0;
        rounds++;
        for (int i = 0; i < ACTORS; i++) state[i] = state[i] == WAITS ? READY : state[i];
    }
    while (rounds == round && !lost) {
        state[running] = WAITS;
        step();
    }
    if (rounds == round) return false;
    memset(most, 0, LWM_CHANGES * sizeof *most);
    for (int r = 0; r < ranks; r++) {
        if (gone[r]) return false;
    }
    for (int r = 0; r < ranks; r++) {
        for (int i = 0; i < LWM_CHANGES; i++) most[i] = told[r][i] > most[i] ? told[r][i] : most[i];
    }
    return true;
}

/* Returns whether a thread goes on. */
static bool goes_on(int rank) { return !lost && !(frees && load(&left[rank])); }

/* Waits until an attempt is decided; withdraws it once this rank does not go on. */
static enum lwm_outcome await(int rank, uint64_t attempt)
{
    while (lwm_change_outcome(word, attempt) == LWM_OPEN && goes_on(rank)) {}
    enum lwm_outcome outcome = goes_on(rank) ? lwm_change_outcome(word, attempt) : lwm_change_withdraw(word, attempt);
    if (rank == 0) *(outcome == LWM_AGREED ? &agreed : &withdrawn) += 1;
    return outcome;
}

static void agree(int rank)
{
    uint64_t before[LWM_CHANGES] = {0};
    for (uint64_t attempt = 1; frees || attempt <= ATTEMPTS; attempt++) {
        uint64_t most[LWM_CHANGES], at[LWM_CHANGES];
        if (!most_of_all(rank, most)) return;
        /* In a program of few calls none is far ahead. */
        for (int i = 0; i < LWM_CHANGES; i++) at[i] = attempt < ATTEMPTS ? most[i] + 1 : lwm_change_next(most[i], before[i], 0);
        memcpy(before, most, sizeof before);
        lwm_change_try(&changes[rank], word, ranks, attempt, at);
        if (await(rank, attempt) != LWM_WITHDRAWN) return;
    }
}

static void follow(int rank)
{
    add(&proposal.ready, 1);
    while (goes_on(rank) && changes[rank].attempt <= ATTEMPTS) {
        lwm_change_follow(&changes[rank], &proposal, rank, ranks);
        uint64_t attempt = changes[rank].attempt;
        enum lwm_outcome outcome = attempt > 0 ? lwm_change_outcome(word, attempt) : LWM_OPEN;
        if (rank == 0 && outcome != LWM_OPEN) *(outcome == LWM_AGREED ? &agreed : &withdrawn) += 1;
        /* Nothing comes after the last attempt's calls, nor after calls that were all made. */
        if (outcome == LWM_AGREED || state[2 * rank] == OVER) return;
    }
}

static void thread(int rank)
{
    if (variant == BY_COLLECTIVE) agree(rank);
    else if (variant == WITHOUT_THREAD && rank == ranks - 1) add(&proposal.ready, 1);
    else follow(rank);
}

static void act(int actor)
{
    if (actor % 2) thread(actor / 2);
    else program(actor / 2);
    state[actor] = OVER;
    step();
}

static void begin(int many)
{
    ranks = many;
    memset(&proposal, 0, sizeof proposal);
    memset(left, 0, sizeof left);
    memset(gone, 0, sizeof gone);
    lost = false;
    came = rounds = steps = 0;
    memset(changes, 0, sizeof changes);
    memset(taken, 0, sizeof taken);
    memset(made, 0, sizeof made);
    for (int i = 0; i < ACTORS; i++) {
        state[i] = i < 2 * many ? READY : OVER;
        if (state[i] == OVER) continue;
        getcontext(&contexts[i]);
        contexts[i].uc_stack.ss_sp = stacks[i];
        contexts[i].uc_stack.ss_size = STACK;
        makecontext(&contexts[i], (void (*)(void))act, 1, i);
    }
}

static void go_on(int actor)
{
    running = actor;
    swapcontext(&scheduler, &contexts[actor]);
    if (++steps > MOST_STEPS) {
        printf("a schedule does not end\n");
        exit(1);
    }
}

static bool is_over(void)
{
    for (int i = 0; i < 2 * ranks; i++) {
        if (state[i] != OVER) return false;
    }
    return true;
}

static void judge(void)
{
    for (int i = 0; i < LWM_CHANGES; i++) {
        for (int n = 0; n < CALLS; n++) {
            for (int r = 1; r < ranks; r++) {
                if (!made[r][i][n] || !made[0][i][n] || taken[r][i][n] == taken[0][i][n]) continue;
                printf("call %d of kind %d: rank 0 has lineweave carry it out: %d, rank %d: %d\n", n + 1, i, taken[0][i][n], r, taken[r][i][n]);
                exit(1);
            }
        }
    }
}

/* Runs one schedule: at each of these steps the next actor that can go on does so, `skips` further; else whoever runs, as long as it can. Somebody who
 * only looks again and again lets the others go on after a while. */
static int run(int many, int preemptions, const int *at, const int *skip)
{
    begin(many);
    int actor = 0, alone = 0;
    while (!is_over()) {
        bool switches = ++alone > 12;
        int by = 1;
        for (int i = 0; i < preemptions; i++) {
            if (at[i] == steps) switches = true, by = 1 + skip[i];
        }
        if (switches || state[actor] != READY) {
            alone = 0;
            while (by-- > 0) {
                do actor = (actor + 1) % (2 * many); while (state[actor] != READY);
            }
        }
        go_on(actor);
    }
    judge();
    return steps;
}

static long every(int preemptions, int from, int chosen, int *at, int *skip)
{
    int length = run(2, chosen, at, skip);
    long many = 1;
    if (chosen == preemptions) return many;
    for (at[chosen] = from; at[chosen] < length; at[chosen]++) {
        int here = at[chosen];
        for (skip[chosen] = 0; skip[chosen] < 3; skip[chosen]++) many += every(preemptions, here + 1, chosen + 1, at, skip);
        at[chosen] = here;
    }
    return many;
}

static void lose(int actor)
{
    state[actor] = OVER;
    lost = true;
    for (int i = 0; i < ACTORS; i++) state[i] = state[i] == WAITS ? READY : state[i];
}

/* Runs one random schedule, in which one or two actors of a rank may be lost. */
static void at_random(int many, bool loses)
{
    begin(many);
    int at = loses ? rand() % 80 : -1, victim = rand() % (2 * many), both = rand() % 2;
    while (!is_over()) {
        int actor = rand() % (2 * many);
        if (steps == at) {
            lose(victim);
            if (both) lose(victim ^ 1);
            at = -1;
        }
        if (state[actor] == READY) go_on(actor);
    }
    judge();
}

/* Prints what came of some schedules; returns whether each outcome was among them. */
static bool tell(const char *which, long many)
{
    printf("%s, %s, %ld %s: %ld attempts were agreed on, %ld withdrawn, lineweave carried out %ld calls\n",
           (const char *[]){"by a collective", "by proposals", "by proposals, a rank without a thread"}[variant], frees ? "freed" : "kept", many, which, agreed,
           withdrawn, changed);
    bool all = agreed > 0 && withdrawn > 0 && changed > 0;
    agreed = withdrawn = changed = 0;
    return all;
}

int main(int argc, char **argv)
{
    int preemptions = argc > 1 ? atoi(argv[1]) : 3, random = argc > 2 ? atoi(argv[2]) : 200000, at[8], skip[8];
    bool all = true;
    srand(1);
    for (int i = 0; i < 2 * VARIANTS; i++) {
        variant = i / 2;
        frees = i % 2;
        calls = variant == BY_COLLECTIVE ? 4 : 6;
        long many = every(i == 0 ? preemptions : preemptions - 1, 0, 0, at, skip);
        bool each = tell("schedules by preemptions", many);
        all = all && (each || i > 0);
        calls = CALLS;
        for (int n = 0; n < random / (2 * VARIANTS); n++) at_random(2 + n % (RANKS - 1), n % 2);
        all = tell("random schedules", random / (2 * VARIANTS)) && all;
    }
    return !all || aheads == 0;
}
