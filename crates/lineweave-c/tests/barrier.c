/* Threads, as many as the argument says, that count rounds: nobody may be a round ahead of anybody. */
#include "expect.h"
#include <stdatomic.h>

#define MOST 8
#define ROUNDS 500

static int ranks;
static lw_barrier_t barrier;
static atomic_int entered, serial;

static void *count(void *base) {
    for (int round = 1; round <= ROUNDS; round++) {
        atomic_fetch_add(&entered, 1);
        int status = lw_barrier_wait(&barrier);
        EXPECT(status == LW_OK || status == LW_BARRIER_SERIAL_THREAD);
        EXPECT(atomic_load(&entered) >= *(int *)base + ranks * round);
        if (status == LW_BARRIER_SERIAL_THREAD) atomic_fetch_add(&serial, 1);
        status = lw_barrier_wait(&barrier);
        EXPECT(status == LW_OK || status == LW_BARRIER_SERIAL_THREAD);
    }
    return NULL;
}

static void *place(void *number) {
    for (int round = 1; round <= ROUNDS; round++) {
        atomic_fetch_add(&entered, 1);
        EXPECT(lw_barrier_wait_at(&barrier, *(int *)number) == LW_OK);
        EXPECT(atomic_load(&entered) >= ranks * round);
    }
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t threads[MOST];
    ranks = argc > 1 ? atoi(argv[1]) : 0;
    EXPECT(ranks > 0 && ranks <= MOST);
    EXPECT(lw_barrier_init(&barrier, ranks) == LW_OK);
    /* Twice: the second threads take the places that the first gave back. */
    for (int time = 0; time < 2; time++) {
        int base = atomic_load(&entered);
        for (int i = 0; i < ranks; i++) EXPECT(pthread_create(&threads[i], NULL, count, &base) == 0);
        for (int i = 0; i < ranks; i++) pthread_join(threads[i], NULL);
        EXPECT(atomic_load(&serial) == (time + 1) * ROUNDS);
    }
    EXPECT(lw_barrier_destroy(&barrier) == LW_OK);

    atomic_store(&entered, 0);
    int numbers[MOST];
    EXPECT(lw_barrier_init(&barrier, ranks) == LW_OK);
    for (int i = 0; i < ranks; i++) {
        numbers[i] = i;
        EXPECT(pthread_create(&threads[i], NULL, place, &numbers[i]) == 0);
    }
    for (int i = 0; i < ranks; i++) pthread_join(threads[i], NULL);
    EXPECT(lw_barrier_destroy(&barrier) == LW_OK);
    return 0;
}
