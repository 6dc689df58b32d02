# lineweave: `make run` measures this machine and shows what it gained, `make test` checks everything.
# Both install what they need first (scripts/setup), so that they work on a fresh Debian or Ubuntu.

.DEFAULT_GOAL := help
.PHONY: help run test test-core test-proofs test-runtime test-tools test-command test-c test-python test-mpi test-mpi-all soak sanitize deny test-report test-sdist test-torch mpi setup build install wheel sdist fmt lint doc docs bench gallery screenshots simgrid figures clean

PREFIX ?= /usr/local

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# These need no more than a C compiler beside Rust.
run build install mpi: SETUP = build

run: ## measure this machine, choose plans for it, run them: predicted beside measured
	@echo "make run: setup, then the command (lineweave-core, lineweave-lab, lineweave, lineweave-tune, lineweave-cli; some 2 minutes when nothing is built yet), then about 2 minutes of measuring"
	@scripts/setup $(SETUP)
	cargo build --locked --release --package lineweave-cli
	target/release/lineweave tune
	target/release/lineweave bench barrier bcast allreduce --quick --bytes 8,1MiB --team processes

test: setup ## every check, ending with "N passed, N failed"
	@echo "make test: some 15 minutes on 2 CPUs, and 7 more where nothing is built yet"
	scripts/test

test-core: setup ## of these: plans, algorithms, models, simulation, papers
	scripts/test core

test-proofs: setup ## of these: proofs of every algorithm for 1 to 64 ranks, and the mutants that the checker has to refute
	scripts/test proofs

test-runtime: setup ## of these: teams, calls, engine, measuring
	scripts/test runtime

test-tools: setup ## of these: under loom and valgrind, and the topology by hwloc
	scripts/test tools

test-command: setup ## of these: the command
	scripts/test command

test-c: setup ## of these: the C libraries
	scripts/test c

test-python: setup ## of these: the Python package
	scripts/test python

test-mpi: setup ## of these: the libraries for MPI, under the MPIs that are installed
	scripts/test mpi

SECONDS ?= 600
SEED ?=

soak: setup ## random calls under load for ten minutes: SECONDS=600, SEED= of a run to repeat
	LINEWEAVE_TEST_SOAK=$(SECONDS) $(if $(SEED),LINEWEAVE_TEST_SEED=$(SEED)) cargo test --locked -p lineweave --test soak -- --nocapture

sanitize: setup ## the tests of threads and processes under AddressSanitizer, and ThreadSanitizer where rust-src is installed
	scripts/sanitize

deny: ## licences, sources and known faults of the crates that lineweave needs (cargo-deny)
	scripts/deny

test-mpi-all: setup ## the libraries for MPI under Open MPI, MPICH and Intel MPI from PyPI (downloads them)
	scripts/test-mpi

mpi: setup ## build the libraries that `lineweave run` preloads
	mpi/build release
	openmp/build release

setup: ## install what is missing (as root), or say in one line what to install
	@scripts/setup $(SETUP)

build: setup ## build everything, optimised
	cargo build --locked --release --workspace

install: setup ## install command, C header and libraries below PREFIX (/usr/local); DESTDIR for packages
	@echo "make install: the command and the C libraries are built, some 3 minutes on 2 CPUs when nothing is built yet"
	cargo build --locked --release --package lineweave-cli --package lineweave-c
	mpi/build release
	openmp/build release
	scripts/install "$(PREFIX)" "$(DESTDIR)"

wheel: setup ## build the Python package, with the command in it: target/wheels
	@echo "make wheel: the command, the libraries and the extension are built for glibc 2.28 and later, some 7 minutes on 2 CPUs when nothing is built yet"
	scripts/wheel

fmt: ## format the sources
	cargo fmt --all

lint: setup ## clippy on all targets, warnings denied
	cargo clippy --locked --workspace --all-targets -- -D warnings

doc: setup ## the documentation of the crates, in target/doc
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps

docs: doc ## the documentation's site, with every link checked: target/docs/site/index.html (mkdocs comes from PyPI once)
	cargo build --locked --release --package lineweave-cli
	scripts/docs

bench: setup ## compare with the floor, pthread, libgomp, libomp and std::barrier in one run
	cargo build --locked --release --package lineweave-cli
	target/release/lineweave bench

gallery: setup ## a page of each described machine, in gallery/; GALLERY=NAME=PROFILE adds measured ones
	cargo build --locked --release --package lineweave-cli
	scripts/gallery target/release/lineweave $(GALLERY)

screenshots: ## the pictures of the docs (needs Chromium)
	cargo build --locked --release --package lineweave-cli
	scripts/screenshots target/release/lineweave

test-report: ## open reports in a headless Chromium: nothing on the console, no requests, everything drawn
	cargo build --locked --package lineweave-cli
	scripts/test-report target/debug/lineweave

sdist: setup ## the wheel, and the Python package's sources with all crates that they need: target/wheels
	scripts/wheel sdist

test-sdist: setup ## build the package from its sources in a fresh environment without a network
	scripts/test-sdist

test-torch: ## torch's own tests of a backend, on lineweave's; PYTHON= one that has lineweave, torch and expecttest
	$(or $(PYTHON),python3) scripts/test-torch

simgrid: ## compare simulated links with SimGrid (opt-in: needs python3-simgrid, or simgrid of PyPI)
	cargo build --locked --release --package lineweave-cli
	python3 scripts/simgrid target/release/lineweave

figures: ## draw the papers' figures anew, below papers/
	cargo build --locked --release --package lineweave-cli
	target/release/lineweave lab papers --figures papers

clean: ## remove what was built
	cargo clean
