/* The latest times of one kind of call, for medians: interruptions of milliseconds decide nothing (samples.c). */
#ifndef LWM_SAMPLES_H
#define LWM_SAMPLES_H

#include <stdbool.h>
#include <stdint.h>

enum { LWM_SAMPLES = 63 };
struct lwm_samples {
    uint32_t many;          /* values so far, of which the latest are kept */
    float value[LWM_SAMPLES];
};

/* A median, and the interval in which that of all calls lies with a probability of 95 %. */
struct lwm_median {
    double value, low, high;
};

/* Keeps a value, from any thread. */
void lwm_sample(struct lwm_samples *samples, double value);
/* Returns whether there are at least so many values, and their median. */
bool lwm_median(const struct lwm_samples *samples, uint32_t least, struct lwm_median *median);

#endif
