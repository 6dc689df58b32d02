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

/* What a barrier takes, and what the program does after it. */
struct side {
    uint64_t barrier_ns, between_ns;
};

static int hold(int size, struct side ours, struct side theirs)
{
    struct lwo_contest *contest;
    lwo_verdict(size, false, &contest);
    for (uint32_t index = lwo_contest_begin(contest);; index++) {
        int over = lwo_contest_over(contest, index);
        if (over >= 0) return over;
        const struct side *side = lwo_contest_ours(index) ? &ours : &theirs;
        for (int place = size; place-- > 0;) lwo_contest_arrive(contest, place, index);
        now += side->barrier_ns;
        /* The first thread is the last to leave, so that the others have written. */
        for (int place = size; place-- > 0;) lwo_contest_leave(contest, place, index);
        now += side->between_ns;
    }
}

int main(void)
{
    static const struct {
        struct side ours, theirs;
        int verdict;
        const char *what;
    } cases[] = {
        {{100, 0}, {200, 0}, 1, "a barrier that takes less wins"},
        {{200, 0}, {100, 0}, 0, "a barrier that takes more loses"},
        {{100, 1000000}, {200, 1000000}, 1, "what the program does counts for both"},
        {{100, 1050000}, {200, 1000000}, 1, "as it varies by itself"},
        {{100, 5000}, {200, 1000}, 0, "a program that goes on later loses"},
    };
    int wrong = 0;
    for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++) {
        int verdict = hold(i + 2, cases[i].ours, cases[i].theirs);
        if (verdict == cases[i].verdict) continue;
        fprintf(stderr, "%s: verdict %d\n", cases[i].what, verdict);
        wrong = 1;
    }
    return wrong;
}
