# SPDX-License-Identifier: (Apache-2.0 OR MIT)

from spack.package import *


class Lineweave(MakefilePackage):
    """Collective operations among the threads or processes of one machine, by plans
    that are chosen for that machine. For Rust, C, Python, and unchanged MPI programs."""

    homepage = "https://github.com/lineweave/lineweave"
    git = "https://github.com/lineweave/lineweave.git"

    license("MIT OR Apache-2.0")

    version("main", branch="main")
    version("0.1.0", tag="v0.1.0")

    depends_on("c", type="build")
    depends_on("rust@1.89:", type="build")
    depends_on("gmake", type="build")

    conflicts("platform=darwin", msg="lineweave needs memfd and futexes of Linux")
    conflicts("platform=windows", msg="lineweave needs memfd and futexes of Linux")

    def build(self, spec, prefix):
        # `make install` builds what it installs; without `setup`, which looks for distribution packages.
        pass

    def install(self, spec, prefix):
        make("-o", "setup", "install", f"PREFIX={prefix}")

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def check_install(self):
        Executable(join_path(self.prefix.bin, "lineweave"))("verify", "bcast/binomial", "--max-ranks", "8")
