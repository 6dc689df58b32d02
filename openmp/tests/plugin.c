/* A program that loads its OpenMP late: with PLUGIN the library, else the program, plugin LIBRARY. The library's function has a region of four threads
 * with 300 barriers, and checks that none left one early. */
#ifdef PLUGIN
int go(void);

int go(void)
{
    static int came[4];
    int wrong = 0;
#pragma omp parallel num_threads(4) reduction(+ : wrong)
    for (int i = 0; i < 150; i++) {
#pragma omp for
        for (int t = 0; t < 4; t++) came[t]++;
#pragma omp critical
        for (int t = 0; t < 4; t++) wrong += came[t] != i + 1;
#pragma omp barrier
    }
    return wrong;
}
#else
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!library) {
        fprintf(stderr, "plugin: %s\n", argc > 1 ? dlerror() : "expected LIBRARY");
        return 2;
    }
    int (*go)(void);
    *(void **)&go = dlsym(library, "go");
    return go() != 0;
}
#endif
