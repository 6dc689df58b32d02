/*
 * Requests of calls that lineweave carries out, among those of the host.
 *
 * 1. Each call has a request of the host, made here, by which programs know it: they may copy it, turn it into Fortran's, put it
 *    in arrays with others, and pass it to functions that are not defined here.
 * 2. It is a generalized request. When a call that is made once is over, its data are unpacked and its request is completed; then
 *    the host does the rest, for it and all others in the array.
 * 3. The host cannot start a persistent call again, so it does not see their requests in an array, which complete here
 *    (completing.c). (A send to nobody would be a persistent request of the host; MPICH and Intel MPI do not count such ones as
 *    others, and with Intel MPI later collectives on MPI_COMM_SELF did nothing.)
 *
 * If a rank waits in the host for something else, lineweave's helper thread carries its calls on.
 */
#include "started.h"
#include "trace.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS 256

static struct lwm_started *slots[SLOTS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
uint64_t lwm_started_live;

static size_t place(MPI_Request handle) { return (size_t)((uint64_t)LWM_KEY(handle) * 0x9e3779b97f4a7c15u >> 56); }

struct lwm_started *lwm_started_find(MPI_Request handle)
{
    if (handle == lwm_host.no_request) return NULL;
    pthread_mutex_lock(&lock);
    struct lwm_started *found = slots[place(handle)];
    while (found && found->handle != handle) found = found->next;
    pthread_mutex_unlock(&lock);
    return found;
}

static void forget(struct lwm_started *s)
{
    pthread_mutex_lock(&lock);
    struct lwm_started **at = &slots[place(s->handle)];
    while (*at && *at != s) at = &(*at)->next;
    if (*at) *at = s->next;
    pthread_mutex_unlock(&lock);
    /* Relaxed: who has a request of ours made it, or got it from who did. */
    __atomic_fetch_sub(&lwm_started_live, 1, __ATOMIC_RELAXED);
}

void lwm_started_free(struct lwm_started *s)
{
    if (!s) return;
    if (s->call) lw_request_free(&s->call);
    if (s->own) lw_comm_free(s->own);
    for (int i = 0; i < s->gives + s->takes; i++) {
        if (s->pieces[i].copied) lwm_host.Type_free(&s->pieces[i].type);
    }
    free(s->pieces);
    free(s->rooms[0]);
    free(s->rooms[1]);
    free(s->lengths);
    free(s);
}

/* ---- the host's side of a call that is started once ---- */

static int query(void *extra, MPI_Status *status)
{
    struct lwm_started *s = extra;
    lwm_host.Status_set_elements(status, lwm_host.byte, 0);
    lwm_host.Status_set_cancelled(status, 0);
    status->MPI_SOURCE = LWM_UNDEFINED;
    status->MPI_TAG = LWM_UNDEFINED;
    return s->result;
}

static int gone(void *extra)
{
    struct lwm_started *s = extra;
    forget(s);
    lwm_started_free(s);
    return 0;
}

static int no_cancel(void *extra, int complete)
{
    (void)extra, (void)complete;
    return 0;
}

/* Moves a call's pieces between the program's buffers and its rows. */
static bool pack(const struct lwm_started *s)
{
    bool fine = true;
    for (int i = 0; i < s->gives; i++) {
        const struct lwm_piece *p = &s->pieces[i];
        fine = fine && lwm_pack(p->at, p->count, p->type, &p->info, p->row, lwm_host.world);
    }
    return fine;
}

static bool unpack(const struct lwm_started *s)
{
    bool fine = true;
    for (int i = s->gives; i < s->gives + s->takes; i++) {
        const struct lwm_piece *p = &s->pieces[i];
        fine = fine && lwm_unpack(p->row, p->at, p->count, p->type, &p->info, lwm_host.world);
    }
    return fine;
}

lw_status lwm_started_begin(struct lwm_started *s)
{
    s->over = false;
    s->result = 0;
    return pack(s) ? LW_OK : LW_ERR_MEMORY;
}

/* Ends a call: its data are unpacked, and the host's request is completed. */
static void end(struct lwm_started *s, lw_status status)
{
    s->over = true;
    if (status == LW_OK && !unpack(s)) status = LW_ERR_MEMORY;
    s->result = lwm_ended(s->kind, s->bytes, s->start_ns, s->comm->handle == s->handle_of_comm ? s->comm : NULL, status);
    if (!s->again) lwm_host.Grequest_complete(s->handle);
}

void lwm_started_complete(struct lwm_started *s)
{
    if (lwm_under_way(s)) end(s, s->call ? lw_wait(&s->call) : LW_OK);
}

bool lwm_started_poll(struct lwm_started *s)
{
    if (!lwm_under_way(s)) return true;
    int done = 1;
    lw_status status = s->call ? lw_test(&s->call, &done) : LW_OK;
    if (status == LW_OK && !done) return false;
    end(s, status);
    return true;
}

bool lwm_started_add(struct lwm_started *s)
{
    int made = lwm_host.Grequest_start(query, gone, no_cancel, s, &s->handle);
    if (made != 0) return false;
    pthread_mutex_lock(&lock);
    s->next = slots[place(s->handle)];
    slots[place(s->handle)] = s;
    pthread_mutex_unlock(&lock);
    __atomic_fetch_add(&lwm_started_live, 1, __ATOMIC_RELAXED);
    return true;
}

void lwm_started_is_on(struct lwm_started *s)
{
    s->active = true;
    if (!s->call) end(s, LW_OK);
}

void lwm_started_drop(struct lwm_started *s)
{
    MPI_Request request = s->handle;
    lwm_host.Grequest_complete(request);
    lwm_host.Request_free(&request);
}

void lwm_started_finish(const struct lwm_comm *comm)
{
    if (LWM_LIKELY(__atomic_load_n(&lwm_started_live, __ATOMIC_RELAXED) == 0)) return;
    for (int i = 0; i < SLOTS; i++) {
        struct lwm_started *s;
        do {
            pthread_mutex_lock(&lock);
            for (s = slots[i]; s && !(s->comm == comm && !s->again && lwm_under_way(s));) s = s->next;
            pthread_mutex_unlock(&lock);
            lwm_started_complete(s);
        } while (s);
    }
}

lw_status lwm_started_again(struct lwm_started *s)
{
    s->active = true;
    s->start_ns = lwm_tracing || lwm_is_timed(lwm_counts[s->kind][lwm_class(s->bytes)].taken) ? lwm_now_ns() : 0;
    lw_status status = lwm_started_begin(s);
    if (status == LW_OK && s->call) status = lw_start(s->call);
    if (status != LW_OK || !s->call) end(s, status);
    return status;
}
