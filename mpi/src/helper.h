/* Threads of the library's own (helper.c). */
#ifndef LWM_HELPER_H
#define LWM_HELPER_H

#include <stdbool.h>

/* Starts a thread that runs a function and ends; false where the process may have none, which the table at the end says. */
bool lwm_helper_start(void (*run)(void *), void *with);

#endif
