/*
 * What lineweave did, said once at the end: a table on standard error, and lines of JSON where a file was named.
 *
 * Ranks add up what they counted by the host, in MPI_Finalize, if all of them were in a collective call; else rank 0 says its own. A program that
 * never gets there gets no report.
 */
#include "lwm.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *const kinds[] = {
#define K(name, text) text,
#include "kinds.def"
#undef K
};
static const char *const reasons[] = {
#define R(name, text) text,
#include "reasons.def"
#undef R
};
static const char *const classes[LWM_CLASSES] = {"0 B", "to 64 B", "to 1 KiB", "to 16 KiB", "to 256 KiB", "to 4 MiB", "more"};
static const long long limits[LWM_CLASSES] = {0, 64, 1 << 10, 16 << 10, 256 << 10, 4 << 20, -1};

static double per(uint64_t sum, uint64_t n) { return n ? (double)sum / (double)n : 0; }

/* Over all calls, by those that were timed. */
static double total_ms(uint64_t ns, uint64_t timed, uint64_t calls) { return per(ns, timed) * (double)calls / 1e6; }

/* What calls would have cost more at the host, by the contests; nothing is known without one. */
static bool saved_ms(const struct lwm_count *count, double *ms)
{
    if (count->raced == 0) return false;
    *ms = (per(count->raced_theirs_ns, count->raced) - per(count->raced_ours_ns, count->raced)) * (double)count->taken / 1e6;
    return true;
}

/* Of so many ranks: 1 where they never met. */
static void show(const struct lwm_count *counts, const long long *setup, int ranks)
{
    uint64_t taken = 0, passed = 0, why[LWM_REASONS] = {0};
    double saved = 0;
    for (int i = 0; i < LWM_KINDS * LWM_CLASSES; i++) {
        double ms;
        taken += counts[i].taken;
        passed += counts[i].passed;
        if (saved_ms(&counts[i], &ms)) saved += ms;
        for (int r = 0; r < LWM_REASONS; r++) why[r] += counts[i].why[r];
    }
    unsigned long long ours = taken, calls = taken + passed;
    if (ranks < lwm_world_size) {
        lwm_say("0 of %llu collective calls of rank 0 taken over from %s: none is known to have had all ranks", calls, lwm_host_title);
    } else {
        lwm_say("%llu of %llu collective calls of %d ranks taken over from %s", ours, calls, ranks, lwm_host_title);
    }
    if (taken + passed == 0) return;
    fprintf(stderr, "  %-21s %-11s %12s %12s %12s %11s %11s\n", "collective", "bytes", "taken over", "passed on", "MiB", "us a call",
            "at the host");
    for (int k = 0; k < LWM_KINDS; k++) {
        for (int c = 0; c < LWM_CLASSES; c++) {
            const struct lwm_count *n = &counts[k * LWM_CLASSES + c];
            if (n->taken + n->passed == 0) continue;
            char ours[24] = "-", theirs[24] = "-";
            if (n->taken_timed) snprintf(ours, sizeof ours, "%.2f", per(n->taken_ns, n->taken_timed) / 1e3);
            if (n->passed_timed) snprintf(theirs, sizeof theirs, "%.2f", per(n->passed_ns, n->passed_timed) / 1e3);
            fprintf(stderr, "  %-21s %-11s %12llu %12llu %12.1f %11s %11s\n", kinds[k], classes[c], (unsigned long long)n->taken,
                    (unsigned long long)n->passed, (double)n->taken_bytes / (1 << 20), ours, theirs);
        }
    }
    for (int r = 1; r < LWM_REASONS; r++) {
        if (why[r]) fprintf(stderr, "  %llu passed on: %s\n", (unsigned long long)why[r], reasons[r]);
    }
    if (setup[LWM_TEAMS] > 0) {
        fprintf(stderr, "  setting up: %.1f communicators a rank got a team, %.1f of them by meeting, in %.1f ms\n",
                (double)setup[LWM_TEAMS] / ranks, (double)setup[LWM_MET] / ranks, (double)setup[LWM_TEAMS_NS] / 1e6 / ranks);
        fprintf(stderr, "  plans: %.1f a rank, chosen, proved and compiled in %.1f ms\n", (double)setup[LWM_PLANS] / ranks,
                (double)setup[LWM_PLANS_NS] / 1e6 / ranks);
    }
    if (saved != 0) fprintf(stderr, "  estimated time saved: %.1f ms a rank, by comparing with the host in this run\n", saved / ranks);
}

static bool write_json(FILE *file, const struct lwm_count *counts, const long long *setup, int ranks)
{
    fprintf(file, "{\"schema\":1,\"kind\":\"mpi-job\",\"abi\":\"" LWM_ABI_NAME "\",\"mpi\":\"%s\",\"ranks\":%d,\"teams\":%lld,\"met\":%lld,"
            "\"teams_total_ms\":%.6f,\"plans\":%lld,\"plans_total_ms\":%.6f}\n", lwm_host_title, ranks, setup[LWM_TEAMS], setup[LWM_MET],
            (double)setup[LWM_TEAMS_NS] / 1e6, setup[LWM_PLANS], (double)setup[LWM_PLANS_NS] / 1e6);
    for (int k = 0; k < LWM_KINDS; k++) {
        for (int c = 0; c < LWM_CLASSES; c++) {
            const struct lwm_count *n = &counts[k * LWM_CLASSES + c];
            if (n->taken + n->passed == 0) continue;
            fprintf(file, "{\"schema\":1,\"kind\":\"mpi-collective\",\"collective\":\"%s\",", kinds[k]);
            if (limits[c] >= 0) fprintf(file, "\"at_most_bytes\":%lld,", limits[c]);
            else fprintf(file, "\"at_most_bytes\":null,");
            fprintf(file, "\"taken\":%llu,\"taken_bytes\":%llu,\"passed\":%llu,", (unsigned long long)n->taken,
                    (unsigned long long)n->taken_bytes, (unsigned long long)n->passed);
            fprintf(file, "\"taken_total_ms\":%.6f,\"passed_total_ms\":%.6f,", total_ms(n->taken_ns, n->taken_timed, n->taken),
                    total_ms(n->passed_ns, n->passed_timed, n->passed));
            double ms;
            if (saved_ms(n, &ms)) fprintf(file, "\"saved_total_ms\":%.6f,", ms);
            else fprintf(file, "\"saved_total_ms\":null,");
            fprintf(file, "\"passed_because\":{");
            const char *comma = "";
            for (int r = 1; r < LWM_REASONS; r++) {
                if (!n->why[r]) continue;
                fprintf(file, "%s\"%s\":%llu", comma, reasons[r], (unsigned long long)n->why[r]);
                comma = ",";
            }
            fprintf(file, "}}\n");
        }
    }
    return fflush(file) == 0 && !ferror(file);
}

void lwm_report(bool of_all)
{
    /* No memory is asked for: at the end of a program that may take its time, if it has freed many small pieces. */
    static struct lwm_count sums[LWM_KINDS][LWM_CLASSES];
    long long mine[LWM_KINDS + LWM_SETUP] = {0}, all[LWM_KINDS + LWM_SETUP] = {0};
    enum { ROW = LWM_CLASSES * (sizeof(struct lwm_count) / sizeof(uint64_t)), PIECE = 64 };
    for (int k = 0; k < LWM_KINDS; k++) {
        const uint64_t *row = (const uint64_t *)lwm_counts[k];
        for (int i = 0; i < ROW; i++) mine[k] = mine[k] || row[i];
    }
    for (int i = 0; i < LWM_SETUP; i++) mine[LWM_KINDS + i] = (long long)lwm_setup[i];
    /* In short messages: for longer ones MPICH reads other processes' memory, which a container may forbid. */
    int failed = of_all && lwm_host.Allreduce(mine, all, LWM_KINDS + LWM_SETUP, lwm_host.long_long, lwm_host.sum, lwm_host.world) != 0;
    for (int k = 0; k < LWM_KINDS; k++) {
        for (int at = 0; all[k] && at < ROW && !failed; at += PIECE) {
            int many = ROW - at < PIECE ? ROW - at : PIECE;
            const uint64_t *from = (const uint64_t *)lwm_counts[k] + at;
            failed = lwm_host.Reduce(from, (uint64_t *)sums[k] + at, many, lwm_host.long_long, lwm_host.sum, 0, lwm_host.world);
        }
    }
    if (failed || lwm_world_rank != 0) return;
    const struct lwm_count *counts = of_all ? sums[0] : lwm_counts[0];
    int ranks = of_all ? lwm_world_size : 1;
    if (!lwm_settings.quiet) show(counts, all + LWM_KINDS, ranks);
    if (!of_all && lwm_settings.link) lwm_say("%s is not written: no collective call is known to have had all ranks", lwm_settings.link);
    FILE *file = lwm_settings.report ? fopen(lwm_settings.report, "w") : NULL;
    bool written = !lwm_settings.report || (file && write_json(file, counts, all + LWM_KINDS, ranks));
    if (!written) fprintf(stderr, "lineweave: %s: the report cannot be written: %s\n", lwm_settings.report, strerror(errno));
    if (file) fclose(file);
}
