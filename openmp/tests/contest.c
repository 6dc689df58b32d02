/*
 * Who wins a contest, by a clock that this test sets: two threads' barriers, in turn, with what a program does between them.
 *
 *   contest
 *
 * Says which verdict is wrong; the status is 1 then.
 */
#include "../src/lwo.h"

#include <stdio.h>

bool lwo_race = true;

static uint64_t now;

uint64_t lwo_now_ns(void) { return now; }

/* What a barrier takes, what the program does after it, and how much more it does after each so many, until there were so many: 0 for all time. */
struct side {
    uint64_t barrier_ns, between_ns, more_ns;
    uint32_t each, until;
};

/* The verdict, and the barriers that it took. */
static int hold(int size, struct side ours, struct side theirs, uint32_t *barriers)
{
    uint32_t counts[2] = {0, 0};
    struct lwo_contest *contest;
    lwo_verdict(size, false, &contest);
    for (uint32_t index = lwo_contest_begin(contest);; index++) {
        int over = lwo_contest_over(contest, index);
        *barriers = index;
        if (over >= 0) return over;
        bool here = lwo_contest_ours(index);
        const struct side *side = here ? &ours : &theirs;
        for (int place = size; place-- > 0;) lwo_contest_arrive(contest, place, index);
        now += side->barrier_ns;
        /* The first thread is the last to leave, so that the others have written. */
        for (int place = size; place-- > 0;) lwo_contest_leave(contest, place, index);
        now += side->between_ns;
        ++counts[here];
        if (side->each && counts[here] % side->each == 0 && (!side->until || counts[here] <= side->until)) now += side->more_ns;
    }
}

int main(void)
{
    static const struct {
        struct side ours, theirs;
        int verdict;
        uint32_t most;
        const char *what;
    } cases[] = {
        {{100, 0, 0, 0, 0}, {200, 0, 0, 0, 0}, 1, 600, "a barrier that takes less wins"},
        {{200, 0, 0, 0, 0}, {100, 0, 0, 0, 0}, 0, 140, "a barrier that takes more loses soon"},
        {{100, 1000000, 0, 0, 0}, {200, 1000000, 0, 0, 0}, 1, 600, "what the program does counts for both"},
        {{100, 1010000, 0, 0, 0}, {200, 1000000, 0, 0, 0}, 1, 600, "as it varies by itself"},
        {{100, 5000, 0, 0, 0}, {200, 1000, 0, 0, 0}, 0, 140, "a program that goes on later loses soon"},
        {{100, 5000, 50000, 67, 0}, {200, 5000, 0, 0, 0}, 0, 600, "and so does one that stops at times"},
        {{100, 5000, 50000, 67, 0}, {200, 5000, 50000, 67, 0}, 1, 600, "but not where it does so at the runtime, too"},
        {{100, 5000, 5000000, 203, 0}, {200, 5000, 0, 0, 0}, 1, 600, "nor because of another program's time slice"},
        {{100, 0, 40000, 5, 20}, {200, 0, 0, 0, 0}, 1, 600, "nor because of what the program does as it begins"},
    };
    int wrong = 0;
    for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++) {
        uint32_t barriers;
        int verdict = hold(i + 2, cases[i].ours, cases[i].theirs, &barriers);
        if (verdict == cases[i].verdict && barriers <= cases[i].most) continue;
        fprintf(stderr, "%s: verdict %d after %u barriers\n", cases[i].what, verdict, barriers);
        wrong = 1;
    }
    return wrong;
}
