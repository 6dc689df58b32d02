/*
 * Threads that share CPUs let the first of them leave first where it was held up, by a clock and a scheduler that this test sets: one thread plays
 * two. The first one waits, and the second one comes while it yields.
 *
 *   barrier
 *
 * Says what is wrong; the status is 1 then.
 */
#include "../src/lwo.h"

#include <stdio.h>

enum lwo_policy lwo_policy;

static uint64_t now, yield_ns, run;
static struct lwo_barrier *barrier;
static bool waits;
static int leaving;

uint64_t lwo_now_ns(void) { return now; }

/* In place of the system's. */
int sched_yield(void)
{
    if (!waits) {
        leaving++;
        return 0;
    }
    waits = false;
    now += yield_ns;
    lwo_barrier_wait(barrier, true, 1, 2, run);
    return 0;
}

/* Of so many barriers, those that the second thread left with a yield, where each yield of the first one takes this long. */
static int yields(int barriers, uint64_t each_ns)
{
    leaving = 0;
    yield_ns = each_ns;
    for (int i = 0; i < barriers; i++) {
        run++;
        waits = true;
        lwo_barrier_wait(barrier, true, 0, 2, run);
        now += 1000;
    }
    return leaving;
}

int main(void)
{
    static const struct {
        int barriers;
        uint64_t each_ns;
        int yields;
        const char *what;
    } cases[] = {
        {1000, 1000, 0, "nobody yields where the first thread is not held up"},
        {1, 500000, 0, "it is held up once"},
        {1000, 1000, 15, "and leaves first for some barriers"},
        {1, 500000, 0, "it is held up a second time, much later"},
        {15, 1000, 15, "and leaves first as often"},
        {1, 500000, 0, "it is held up as soon as that is over"},
        {1000, 1000, 31, "and leaves first for twice as many"},
    };
    barrier = lwo_barrier_new(2, 0);
    int wrong = !barrier;
    for (int i = 0; !wrong && i < (int)(sizeof cases / sizeof *cases); i++) {
        int found = yields(cases[i].barriers, cases[i].each_ns);
        if (found == cases[i].yields) continue;
        fprintf(stderr, "%s: %d yields, expected %d\n", cases[i].what, found, cases[i].yields);
        wrong = 1;
    }
    return wrong;
}
