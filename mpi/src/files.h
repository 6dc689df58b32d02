/* Files that the library writes for a person (files.c). */
#ifndef LWM_FILES_H
#define LWM_FILES_H

#include <stdbool.h>
#include <stdio.h>

/* Makes a file that gets its name when it is kept; `made` is what lwm_file_keep needs. Null, with errno, where it cannot be made. */
FILE *lwm_file_make(const char *path, char **made);
/* Closes the file, and gives it its name if it is whole; returns whether it is there now. */
bool lwm_file_keep(FILE *file, const char *path, char *made, bool whole);

#endif
