/*
 * A record of the nonblocking calls that the host carries out, for `lineweave run --trace` (trace.c).
 *
 * 1. When such a call was started, its request is noted with the beginning of its record.
 * 2. A function that waits or tests looks before it for requests of its array that are noted, and after it for those of them that the host has set to
 *    MPI_REQUEST_NULL: these calls are over.
 *
 * With more than PENDING of them not over, later ones are not recorded. Persistent calls of the host's are not recorded either.
 */
#include "trace.h"

#include <pthread.h>

enum { PENDING = 1024 };
static struct pending {
    MPI_Request request;
    const MPI_Request *at; /* its place in the array that is waited for; null before that */
    struct lwm_traced call;
    bool used;
} pending[PENDING];
/* One more than the number of the last that is used. */
static int end;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

uint64_t lwm_trace_pending;

void lwm_trace_begun(const struct lwm_traced *call, MPI_Request request)
{
    pthread_mutex_lock(&lock);
    int i = 0;
    while (i < end && pending[i].used) i++;
    if (i < PENDING) {
        pending[i] = (struct pending){request, NULL, *call, true};
        if (i == end) end++;
        __atomic_fetch_add(&lwm_trace_pending, 1, __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&lock);
}

static void forget(int i)
{
    pending[i].used = false;
    while (end > 0 && !pending[end - 1].used) end--;
    __atomic_fetch_sub(&lwm_trace_pending, 1, __ATOMIC_RELAXED);
}

void lwm_trace_watch(int count, const MPI_Request *array)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < end; i++) {
        for (int at = 0; pending[i].used && at < count; at++) {
            if (array[at] == pending[i].request) pending[i].at = &array[at];
        }
    }
    pthread_mutex_unlock(&lock);
}

void lwm_trace_watched(int count, const MPI_Request *array)
{
    uint64_t end_ns = lwm_now_ns();
    pthread_mutex_lock(&lock);
    for (int i = end - 1; i >= 0; i--) {
        struct pending *one = &pending[i];
        if (!one->used || one->at < array || one->at >= array + count || *one->at != lwm_host.no_request) continue;
        one->call.end_ns = end_ns;
        lwm_trace_keep(&one->call);
        forget(i);
    }
    pthread_mutex_unlock(&lock);
}

void lwm_trace_freed(MPI_Request request)
{
    pthread_mutex_lock(&lock);
    for (int i = end - 1; i >= 0; i--) {
        if (pending[i].used && pending[i].request == request) forget(i);
    }
    pthread_mutex_unlock(&lock);
}
