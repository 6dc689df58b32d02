/* Threads of the library's own (helper.c). */
#ifndef LWM_HELPER_H
#define LWM_HELPER_H

#include <stdbool.h>
#include <stdint.h>

/* Starts a thread that runs a function and ends; false where the process may have none, which the table at the end says. */
bool lwm_helper_start(void (*run)(void *), void *with);
/* Returns how long calls have to take until it is worth it to have such threads work so long for later ones: as long, or many times as long where the
 * threads have no CPU but those on which the ranks of this node run. */
uint64_t lwm_helper_worth_ns(uint64_t work_ns);
/* Returns the processor time of the calling thread. */
uint64_t lwm_processor_ns(void);

#endif
