/*
 * Medians of the latest times of a call. Their interval is that of order statistics, which supposes nothing about how times are spread: of n values
 * the median of all lies between those sqrt(n) places below and above the middle.
 */
#include "samples.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void lwm_sample(struct lwm_samples *samples, double value)
{
    uint32_t at = __atomic_fetch_add(&samples->many, 1, __ATOMIC_RELAXED);
    __atomic_store(&samples->value[at % LWM_SAMPLES], &(float){(float)value}, __ATOMIC_RELAXED);
}

static int ascending(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

bool lwm_median(const struct lwm_samples *samples, uint32_t least, struct lwm_median *median)
{
    uint32_t many = samples->many;
    if (many < least || many == 0) return false;
    if (many > LWM_SAMPLES) many = LWM_SAMPLES;
    float sorted[LWM_SAMPLES];
    memcpy(sorted, samples->value, sizeof sorted);
    qsort(sorted, many, sizeof *sorted, ascending);
    double middle = (many - 1) / 2.0, apart = sqrt(many);
    uint32_t low = middle > apart ? (uint32_t)(middle - apart) : 0;
    *median = (struct lwm_median){
        .value = (sorted[(many - 1) / 2] + (double)sorted[many / 2]) / 2, .low = sorted[low], .high = sorted[many - 1 - low]};
    return true;
}
