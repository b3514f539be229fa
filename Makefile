# The front door. `make` lists what there is; everything lands in build/ and in a per-user cache.
JOBS ?= $(shell nproc)
CTEST_ARGS ?=
PREFIX ?= $(HOME)/.local

.PHONY: help setup build install demo test test-long test-slurm test-crash check bench wheel clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup:  ## install what is missing: system packages, LibTorch (TEARLESS_TORCH=/path uses an installed torch)
	@tools/setup.sh

build: setup  ## build the two programs: build/bin/tearless and build/bin/tearless-engine
	@tools/configure.sh --preset release --log-level=WARNING >/dev/null
	@cmake --build build --target programs --parallel $(JOBS)

install: build  ## link the programs into PREFIX (~/.local), with a man page and completion for bash, zsh and fish
	@mkdir -p $(PREFIX)/bin $(addprefix $(PREFIX)/share/,man/man1 bash-completion/completions zsh/site-functions fish/vendor_completions.d)
	ln -sf $(CURDIR)/build/bin/tearless $(CURDIR)/build/bin/tearless-engine $(PREFIX)/bin/
	build/bin/tearless manual > $(PREFIX)/share/man/man1/tearless.1
	build/bin/tearless completion bash > $(PREFIX)/share/bash-completion/completions/tearless
	build/bin/tearless completion zsh > $(PREFIX)/share/zsh/site-functions/_tearless
	build/bin/tearless completion fish > $(PREFIX)/share/fish/vendor_completions.d/tearless.fish

demo: build  ## from nothing to a table: train grids/demo.toml and print its table
	build/bin/tearless run grids/demo.toml
	build/bin/tearless table grids/demo.toml
	@echo "Next: change an axis in grids/demo.toml and run 'make demo' again: only the new cells are trained."

test: setup  ## build and run every test but the long ones
	@tools/configure.sh --preset release --log-level=WARNING >/dev/null
	@cmake --build build --target programs tests --parallel $(JOBS)
	@tools/run_tests.py build $(CTEST_ARGS)

test-long:  ## build and run the tests that take minutes
test-slurm:  ## sweeps through a Slurm on this machine, disturbed in every way (up to an hour; needs root)
test-long test-slurm: test-%: setup
	@tools/configure.sh --preset release --log-level=WARNING >/dev/null
	@cmake --build build --target programs tests-$* --parallel $(JOBS)
	@tools/run_tests.py build --label $* $(CTEST_ARGS)

test-crash: setup  ## kill, fail and cut the power at every call of whole sweeps, with both engines (hours)
	@tools/configure.sh --preset release --log-level=WARNING >/dev/null
	@cmake --build build --target programs tests --parallel $(JOBS)
	TEARLESS_CRASH=all $(if $(wildcard /dev/shm),TMPDIR=/dev/shm) build/bin/test_crash $(CRASH_ARGS)

check:  ## format, terms, spelling, lint, tables in TeX, pages in Chromium, include arrows (minutes; tools/check.sh --quick: seconds)
	@TEARLESS_SETUP=check tools/setup.sh
	@tools/check.sh

bench: setup  ## time training and search beside plain PyTorch, in turns (needs a Python torch)
	@tools/bench.sh $(JOBS)

wheel: build  ## make the files to publish in dist/: wheels for older systems, too, the source archive, checksums (minutes)
	tools/wheel.sh
	tools/wheel_engine.sh

clean:  ## remove what was built here (results/ and the per-user cache stay)
	rm -rf build build-dev build-asan build-harness build-lint build-mutate build-wheel dist
