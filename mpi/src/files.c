/*
 * Files that the library writes for a person: made under another name beside the place and renamed, so that nobody reads half of one, and a link
 * that somebody put there is replaced and not followed. Pipes and devices are written directly.
 */
#define _GNU_SOURCE
#include "files.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

FILE *lwm_file_make(const char *path, char **made)
{
    struct stat there;
    *made = NULL;
    if (lstat(path, &there) == 0 && !S_ISREG(there.st_mode) && !S_ISLNK(there.st_mode)) return fopen(path, "we");
    if (asprintf(made, "%s.XXXXXX", path) < 0) *made = NULL;
    if (!*made) return NULL;
    int file = mkstemp(*made);
    mode_t mask = umask(0);
    umask(mask);
    FILE *to = file >= 0 && fchmod(file, 0666 & ~mask) == 0 ? fdopen(file, "w") : NULL;
    if (to) return to;
    if (file >= 0) close(file);
    free(*made);
    *made = NULL;
    return NULL;
}

bool lwm_file_keep(FILE *file, const char *path, char *made, bool whole)
{
    bool kept = fclose(file) == 0 && whole;
    if (made && kept) kept = rename(made, path) == 0;
    if (made && !kept) unlink(made);
    free(made);
    return kept;
}
