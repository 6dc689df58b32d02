/* What the C tests hold: a condition that does not ends the program with its place and lineweave's last error. */
#ifndef EXPECT_H
#define EXPECT_H

#include "lineweave.h"
#include <stdio.h>
#include <stdlib.h>

#define EXPECT(what)                                                                         \
    do {                                                                                     \
        if (!(what)) {                                                                       \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #what, lw_last_error());  \
            exit(1);                                                                         \
        }                                                                                    \
    } while (0)

/* The same where `rank` and `size` say which of how many ranks it is. */
#define EXPECT_AT(what)                                                                      \
    do {                                                                                     \
        if (!(what)) {                                                                       \
            fprintf(stderr, "rank %d of %d: ", rank, size);                                  \
            EXPECT(what);                                                                    \
        }                                                                                    \
    } while (0)

#endif
