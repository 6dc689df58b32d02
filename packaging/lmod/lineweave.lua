-- Lmod's module of one installed lineweave. `make install` fills in prefix and version, and puts it down as
-- share/modulefiles/lineweave/VERSION.lua.
local version = "@VERSION@"
local root = "@PREFIX@"

help([[
lineweave makes collective operations (barrier, broadcast, allreduce and the others of MPI) fast among the threads or
processes of one machine.

    lineweave tune                       measures a kind of node, once
    mpirun -n 8 lineweave run -- ./app   runs an unchanged MPI program
    pkg-config --cflags --libs lineweave says how a C program is built

LINEWEAVE_ROOT is where it is installed. `man lineweave` says the rest.
]])

whatis("Name: lineweave")
whatis("Version: " .. version)
whatis("Category: library, runtime")
whatis("Description: Collective operations among the threads or processes of one machine")
whatis("URL: https://github.com/lineweave/lineweave")
whatis("Keywords: MPI, OpenMP, collectives, allreduce, barrier")

-- One version at a time.
family("lineweave")

setenv("LINEWEAVE_ROOT", root)
prepend_path("PATH", pathJoin(root, "bin"))
prepend_path("MANPATH", pathJoin(root, "share/man"))
-- The empty last entry keeps the system's pages.
append_path("MANPATH", "")
prepend_path("PKG_CONFIG_PATH", pathJoin(root, "@LIBDIR@/pkgconfig"))
prepend_path("CMAKE_PREFIX_PATH", root)
prepend_path("LD_LIBRARY_PATH", pathJoin(root, "@LIBDIR@")) -- left out where the loader looks there by itself
