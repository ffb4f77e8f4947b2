# The front door. Every target does its own set-up on Debian 12; `make` alone lists them.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

JOBS ?= $(shell nproc)
BIN := build/release/bin

# ccache, where there is one, makes the second build short; nothing depends on it.
ifneq ($(shell command -v ccache),)
  export CMAKE_CXX_COMPILER_LAUNCHER ?= ccache
endif

.PHONY: help
help: ## this list
	@echo "make <target> [VARIABLE=value]"
	@sed -nE 's/^([a-z]+):[^#]*## (.*)/  \1|\2/p' $(firstword $(MAKEFILE_LIST)) | while IFS='|' read -r name what; do \
	  printf '%-9s %s\n' "$$name" "$$what"; done

# --- using it

.PHONY: demo
demo: setup-build configure-release ## eight daemons on this machine: one object to all of them, naive and by Hoplite, then a reduce
	@cmake --build build/release --parallel $(JOBS) --target hoplited hoplite hoplite-demo
	@$(BIN)/hoplite-demo

.PHONY: build
build: setup-build configure-release ## everything, into build/release/bin
	@cmake --build build/release --parallel $(JOBS)

.PHONY: install
install: build ## into PREFIX (default /usr/local)
	@cmake --install build/release --prefix $(or $(PREFIX),/usr/local)

# --- checking it

# One ctest run and one pytest run, each with its summary. ctest goes from fast to slow: unit tests and simulation first, then
# whole processes, then network namespaces, then the first three kinds again in sanitized builds.
# LABEL=unit runs one kind only.
.PHONY: test
test: setup-test setup-python build ## all tests, fast ones first (LABEL=unit|sim|process|net|sanitize|python)
	@tools/run-tests release '$(LABEL)'

.PHONY: wheel
wheel: setup-python build ## the Python package, into build/wheel
	@tools/python wheel

.PHONY: asan tsan
asan: setup-test ## the tests under AddressSanitizer and UndefinedBehaviorSanitizer (LABEL=)
	@tools/run-tests asan '$(LABEL)'
tsan: setup-test ## the tests under ThreadSanitizer (LABEL=)
	@tools/run-tests tsan '$(LABEL)'

.PHONY: sim
sim: setup-build configure-release ## simulated clusters with faults (SEEDS=1000000, or SEED=42; NODES= SCENARIO= TRACE=1)
	@cmake --build build/release --parallel $(JOBS) --target hoplite-sim
	@$(BIN)/hoplite-sim $(if $(SCENARIO),--scenario $(SCENARIO),$(if $(SEED),--seed $(SEED),--seeds 0..$(or $(SEEDS),5000))) \
	  $(if $(NODES),--nodes $(NODES)) $(if $(TRACE),--trace)

.PHONY: fuzz
fuzz: setup-fuzz ## every parser against libFuzzer (SECONDS=60 for each, TARGET=wire)
	@tools/fuzz $(or $(SECONDS),60) $(TARGET)

.PHONY: mutate
mutate: setup-test ## slips made on purpose, one at a time: which test notices? (ARGS="--only NAME", "--rotate 10", "--list")
	@tools/mutate --jobs $(JOBS) $(ARGS)

.PHONY: lint
lint: setup-lint setup-python configure-release ## formatting, clang-tidy, shellcheck, pyflakes, ruff, mypy
	@tools/lint

.PHONY: format
format: setup-lint ## applies .clang-format
	@tools/lint --fix

# --- measuring it

.PHONY: bench
bench: setup-bench $(if $(findstring --with-gloo,$(ARGS)),setup-gloo) setup-python configure-release ## the figures, in network namespaces; table, and JSON under build/bench (ARGS="broadcast --hosts 6")
	@cmake --build build/release --parallel $(JOBS) --target bench-programs
	@tools/python install
	@bench/run $(ARGS)

.PHONY: soak
soak: setup-bench configure-release ## daemons at work with every fault there is, each answer checked (MINUTES=30 SEED=7; ARGS=--history)
	@cmake --build build/release --parallel $(JOBS) --target soak-programs
	@bench/soak/run --minutes $(or $(MINUTES),30) $(if $(SEED),--seed $(SEED)) $(ARGS)

# --- housekeeping

.PHONY: clean
clean: ## removes build/
	@rm -rf build

.PHONY: setup-build setup-test setup-lint setup-python setup-fuzz setup-bench setup-gloo configure-release
setup-build:
	@tools/setup build
setup-test setup-lint setup-python setup-fuzz setup-bench setup-gloo: setup-%:
	@tools/setup build $*
configure-release:
	@tools/configure release
