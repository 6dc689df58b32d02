/*
 * The report at the end: a table on standard error, and lines of JSON where a file was named.
 *
 * Ranks add up their counts by the host, in MPI_Finalize, if all of them were in a collective call; otherwise rank 0 reports its own. A program
 * that never reaches MPI_Finalize gets no report.
 */
#include "board.h"
#include "files.h"
#include "presence.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

const char *const lwm_kind_names[LWM_KINDS] = {
#define K(name, text) text,
#include "kinds.def"
#undef K
};
const char *const lwm_reason_names[LWM_REASONS] = {
#define R(name, text) text,
#include "reasons.def"
#undef R
};
static const char *const classes[LWM_CLASSES] = {"0 B", "to 64 B", "to 1 KiB", "to 16 KiB", "to 256 KiB", "to 4 MiB", "more"};
static const long long limits[LWM_CLASSES] = {0, 64, 1 << 10, 16 << 10, 256 << 10, 4 << 20, -1};

static double per(uint64_t sum, uint64_t n) { return n ? (double)sum / (double)n : 0; }

/* Returns the time of all calls, estimated from those that were timed. */
static double total_ms(uint64_t ns, uint64_t timed, uint64_t calls) { return per(ns, timed) * (double)calls / 1e6; }

/* Gains of fewer pairs of turns say nothing: the median of all calls lies between the least and the greatest of 6 with a probability of 97 %. */
enum { GAINS = 6 };

/* Fills in the medians of this rank's calls, and what it saved: the median gain, for each call that was taken over. */
static void sum_up(struct lwm_count *count, const struct lwm_times *times)
{
    struct lwm_median median;
    /* Times of calls that were not made are in memory that was never touched. */
    if (count->taken_timed + count->passed_timed == 0) return;
    if (lwm_median(&times->ours, 1, &median)) {
        count->sums.ours = 1;
        count->sums.ours_ps = (uint64_t)(1e3 * median.value);
    }
    if (lwm_median(&times->theirs, 1, &median)) {
        count->sums.theirs = 1;
        count->sums.theirs_ps = (uint64_t)(1e3 * median.value);
    }
    if (count->taken > 0 && lwm_median(&times->gains, GAINS, &median)) {
        double calls = (double)count->taken;
        count->sums.ranks = 1;
        count->sums.saved_ns = (int64_t)(calls * median.value);
        count->sums.low_ns = (int64_t)(calls * median.low);
        count->sums.high_ns = (int64_t)(calls * median.high);
    }
}

/* Time that calls saved, and its distances from the ends of its interval, squared. */
struct estimate {
    double ms, below2, above2;
    bool known;
};

/* Adds calls of another kind or size, whose errors have nothing to do with the others'. */
static void add_saved(struct estimate *sum, const struct lwm_count *count)
{
    if (count->sums.ranks == 0) return;
    double ms = (double)count->sums.saved_ns / 1e6, below = ms - (double)count->sums.low_ns / 1e6, above = (double)count->sums.high_ns / 1e6 - ms;
    *sum = (struct estimate){sum->ms + ms, sum->below2 + below * below, sum->above2 + above * above, true};
}

/* Prints an interval, within the time of the job, or the reason why there is none. */
static void show_saved(struct estimate sum, int ranks)
{
    double job_ms = (double)(lwm_now_ns() - lwm_began_ns) / 1e6, from = (sum.ms - sqrt(sum.below2)) / ranks, to = (sum.ms + sqrt(sum.above2)) / ranks;
    if (!sum.known || (from < 0 && to > 0)) {
        fprintf(stderr, "  time saved: not known, %s\n", sum.known ? "as the host's times scattered" : "as few calls were compared with the host");
        return;
    }
    from = fmax(fmin(from, job_ms), -job_ms), to = fmax(fmin(to, job_ms), -job_ms);
    bool seconds = fabs(to) >= 10000;
    fprintf(stderr, "  estimated time saved: %.3g to %.3g %s a rank, by comparing with the host in this run\n", from / (seconds ? 1000 : 1),
            to / (seconds ? 1000 : 1), seconds ? "s" : "ms");
}

/* Prints the table of so many ranks: 1 where they never met. */
static void show(const struct lwm_count *counts, const long long *setup, int ranks)
{
    uint64_t taken = 0, passed = 0, why[LWM_REASONS] = {0};
    struct estimate sum = {0};
    for (int i = 0; i < LWM_KINDS * LWM_CLASSES; i++) {
        taken += counts[i].taken;
        passed += counts[i].passed;
        add_saved(&sum, &counts[i]);
        for (int r = 0; r < LWM_REASONS; r++) why[r] += counts[i].why[r];
    }
    unsigned long long ours = taken, calls = taken + passed;
    bool first;
    int there = lwm_presence_count(&first);
    if (ranks < lwm_world_size && there == lwm_world_size) {
        lwm_say("0 of %llu collective calls of rank %d taken over from %s: none is known to have had all ranks", calls, lwm_world_rank, lwm_host_title);
    } else if (ranks < lwm_world_size) {
        lwm_say("0 of %llu collective calls of rank %d taken over from %s: not all ranks have this lineweave: %d of %d%s%s", calls, lwm_world_rank,
                lwm_host_title, there > 0 ? there : 1, lwm_world_size, there > 0 ? " on this node" : ", which cannot find the others", lwm_board_trouble());
    } else {
        lwm_say("%llu of %llu collective calls of %d ranks taken over from %s", ours, calls, ranks, lwm_host_title);
    }
    if (taken + passed == 0) return;
    /* 80 columns. */
    fprintf(stderr, "  %-20s %-10s %10s %9s %7s %9s %7s\n", "collective", "bytes", "taken over", "passed on", "MiB", "median us", "host us");
    for (int k = 0; k < LWM_KINDS; k++) {
        for (int c = 0; c < LWM_CLASSES; c++) {
            const struct lwm_count *n = &counts[k * LWM_CLASSES + c];
            if (n->taken + n->passed == 0) continue;
            char ours[24] = "-", theirs[24] = "-";
            if (n->sums.ours) snprintf(ours, sizeof ours, "%.2f", per(n->sums.ours_ps, n->sums.ours) / 1e6);
            if (n->sums.theirs) snprintf(theirs, sizeof theirs, "%.2f", per(n->sums.theirs_ps, n->sums.theirs) / 1e6);
            fprintf(stderr, "  %-20s %-10s %10llu %9llu %7.1f %9s %7s\n", lwm_kind_names[k], classes[c], (unsigned long long)n->taken,
                    (unsigned long long)n->passed, (double)n->taken_bytes / (1 << 20), ours, theirs);
        }
    }
    for (int r = 1; r < LWM_REASONS; r++) {
        if (why[r]) fprintf(stderr, "  %llu passed on: %s\n", (unsigned long long)why[r], lwm_reason_names[r]);
    }
    if (setup[LWM_TEAMS] > 0) {
        fprintf(stderr, "  setting up: %.1f communicators a rank got a team, %.1f of them by meeting, in %.1f ms within calls and %.1f ms beside; %.1f calls a rank waited for it\n",
                (double)setup[LWM_TEAMS] / ranks, (double)setup[LWM_MET] / ranks, (double)setup[LWM_TEAMS_NS] / 1e6 / ranks,
                (double)setup[LWM_BESIDE_NS] / 1e6 / ranks, (double)setup[LWM_WAITED] / ranks);
        fprintf(stderr, "  plans: %.1f a rank, chosen, proved and compiled in %.1f ms\n", (double)setup[LWM_PLANS] / ranks,
                (double)setup[LWM_PLANS_NS] / 1e6 / ranks);
        if (setup[LWM_THREADLESS] > 0) {
            fprintf(stderr, "  threads: %lld of %d ranks may start none: their teams form and their plans are chosen within calls\n", setup[LWM_THREADLESS], ranks);
        }
        if (setup[LWM_RECALLED] > 0) {
            fprintf(stderr, "  contests: %.1f a rank ended at once, as their winner was known from an earlier run or communicator\n",
                    (double)setup[LWM_RECALLED] / ranks);
        }
    }
    if (taken > 0 && lwm_settings.race) show_saved(sum, ranks);
}

static void number_or_null(FILE *file, const char *name, bool known, double value)
{
    if (known) fprintf(file, "\"%s\":%.6f,", name, value);
    else fprintf(file, "\"%s\":null,", name);
}

static bool write_json(FILE *file, const struct lwm_count *counts, const long long *setup, int ranks)
{
    fprintf(file, "{\"schema\":1,\"kind\":\"mpi-job\",\"abi\":\"" LWM_ABI_NAME "\",\"mpi\":\"%s\",\"ranks\":%d,\"teams\":%lld,\"met\":%lld,"
            "\"teams_total_ms\":%.6f,\"beside_total_ms\":%.6f,\"waited\":%lld,\"threadless\":%lld,\"plans\":%lld,\"plans_total_ms\":%.6f,\"recalled\":%lld}\n", lwm_host_title, ranks, setup[LWM_TEAMS], setup[LWM_MET],
            (double)setup[LWM_TEAMS_NS] / 1e6, (double)setup[LWM_BESIDE_NS] / 1e6, setup[LWM_WAITED], setup[LWM_THREADLESS], setup[LWM_PLANS], (double)setup[LWM_PLANS_NS] / 1e6,
            setup[LWM_RECALLED]);
    for (int k = 0; k < LWM_KINDS; k++) {
        for (int c = 0; c < LWM_CLASSES; c++) {
            const struct lwm_count *n = &counts[k * LWM_CLASSES + c];
            if (n->taken + n->passed == 0) continue;
            fprintf(file, "{\"schema\":1,\"kind\":\"mpi-collective\",\"collective\":\"%s\",", lwm_kind_names[k]);
            if (limits[c] >= 0) fprintf(file, "\"at_most_bytes\":%lld,", limits[c]);
            else fprintf(file, "\"at_most_bytes\":null,");
            fprintf(file, "\"taken\":%llu,\"taken_bytes\":%llu,\"passed\":%llu,", (unsigned long long)n->taken,
                    (unsigned long long)n->taken_bytes, (unsigned long long)n->passed);
            fprintf(file, "\"taken_total_ms\":%.6f,\"passed_total_ms\":%.6f,", total_ms(n->taken_ns, n->taken_timed, n->taken),
                    total_ms(n->passed_ns, n->passed_timed, n->passed));
            number_or_null(file, "taken_median_us", n->sums.ours > 0, per(n->sums.ours_ps, n->sums.ours) / 1e6);
            number_or_null(file, "passed_median_us", n->sums.theirs > 0, per(n->sums.theirs_ps, n->sums.theirs) / 1e6);
            number_or_null(file, "saved_total_ms", n->sums.ranks > 0, (double)n->sums.saved_ns / 1e6);
            fprintf(file, "\"passed_because\":{");
            const char *comma = "";
            for (int r = 1; r < LWM_REASONS; r++) {
                if (!n->why[r]) continue;
                fprintf(file, "%s\"%s\":%llu", comma, lwm_reason_names[r], (unsigned long long)n->why[r]);
                comma = ",";
            }
            fprintf(file, "}}\n");
        }
    }
    return fflush(file) == 0 && !ferror(file);
}

void lwm_report(bool of_all)
{
    /* If rank 0 has no lineweave, the first rank that has it prints the report. */
    bool first;
    if (!of_all) lwm_presence_count(&first);
    if (!of_all && !first && lwm_world_rank != 0) return;
    /* No memory is requested: at the end of a program that takes long if the program has freed many small pieces. */
    static struct lwm_count sums[LWM_KINDS][LWM_CLASSES];
    long long mine[LWM_KINDS + LWM_SETUP] = {0}, all[LWM_KINDS + LWM_SETUP] = {0};
    enum { ROW = LWM_CLASSES * (sizeof(struct lwm_count) / sizeof(uint64_t)), PIECE = 64 };
    for (int k = 0; k < LWM_KINDS; k++) {
        for (int c = 0; c < LWM_CLASSES; c++) sum_up(&lwm_counts[k][c], &lwm_times[k][c]);
        const uint64_t *row = (const uint64_t *)lwm_counts[k];
        for (int i = 0; i < ROW; i++) mine[k] = mine[k] || row[i];
    }
    for (int i = 0; i < LWM_SETUP; i++) mine[LWM_KINDS + i] = (long long)lwm_setup[i];
    /* The messages are short: for longer ones MPICH reads other processes' memory, which a container may forbid. */
    int failed = of_all && lwm_host.Allreduce(mine, all, LWM_KINDS + LWM_SETUP, lwm_host.long_long, lwm_host.sum, lwm_host.world) != 0;
    for (int k = 0; k < LWM_KINDS; k++) {
        for (int at = 0; all[k] && at < ROW && !failed; at += PIECE) {
            int many = ROW - at < PIECE ? ROW - at : PIECE;
            const uint64_t *from = (const uint64_t *)lwm_counts[k] + at;
            failed = lwm_host.Reduce(from, (uint64_t *)sums[k] + at, many, lwm_host.long_long, lwm_host.sum, 0, lwm_host.world);
        }
    }
    if (failed || (of_all && lwm_world_rank != 0)) return;
    const struct lwm_count *counts = of_all ? sums[0] : lwm_counts[0];
    int ranks = of_all ? lwm_world_size : 1;
    if (!lwm_settings.quiet) show(counts, all + LWM_KINDS, ranks);
    if (!of_all && lwm_settings.link) lwm_say("%s is not written: no collective call is known to have had all ranks", lwm_settings.link);
    if (!lwm_settings.report) return;
    char *made;
    FILE *file = lwm_file_make(lwm_settings.report, &made);
    bool written = file && lwm_file_keep(file, lwm_settings.report, made, write_json(file, counts, all + LWM_KINDS, ranks));
    if (!written) fprintf(stderr, "lineweave: %s: the report cannot be written: %s\n", lwm_settings.report, strerror(errno));
}
