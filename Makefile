# make demo and make test are all a newcomer needs; CONTRIBUTING.md speaks of the others.
# Set PYTHON to use another interpreter than Debian's for .venv.

SHELL := /bin/bash
.DEFAULT_GOAL := help

# R and Python read UTF-8 whatever the caller's locale is, and sort alike everywhere. fab, pytest and the
# rest are found in .venv without anybody activating it.
export LC_ALL := C.UTF-8
export R_LIBS := $(CURDIR)/.rlib
export PATH := $(CURDIR)/.venv/bin:$(PATH)
unexport PYTHONPATH PYTHONHOME R_LIBS_USER

.PHONY: help demo test install install-dev lint unit sshd proofs faults lab-test r-test r-check fuzz fuzz-short bench lab-kernel lock clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

demo: install ## install what is missing, run experiments/demo.yaml on the virtual lab, print the PDF's path
	@fab demo

test: install-dev ## install what is missing, run the tests (the longest are in proofs)
	@$(MAKE) --no-print-directory -j2 short-lab-test without-lab

# A lab's kernel has one processor. What needs no lab has the other, gives way, and tells of each part when it is over. The last two
# parts follow the lab's, so that both halves take equally long.
.PHONY: short-lab-test without-lab
short-lab-test: install-dev
	@python -m pytest tests/lab tests/faults -m "lab and not proof"
	@$(MAKE) --no-print-directory sshd fuzz-short

without-lab: install-dev
	@for part in lint unit r-test; do \
	  nice -n 10 $(MAKE) --no-print-directory "$$part" >".stamps/$$part.log" 2>&1; code=$$?; \
	  cat ".stamps/$$part.log"; [ "$$code" = 0 ] || exit "$$code"; \
	done

install: ## install what is missing to run
	@tools/bootstrap

install-dev: ## install what is missing to test
	@tools/bootstrap --dev

lint: install-dev ## ruff, its format, mypy, and the contract of the layers
	@ruff check .
	@ruff format --check --quiet .
	@mypy
	@lint-imports --no-logo

r-test: install-dev ## the tests of the R package
	@Rscript tools/test-analysis.R

# FUZZ_SECONDS are shared out among the readers.
FUZZ_SECONDS ?= 240
fuzz: ## minutes of damaged and hostile files for the readers; FUZZ_SECONDS=3600 goes on for longer
	@tools/bootstrap --fuzz
	@$(MAKE) --no-print-directory -s -C analysis/fuzz -j2 run FUZZ_SECONDS=$(FUZZ_SECONDS)

fuzz-short: install-dev ## a minute of it, without clang
	@$(MAKE) --no-print-directory -s -C analysis/fuzz short FUZZ_SECONDS=60

r-check: install-dev ## R CMD build, with the vignette, and R CMD check of the R package
	@tools/check-analysis

unit: install-dev ## tests that need no lab
	@python -m pytest tests/unit tests/faults -m "not lab"

sshd: install-dev ## tests that need an sshd or Slurm and no lab: they wait more than they work
	@python -m pytest tests/lab -m "not lab and not proof"

proofs: install-dev ## the tests that take long: reboots, campaigns that go on, traffic of many hosts
	@python -m pytest tests/lab -m proof

faults: install-dev ## a campaign for each fault of the matrix, one line each, and what must hold after it; an hour
	@python -m pytest tests/faults -q -rN

lab-test: install-dev ## tests that boot a lab
	@python -m pytest -m lab

bench: install-dev ## measure how fast trials are planned, a capture is read and a figure drawn; adds to benchmarks/results.md
	@python benchmarks/bench_plan.py --append benchmarks/results.md
	@python benchmarks/bench_overhead.py --append benchmarks/results.md
	@python benchmarks/lab_captures.py
	@Rscript benchmarks/bench_reader.R --append benchmarks/results.md
	@Rscript benchmarks/bench_match.R --append benchmarks/results.md
	@Rscript benchmarks/bench_trial.R --append benchmarks/results.md
	@Rscript benchmarks/bench_siftr.R --append benchmarks/results.md
	@python benchmarks/bench_campaign.py --append benchmarks/results.md
	@Rscript benchmarks/bench_figure.R --append benchmarks/results.md

# A suite of Debian's: sid, which moves, or trixie; MIRROR is its archive, otherwise the one of this machine's apt.
SUITE ?= sid
lab-kernel: ## fetch a newer user-mode Linux for labs into .bin/uml/SUITE, and say how config.yaml names it; SUITE=trixie
	@tools/lab-kernel "$(SUITE)"

lock: ## resolve pyproject.toml and requirements-dev.in into the hash-pinned locks; make lock UPGRADE=--upgrade takes newer versions
	@tools/lock $(UPGRADE)

clean: ## remove what make installed and what tools cached; results/ and .lab/ stay
	rm -rf .venv .rlib .bin .stamps .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
