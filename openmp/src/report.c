/*
 * The report, printed once when the program exits, in one line on standard error. A program that ends otherwise, by `_exit` or a
 * signal, prints nothing, and a forked child reports its own barriers.
 */
#include "lwo.h"
#include "../../mpi/src/speaks.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const reasons[] = {
#define R(name, text) text,
#include "reasons.def"
#undef R
};

static struct lwo_count total;

void lwo_add(const struct lwo_count *count)
{
    if (count->taken) __atomic_fetch_add(&total.taken, count->taken, __ATOMIC_RELAXED);
    for (int i = 0; i < LWO_REASONS; i++) {
        if (count->passed[i]) __atomic_fetch_add(&total.passed[i], count->passed[i], __ATOMIC_RELAXED);
    }
}

void lwo_add_passed(enum lwo_reason reason) { __atomic_fetch_add(&total.passed[reason], 1, __ATOMIC_RELAXED); }

void lwo_say(const char *format, ...)
{
    if (!lwm_speaks()) return;
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "lineweave: %s\n", text);
}

static void append(char *text, size_t room, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void append(char *text, size_t room, const char *format, ...)
{
    size_t used = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + used, room - used, format, arguments);
    va_end(arguments);
}

/* Prints the reasons, and the sizes that were compared, as many as fit a readable line. */
static void report(void) __attribute__((destructor));
static void report(void)
{
    if (!lwo_active) return;
    const struct lwo_count *unfinished = lwo_unfinished();
    if (unfinished) lwo_add(unfinished);
    uint64_t passed = 0;
    char text[400] = "";
    for (int i = 0; i < LWO_REASONS; i++) {
        passed += total.passed[i];
        if (total.passed[i]) append(text, sizeof text, "; %llu passed on: %s", (unsigned long long)total.passed[i], reasons[i]);
    }
    if (total.taken + passed == 0) return;
    bool ours;
    double ours_us, theirs_us;
    for (int size = 0, shown = 0; shown < 3 && (size = lwo_contest_next(size, &ours, &ours_us, &theirs_us)) > 0; shown++) {
        append(text, sizeof text, "; %d threads %.2f us, %.2f us at the host", size, ours_us, theirs_us);
    }
    lwo_say("%llu of %llu OpenMP barriers taken over from %s%s", (unsigned long long)total.taken, (unsigned long long)(total.taken + passed),
            lwo_host_title, text);
}

static void forget(void) { total = (struct lwo_count){0}; }

void lwo_report_open(void) { pthread_atfork(NULL, NULL, forget); }
