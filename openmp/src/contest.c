/*
 * Contest between the runtime and lineweave: the faster one is found once for each size of teams, among the threads of one team.
 *
 * Barriers are carried out by turns, eight here and eight by the runtime. The time of a barrier is from the arrival of its last thread until its
 * last thread has left, so the work of threads between barriers does not count. The first of eight is not counted: it finds the other's lines in
 * caches. The medians decide.
 *
 * A barrier may be over sooner and let the program go on later: threads that share CPUs leave it in another order, and the one that the others wait
 * for next may be behind those that spin. So a block of eight, with what the program does between them, must not take longer here: by the median, and,
 * since that may happen in few blocks, by the mean of three times as many that follow. What a program does once as it begins, such as binding its threads,
 * takes as long as many blocks, and is over by then. The longest of either side does not count, in which another program may have had a CPU. If
 * lineweave loses by the medians, nothing more is compared.
 *
 * A thread notes its times in the slot of the barrier's number modulo 4. The team's first thread reads a barrier's times after the next barrier,
 * before which all have written theirs. They are overwritten four barriers later, which no thread reaches without that thread.
 */
#include "lwo.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK = 8, MEDIANS = 128, LENGTH = 512, SLOTS = 4, MOST_THREADS = 512, SAMPLES = MEDIANS / 2, BLOCKS = LENGTH / BLOCK / 2 };
/* The first block of the means: in the one before, the medians were examined. */
enum { FIRST_OF_MEANS = MEDIANS / BLOCK / 2 + 1 };

/* Factor by which a block may take longer here: for the median of few, and for the mean of all, as much as the times of programs vary. */
static const double LONGER_MEDIAN = 1.1, LONGER_MEAN = 1.02;

struct times {
    _Alignas(LWO_APART) uint64_t arrived[SLOTS];
    uint64_t left[SLOTS];
};

struct lwo_contest {
    int verdict; /* -1: open */
    int size;
    bool claimed;
    /* Barriers so far, and the first of them whose times were not read. */
    uint32_t index, unread;
    int counts[2], blocks[2];
    /* Times of barriers, and of blocks from the end of their first barrier, which began this one. */
    double samples[2][SAMPLES], lasted[2][BLOCKS];
    uint64_t began;
    struct times times[];
};

static struct lwo_contest *contests[2][MOST_THREADS + 1];

static struct lwo_contest *contest_of(int size, bool crowded)
{
    struct lwo_contest **at = &contests[crowded][size];
    struct lwo_contest *found = __atomic_load_n(at, __ATOMIC_ACQUIRE);
    if (found) return found;
    size_t bytes = sizeof(struct lwo_contest) + (size_t)size * sizeof(struct times);
    struct lwo_contest *made = lwo_memory(bytes);
    if (!made) return NULL;
    made->verdict = lwo_race ? -1 : 1;
    made->size = size;
    if (__atomic_compare_exchange_n(at, &found, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) return made;
    lwo_memory_free(made, bytes);
    return found;
}

int lwo_verdict(int size, bool crowded, struct lwo_contest **claimed)
{
    *claimed = NULL;
    struct lwo_contest *contest = size <= MOST_THREADS ? contest_of(size, crowded) : NULL;
    if (!contest) return -1;
    int verdict = __atomic_load_n(&contest->verdict, __ATOMIC_ACQUIRE);
    if (verdict >= 0) return verdict;
    if (!__atomic_exchange_n(&contest->claimed, true, __ATOMIC_ACQUIRE)) *claimed = contest;
    return -1;
}

bool lwo_contest_ours(uint32_t index) { return index < LENGTH && index / BLOCK % 2 == 0; }

/* Returns the verdict, or -1. The first thread settles it by the barrier after the last that counts, MEDIANS or LENGTH, and all see that after
 * the barrier that follows. */
int lwo_contest_over(const struct lwo_contest *contest, uint32_t index)
{
    return index != MEDIANS + 3 && index < LENGTH + 3 ? -1 : __atomic_load_n(&contest->verdict, __ATOMIC_ACQUIRE);
}

uint32_t lwo_contest_begin(const struct lwo_contest *contest) { return contest->index; }

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(const double *values, int count)
{
    double sorted[SAMPLES];
    memcpy(sorted, values, sizeof(double) * (size_t)count);
    qsort(sorted, (size_t)count, sizeof *sorted, by_value);
    return count ? (sorted[(count - 1) / 2] + sorted[count / 2]) / 2 : 0;
}

static double mean_but_longest(const double *values, int count)
{
    double sum = 0, longest = 0;
    for (int i = FIRST_OF_MEANS; i < count; i++) {
        sum += values[i];
        if (values[i] > longest) longest = values[i];
    }
    return count > FIRST_OF_MEANS + 1 ? (sum - longest) / (count - FIRST_OF_MEANS - 1) : 0;
}

static double barrier_ns(const struct lwo_contest *contest, int side) { return median(contest->samples[side], contest->counts[side]); }

/* Reads the times of one barrier. */
static void read_barrier(struct lwo_contest *contest, uint32_t at)
{
    uint64_t arrived = 0, left = 0;
    for (int i = 0; i < contest->size; i++) {
        const struct times *times = &contest->times[i];
        if (times->arrived[at % SLOTS] > arrived) arrived = times->arrived[at % SLOTS];
        if (times->left[at % SLOTS] > left) left = times->left[at % SLOTS];
    }
    int side = lwo_contest_ours(at);
    if (at % BLOCK == 0) contest->began = left;
    else if (at < MEDIANS) contest->samples[side][contest->counts[side]++] = (double)left - (double)arrived;
    if (at % BLOCK == BLOCK - 1 && contest->began) contest->lasted[side][contest->blocks[side]++] = (double)left - (double)contest->began;
}

static bool faster_by_medians(const struct lwo_contest *contest)
{
    return barrier_ns(contest, 1) <= barrier_ns(contest, 0)
        && median(contest->lasted[1], contest->blocks[1]) <= LONGER_MEDIAN * median(contest->lasted[0], contest->blocks[0]);
}

static bool faster_by_means(const struct lwo_contest *contest)
{
    return mean_but_longest(contest->lasted[1], contest->blocks[1]) <= LONGER_MEAN * mean_but_longest(contest->lasted[0], contest->blocks[0]);
}

/* Settles the contest as soon as the times that were read decide it. */
static void settle(struct lwo_contest *contest)
{
    int verdict = -1;
    if (contest->unread == MEDIANS && !faster_by_medians(contest)) verdict = 0;
    if (contest->unread == LENGTH) verdict = faster_by_means(contest);
    if (verdict >= 0) __atomic_store_n(&contest->verdict, verdict, __ATOMIC_RELEASE);
}

/* Reads the times of barriers before `index`. */
static void read_times(struct lwo_contest *contest, uint32_t index)
{
    while (contest->unread < index && contest->verdict < 0) {
        uint32_t at = contest->unread++;
        if (at % BLOCK == 0) contest->began = 0;
        /* If a slot was used again, nothing can be read from it. */
        if (at + SLOTS > index) read_barrier(contest, at);
        settle(contest);
    }
}

void lwo_contest_arrive(struct lwo_contest *contest, int place, uint32_t index)
{
    if (index < LENGTH) contest->times[place].arrived[index % SLOTS] = lwo_now_ns();
}

void lwo_contest_leave(struct lwo_contest *contest, int place, uint32_t index)
{
    if (index < LENGTH) contest->times[place].left[index % SLOTS] = lwo_now_ns();
    if (place == 0 && index < LENGTH + 2) read_times(contest, index);
}

/* Ends the contest's part in a region, after all have left its barriers. */
void lwo_contest_end(struct lwo_contest *contest, uint32_t index)
{
    read_times(contest, index);
    contest->index = index;
    __atomic_store_n(&contest->claimed, false, __ATOMIC_RELEASE);
}

int lwo_contest_next(int size, bool *ours, double *ours_us, double *theirs_us)
{
    for (int i = size + 1; i <= MOST_THREADS; i++) {
        for (int crowded = 0; crowded < 2; crowded++) {
            const struct lwo_contest *contest = __atomic_load_n(&contests[crowded][i], __ATOMIC_ACQUIRE);
            if (!contest || !contest->counts[0] || __atomic_load_n(&contest->verdict, __ATOMIC_ACQUIRE) < 0) continue;
            *ours = contest->verdict == 1;
            *ours_us = barrier_ns(contest, 1) / 1e3;
            *theirs_us = barrier_ns(contest, 0) / 1e3;
            return i;
        }
    }
    return 0;
}
