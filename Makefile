# SPDX-License-Identifier: Apache-2.0
# The face of the build. CMake does the work; `cmake --preset dev` and so on do as well.
.DEFAULT_GOAL := build
.NOTPARALLEL:
SHELL := /bin/bash

JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
CTEST := ctest --output-on-failure --no-tests=error
# The Python package too, where python3 has what it is built and tested with.
PYTHON_PACKAGE := $(shell python3 -c 'import nanobind, numpy, pytest' 2>/dev/null && echo -DKILN_PYTHON=ON)
# For `make test T='-L unit -R disk'`: more arguments to ctest.
T ?=

.PHONY: help setup build run test bench device-test device-bench format format-check tidy asan tsan fuzz release install package wheel test-wheel docs clean

help: ## what can be made
	@sed -nE 's/^([a-z-]+):[^#]*## (.*)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22

setup: ## packages and CUDA headers; every other target does this by itself
	@scripts/setup

build: setup ## build/bin/kiln, the libraries and the tests
	@cmake --preset dev --log-level=WARNING -DKILN_ONLY_ARCHS= $(PYTHON_PACKAGE) $(CMAKE_ARGS) >/dev/null
	@cmake --build build -j $(JOBS)

# Only what the run needs. In a tree where nothing was built yet, what ships is made for this machine's GPU alone;
# `make build` makes it for all.
run: setup ## the main job on one screen
	@if [ ! -e build/build.ninja ]; then first=-DKILN_ONLY_ARCHS=$$(scripts/gpu-arch); fi; \
	    cmake --preset dev --log-level=WARNING $$first $(CMAKE_ARGS) >/dev/null
	@if [ ! -e build/bin/kiln ]; then \
	    echo "Building kiln and what ships with it, once: some 100 steps, of up to half a minute each."; fi
	@NINJA_STATUS='[%f/%t, %e s] ' cmake --build build -j $(JOBS) --target kiln_cli
	@build/bin/kiln demo

test: build ## all tests that this machine can run
	@$(CTEST) --test-dir build -j 2 $(T) || { scripts/failed-tests build; exit 1; }

bench: setup ## the benchmarks, fully optimised, in build-release; those that need a GPU skip themselves
	@cmake --preset release --log-level=WARNING $(CMAKE_ARGS) >/dev/null
	@cmake --build build-release -j $(JOBS) --target kiln_bench
	@scripts/bench build-release

device-test: ## on a machine with a GPU: tests, then device tests under compute-sanitizer
	@scripts/device-test

device-bench: ## on a machine with a GPU: all benchmarks
	@scripts/device-bench

format: ## clang-format over all sources
	@scripts/format

format-check: ## which sources are not formatted
	@scripts/format --check

tidy: setup ## clang-tidy over the library and the programs
	@cmake --preset dev --log-level=WARNING $(CMAKE_ARGS) >/dev/null
	@JOBS=$(JOBS) scripts/tidy build

asan: setup ## unit, format, compile and process tests with AddressSanitizer and UBSan
	@cmake --preset asan --log-level=WARNING $(CMAKE_ARGS) >/dev/null
	@cmake --build build-asan -j $(JOBS)
	@$(CTEST) --test-dir build-asan -j 2 -L '^(unit|format|compile|process)$$' $(T)

tsan: setup ## the same with ThreadSanitizer
	@cmake --preset tsan --log-level=WARNING $(CMAKE_ARGS) >/dev/null
	@cmake --build build-tsan -j $(JOBS)
	@$(CTEST) --test-dir build-tsan -j 2 -L '^(unit|format|compile|process)$$' $(T)

fuzz: setup ## libFuzzer targets, a minute each (needs clang)
	@cmake --preset fuzz --log-level=WARNING $(CMAKE_ARGS) >/dev/null
	@cmake --build build-fuzz -j $(JOBS) --target kiln_fuzz
	@$(CTEST) --test-dir build-fuzz -R '^format\.fuzz\.' $(T)

release: setup ## what packagers build, in build-release
	@cmake --preset release --log-level=WARNING $(CMAKE_ARGS) >/dev/null
	@cmake --build build-release -j $(JOBS)

wheel: setup ## the Python package, in dist/, checked (needs pip; fetches scikit-build-core and nanobind where they are missing)
	@scripts/wheel

test-wheel: setup ## the same, installed in a fresh environment and tested there
	@scripts/wheel --test

install: release ## install to PREFIX (default /usr/local)
	@cmake --install build-release --prefix $(PREFIX)

package: release ## build-release/kiln_*.deb: library, headers, command line, man pages, completion
	@cd build-release && cpack -G DEB

docs: ## the API reference from the headers, in build/docs/html (needs doxygen)
	@scripts/setup --with doxygen
	@scripts/docs

clean: ## everything that was built; the CUDA fetched by setup stays
	@rm -rf build-release build-asan build-tsan build-fuzz build-device
	@if [ -d build ]; then find build -mindepth 1 -maxdepth 1 ! -name cuda -exec rm -rf {} +; fi
