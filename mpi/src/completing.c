/*
 * Waiting, testing, starting and freeing: the functions that programs call with requests, some of which may be lineweave's (requests.c).
 *
 * Each function first carries lineweave's calls on. The host then sees its own requests of an array and those of calls that are made
 * once; persistent requests of lineweave are null to it, and added here to those that it found complete.
 */
#include "started.h"
#include "trace.h"

#include <sched.h>
#include <stdlib.h>

#define NEXT(name) \
    static __typeof__(&MPI_##name) next; \
    if (LWM_UNLIKELY(!next)) *(void **)&next = lwm_next(#name);
/* True if no call of lineweave's is known, and none of the host's that is watched: everything is the host's. (Relaxed: a thread with a
 * request made it, or got it from the thread that did.) */
#define NONE \
    LWM_LIKELY((__atomic_load_n(&lwm_started_live, __ATOMIC_RELAXED) | __atomic_load_n(&lwm_watches, __ATOMIC_RELAXED) | \
                __atomic_load_n(&lwm_trace_pending, __ATOMIC_RELAXED)) == 0)
/* Notes the watched requests of an array: ranks may agree to form a team when they are complete, and they may be recorded. */
#define WATCH(count, array) \
    struct lwm_watch watch; \
    lwm_watch(&watch, count, array); \
    if (lwm_trace_waits()) lwm_trace_watch(count, array);

/* Looks which of them are complete; returns the result. */
static int watched(const struct lwm_watch *watch, int count, const MPI_Request *array, int result)
{
    if (lwm_trace_waits()) lwm_trace_watched(count, array);
    return lwm_watched(watch, array, result);
}

int MPI_Testany(int count, MPI_Request array[], int *index, int *flag, MPI_Status *status);
int MPI_Testsome(int count, MPI_Request array[], int *many, int which[], MPI_Status *statuses);

/* Returns the persistent call of lineweave's that a request stands for. */
static struct lwm_started *again(MPI_Request request)
{
    struct lwm_started *s = lwm_started_find(request);
    return s && s->again ? s : NULL;
}

/* Fills the status that MPI defines for a request without a message. */
static void say_nothing(MPI_Status *status)
{
    if (status == LWM_STATUS_IGNORE) return;
    lwm_host.Status_set_elements(status, lwm_host.byte, 0);
    lwm_host.Status_set_cancelled(status, 0);
    status->MPI_SOURCE = LWM_ANY_SOURCE;
    status->MPI_TAG = LWM_ANY_TAG;
    status->MPI_ERROR = 0;
}

/* Makes a persistent call that is over ready to be started again; returns its result. */
static int rest(struct lwm_started *s)
{
    s->active = false;
    return s->result;
}

/* An array in the form that the host may see. */
enum { SMALL = 32 };
struct view {
    MPI_Request *seen;        /* the array itself when nothing is hidden */
    int under_way, hidden;    /* calls of lineweave's that are not over; persistent ones */
    MPI_Request small[SMALL];
    void *large;
};

/* Looks at all requests, and carries them on (`polls`) or completes them. False without memory. */
static bool look(struct view *v, int count, MPI_Request *array, bool polls)
{
    v->seen = array;
    v->under_way = v->hidden = 0;
    v->large = NULL;
    for (int i = 0; i < count; i++) {
        struct lwm_started *s = lwm_started_find(array[i]);
        if (!s) continue;
        if (!polls) lwm_started_complete(s);
        else if (!lwm_started_poll(s)) v->under_way++;
        v->hidden += s->again;
    }
    if (v->hidden == 0) return true;
    v->seen = count <= SMALL ? v->small : (v->large = malloc(sizeof *array * (size_t)count));
    for (int i = 0; v->seen && i < count; i++) v->seen[i] = again(array[i]) ? lwm_host.no_request : array[i];
    return v->seen != NULL;
}

/* Takes over the host's changes to its requests; lineweave's persistent ones stay. */
static void settle(struct view *v, int count, MPI_Request *array)
{
    for (int i = 0; v->seen != array && i < count; i++) {
        if (!again(array[i])) array[i] = v->seen[i];
    }
    free(v->large);
}

/* Returns the first from `i` on of lineweave's persistent calls that is active and over; `count` if there is none. */
static int ready(const struct view *v, int i, int count, const MPI_Request *array)
{
    for (; v->hidden && i < count; i++) {
        struct lwm_started *s = again(array[i]);
        if (s && s->active && s->over) return i;
    }
    return count;
}

/* Makes all such calls ready to be started again. */
static int rest_all(const struct view *v, int count, const MPI_Request *array)
{
    int result = 0;
    for (int i = 0; (i = ready(v, i, count, array)) < count; i++) {
        int one = rest(again(array[i]));
        result = result ? result : one;
    }
    return result;
}

static int not_yet(int *flag)
{
    *flag = 0;
    lwm_progress(NULL);
    return 0;
}

/* Pauses between looks at calls that are not over. */
static void pause_between(unsigned *turns)
{
    lwm_progress(NULL);
    if (++*turns > 200) sched_yield();
}

int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    NEXT(Wait)
    if (NONE) return next(request, status);
    WATCH(1, request)
    struct lwm_started *s = lwm_started_find(*request);
    lwm_started_complete(s);
    if (!s || !s->again) return watched(&watch, 1, request, next(request, status));
    say_nothing(status);
    return s->active ? rest(s) : 0;
}

int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    NEXT(Test)
    if (NONE) return next(request, flag, status);
    WATCH(1, request)
    struct lwm_started *s = lwm_started_find(*request);
    if (!lwm_started_poll(s)) return not_yet(flag);
    if (!s || !s->again) return watched(&watch, 1, request, next(request, flag, status));
    *flag = 1;
    say_nothing(status);
    return s->active ? rest(s) : 0;
}

int MPI_Request_get_status(MPI_Request request, int *flag, MPI_Status *status)
{
    NEXT(Request_get_status)
    if (NONE) return next(request, flag, status);
    struct lwm_started *s = lwm_started_find(request);
    if (!lwm_started_poll(s)) return not_yet(flag);
    if (!s || !s->again) return next(request, flag, status);
    *flag = 1;
    say_nothing(status);
    return 0;
}

int MPI_Waitall(int count, MPI_Request array[], MPI_Status *statuses)
{
    NEXT(Waitall)
    if (NONE) return next(count, array, statuses);
    WATCH(count, array)
    struct view v;
    if (!look(&v, count, array, false)) return LWM_ERR_OTHER;
    int result = next(count, v.seen, statuses), ours = rest_all(&v, count, array);
    settle(&v, count, array);
    return watched(&watch, count, array, result ? result : ours);
}

int MPI_Testall(int count, MPI_Request array[], int *flag, MPI_Status *statuses)
{
    NEXT(Testall)
    if (NONE) return next(count, array, flag, statuses);
    WATCH(count, array)
    struct view v;
    if (!look(&v, count, array, true)) return LWM_ERR_OTHER;
    if (v.under_way) {
        free(v.large);
        return not_yet(flag);
    }
    int result = next(count, v.seen, flag, statuses), ours = *flag ? rest_all(&v, count, array) : 0;
    settle(&v, count, array);
    return watched(&watch, count, array, result ? result : ours);
}

int MPI_Testany(int count, MPI_Request array[], int *index, int *flag, MPI_Status *status)
{
    NEXT(Testany)
    if (NONE) return next(count, array, index, flag, status);
    WATCH(count, array)
    struct view v;
    if (!look(&v, count, array, true)) return LWM_ERR_OTHER;
    int result, own = ready(&v, 0, count, array);
    if (own < count) {
        *index = own;
        *flag = 1;
        say_nothing(status);
        result = rest(again(array[own]));
    } else {
        result = next(count, v.seen, index, flag, status);
        if (*flag && *index == LWM_UNDEFINED && v.under_way) *flag = 0;
    }
    settle(&v, count, array);
    return watched(&watch, count, array, result);
}

int MPI_Testsome(int count, MPI_Request array[], int *many, int which[], MPI_Status *statuses)
{
    NEXT(Testsome)
    if (NONE) return next(count, array, many, which, statuses);
    WATCH(count, array)
    struct view v;
    if (!look(&v, count, array, true)) return LWM_ERR_OTHER;
    int result = next(count, v.seen, many, which, statuses), first = ready(&v, 0, count, array);
    if (*many == LWM_UNDEFINED && (v.under_way || first < count)) *many = 0;
    for (int i = first; i < count; i = ready(&v, i + 1, count, array)) {
        if (statuses != LWM_STATUS_IGNORE) say_nothing(&statuses[*many]);
        which[(*many)++] = i;
        int one = rest(again(array[i]));
        result = result ? result : one;
    }
    settle(&v, count, array);
    return watched(&watch, count, array, result);
}

/* Returns whether the host may wait: none of lineweave's calls is in the array. */
static bool all_hosts(int count, const MPI_Request *array)
{
    for (int i = 0; i < count; i++) {
        if (lwm_started_find(array[i])) return false;
    }
    return true;
}

int MPI_Waitany(int count, MPI_Request array[], int *index, MPI_Status *status)
{
    NEXT(Waitany)
    WATCH(count, array)
    if (NONE || all_hosts(count, array)) return watched(&watch, count, array, next(count, array, index, status));
    for (unsigned turns = 0;;) {
        int flag = 0, result = MPI_Testany(count, array, index, &flag, status);
        if (result != 0 || flag) return result;
        pause_between(&turns);
    }
}

int MPI_Waitsome(int count, MPI_Request array[], int *many, int which[], MPI_Status *statuses)
{
    NEXT(Waitsome)
    WATCH(count, array)
    if (NONE || all_hosts(count, array)) return watched(&watch, count, array, next(count, array, many, which, statuses));
    for (unsigned turns = 0;;) {
        int result = MPI_Testsome(count, array, many, which, statuses);
        if (result != 0 || *many != 0) return result;
        pause_between(&turns);
    }
}

int MPI_Request_free(MPI_Request *request)
{
    NEXT(Request_free)
    if (NONE) return next(request);
    struct lwm_started *s = lwm_started_find(*request);
    lwm_started_complete(s);
    /* The host frees a generalized request when it is complete, and with it the record here. */
    if (s && s->again) lwm_host.Grequest_complete(*request);
    if (lwm_trace_waits()) lwm_trace_freed(*request);
    return next(request);
}

int MPI_Start(MPI_Request *request)
{
    NEXT(Start)
    if (NONE) return next(request);
    struct lwm_started *s = again(*request);
    if (!s) return next(request);
    return lwm_started_again(s) == LW_OK ? 0 : s->result;
}

int MPI_Startall(int count, MPI_Request array[])
{
    NEXT(Startall)
    if (NONE || all_hosts(count, array)) return next(count, array);
    for (int i = 0; i < count; i++) {
        int result = MPI_Start(&array[i]);
        if (result) return result;
    }
    return 0;
}

#ifdef LWM_LARGE_FORMS
/* MPI-4.1: returns the state of several requests, which stay as they are. */
int MPI_Request_get_status_all(int count, const MPI_Request array[], int *flag, MPI_Status *statuses)
{
    NEXT(Request_get_status_all)
    if (NONE) return next(count, array, flag, statuses);
    struct view v;
    if (!look(&v, count, (MPI_Request *)array, true)) return LWM_ERR_OTHER;
    int result = v.under_way ? not_yet(flag) : next(count, v.seen, flag, statuses);
    free(v.large);
    return result;
}

int MPI_Request_get_status_any(int count, const MPI_Request array[], int *index, int *flag, MPI_Status *status)
{
    NEXT(Request_get_status_any)
    if (NONE) return next(count, array, index, flag, status);
    struct view v;
    if (!look(&v, count, (MPI_Request *)array, true)) return LWM_ERR_OTHER;
    int result = 0, own = ready(&v, 0, count, array);
    if (own < count) {
        *index = own;
        *flag = 1;
        say_nothing(status);
    } else {
        result = next(count, v.seen, index, flag, status);
        if (*flag && *index == LWM_UNDEFINED && v.under_way) *flag = 0;
    }
    free(v.large);
    return result;
}

int MPI_Request_get_status_some(int count, const MPI_Request array[], int *many, int which[], MPI_Status *statuses)
{
    NEXT(Request_get_status_some)
    if (NONE) return next(count, array, many, which, statuses);
    struct view v;
    if (!look(&v, count, (MPI_Request *)array, true)) return LWM_ERR_OTHER;
    int result = next(count, v.seen, many, which, statuses), first = ready(&v, 0, count, array);
    if (*many == LWM_UNDEFINED && (v.under_way || first < count)) *many = 0;
    for (int i = first; i < count; i = ready(&v, i + 1, count, array)) {
        if (statuses != LWM_STATUS_IGNORE) say_nothing(&statuses[*many]);
        which[(*many)++] = i;
    }
    free(v.large);
    return result;
}
#endif
