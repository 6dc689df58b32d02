/*
 * Who wins contests of long calls, by made-up times: calls.c by itself, without an MPI. Now and then something interrupts a call of either side for
 * milliseconds. Who is a quarter faster in calls that nothing interrupts is to win 19 contests of 20, and what is said to be saved is to be so.
 */
#include "../src/calls.c"
#include "../src/samples.c"

#include <stdio.h>

enum { CONTESTS = 2000, FAST_NS = 504000, SLOW_NS = 679000 };

struct lwm_host lwm_host;
struct lwm_settings lwm_settings = {.race = true};
_Atomic bool lwm_open, lwm_active;
bool lwm_threads, lwm_tracing;
int lwm_world_rank;

static uint64_t now = 1, state;
uint64_t lwm_now_ns(void) { return now; }
int lwm_agree_saw(struct lwm_comm *comm, int result) { return comm ? result : 0; }
int lwm_beside_saw(struct lwm_comm *comm, int which, int result) { return comm ? which : result; }
/* Plans are there. */
bool lwm_planning_came(struct lwm_call *call, struct lwm_race *race) { return call->comm && race; }

static uint64_t number(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 33;
}

/* One of four is interrupted; the others differ by a tenth. */
static uint64_t time_of(uint64_t ns) { return ns + number() % (ns / 10) + (number() % 4 == 0 ? 1000000 + number() % 8000000 : 0); }

/* Of one rank: the sum is what it gave. */
static int allreduce(const void *give, void *take, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    (void)type, (void)op, (void)comm;
    memcpy(take, give, sizeof(long long) * (size_t)count);
    return 0;
}

/* Whether lineweave has the call after a contest, and how many calls the contest had. */
static bool ours_wins(enum lwm_kind kind, size_t bytes, bool alike, uint64_t ours, uint64_t theirs, int *calls)
{
    static struct lwm_comm comm;
    memset(&comm, 0, sizeof comm);
    comm.size = 1;
    comm.way = LWM_TEAM;
    bool mine;
    for (*calls = 0;; ++*calls) {
        struct lwm_call call = {.comm = &comm, .kind = kind};
        mine = lwm_mine(&call, bytes, alike);
        if (!call.race) return mine;
        now += time_of(mine ? ours : theirs);
        if (mine) lwm_done(&call, LW_OK);
        else lwm_passed(&call, 0);
        now += 1000000;
    }
}

static int judge(const char *name, enum lwm_kind kind, bool alike, int most)
{
    int right[2] = {0}, calls = 0, longest = 0;
    for (uint64_t seed = 0; seed < CONTESTS; seed++) {
        for (int slow = 0; slow < 2; slow++) {
            state = seed << 20;
            right[slow] += ours_wins(kind, 1 << 20, alike, slow ? SLOW_NS : FAST_NS, slow ? FAST_NS : SLOW_NS, &calls) != slow;
            if (calls > longest) longest = calls;
        }
    }
    printf("%s: lineweave is faster and wins %d of %d, the MPI is and wins %d, after at most %d calls\n", name, right[0], CONTESTS, right[1], longest);
    return right[0] * 20 < CONTESTS * 19 || right[1] * 20 < CONTESTS * 19 || longest > most;
}

/* Whether the gain of a call lies within its interval 19 times of 20, and most medians are right to a fifth, after eight contests each. */
static int judge_gains(void)
{
    struct lwm_samples *gains = &lwm_times[LWM_ALLREDUCE][lwm_class(1 << 20)].gains;
    double gain = (SLOW_NS - FAST_NS) * 1.05;
    int inside = 0, near = 0, calls;
    for (uint64_t seed = 0; seed < CONTESTS; seed++) {
        struct lwm_median median;
        state = seed << 20;
        gains->many = 0;
        for (int i = 0; i < 8; i++) ours_wins(LWM_ALLREDUCE, 1 << 20, true, FAST_NS, SLOW_NS, &calls);
        if (!lwm_median(gains, 6, &median)) return 1;
        inside += median.low <= gain && gain <= median.high;
        near += median.value > 0.8 * gain && median.value < 1.2 * gain;
    }
    printf("gains of 8 contests: within the interval in %d of %d, near the median in %d\n", inside, CONTESTS, near);
    return inside * 20 < CONTESTS * 19 || near * 2 < CONTESTS;
}

int main(void)
{
    lwm_host.Allreduce = allreduce;
    int wrong = judge("alltoallw", LWM_ALLTOALLW, false, 18) + judge("alltoallv", LWM_ALLTOALLV, false, 18);
    return wrong + judge("allreduce of 1 MiB", LWM_ALLREDUCE, true, 16) + judge_gains();
}
