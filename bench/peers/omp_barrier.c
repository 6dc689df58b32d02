/* The OpenMP barrier inside one parallel region. The same object file is linked once with GNU libgomp and once
 * with LLVM libomp, which exports libgomp's entry points; what really ran is asked of the dynamic linker. */
#include "peer.h"

#include <dlfcn.h>
#include <omp.h>

static void batch(void *state, int rank, long count) {
    (void)state;
    (void)rank;
    for (long i = 0; i < count; i++) {
#pragma omp barrier
    }
}

int main(int argc, char **argv) {
    struct peer_options options = peer_arguments(argc, argv);
    peer_threads_only(&options, argv[0]);
    peer_restart(&options, argv);
    struct peer_team *team = peer_team_new(&options);
    int threads = 0;
    omp_set_dynamic(0);
#pragma omp parallel num_threads(options.ranks)
    {
#pragma omp single
        threads = omp_get_num_threads();
        if (threads == options.ranks) peer_measure(&options, team, batch, NULL, omp_get_thread_num());
    }
    if (threads != options.ranks) {
        fprintf(stderr, "%s: asked for %d threads, the runtime gave %d\n", argv[0], options.ranks, threads);
        return 2;
    }
    Dl_info info;
    const char *runtime = "unknown";
    if (dladdr((void *)(uintptr_t)omp_get_num_threads, &info) && info.dli_fname) {
        runtime = strrchr(info.dli_fname, '/') ? strrchr(info.dli_fname, '/') + 1 : info.dli_fname;
    }
    const char *subject = strncmp(runtime, "libomp", 6) == 0 ? "libomp" : "libgomp";
    /* The settings are in the environment; whoever set them names them. */
    peer_print(&options, team, subject, strcmp(options.variant, "all") == 0 ? "environment" : options.variant,
               runtime);
    return 0;
}
