# A newcomer needs only `make demo` and `make test`; CONTRIBUTING.md explains the other targets.
# Set PYTHON to create .venv with another interpreter than Debian's.

SHELL := /bin/bash
.DEFAULT_GOAL := help

# With this locale, R and Python read UTF-8 and sort in the same order on every machine. With this PATH, .venv need not be
# activated.
export LC_ALL := C.UTF-8
export R_LIBS := $(CURDIR)/.rlib
export PATH := $(CURDIR)/.venv/bin:$(PATH)
unexport PYTHONPATH PYTHONHOME R_LIBS_USER

.PHONY: help demo test install install-dev lint unit sshd proofs faults lab-test r-test r-check fuzz fuzz-short bench lab-kernel lock clean

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

demo: install ## install what is missing, run experiments/demo.yaml in the virtual lab, print the path of the PDF
	@fab demo

test: install-dev ## install what is missing, run the tests except the longest ones (see proofs and faults)
	@$(MAKE) --no-print-directory -j2 short-lab-test without-lab

# Two jobs run side by side: a lab's kernel uses one processor, and the tests without a lab use the other, at low priority. The
# output of each of their parts is shown when it has ended. `sshd` and `fuzz-short` run after the lab's tests, so that both jobs
# take about the same time.
.PHONY: short-lab-test without-lab
short-lab-test: install-dev
	@python -m pytest tests/lab tests/faults -m "lab and not proof"
	@$(MAKE) --no-print-directory sshd fuzz-short

without-lab: install-dev
	@for part in lint unit r-test; do \
	  nice -n 10 $(MAKE) --no-print-directory "$$part" >".stamps/$$part.log" 2>&1; code=$$?; \
	  cat ".stamps/$$part.log"; [ "$$code" = 0 ] || exit "$$code"; \
	done

install: ## install what samovar needs to run
	@tools/bootstrap

install-dev: ## install what the tests need, too
	@tools/bootstrap --dev

lint: install-dev ## ruff, ruff format, mypy, import-linter
	@ruff check .
	@ruff format --check --quiet .
	@mypy
	@lint-imports --no-logo

r-test: install-dev ## run the tests of the R package
	@Rscript tools/test-analysis.R

# FUZZ_SECONDS is the total time, which is divided among the readers.
FUZZ_SECONDS ?= 240
fuzz: ## feed damaged and hostile files to the readers for some minutes, or longer with FUZZ_SECONDS=3600
	@tools/bootstrap --fuzz
	@$(MAKE) --no-print-directory -s -C analysis/fuzz -j2 run FUZZ_SECONDS=$(FUZZ_SECONDS)

fuzz-short: install-dev ## the same for a minute, without clang
	@$(MAKE) --no-print-directory -s -C analysis/fuzz short FUZZ_SECONDS=60

r-check: install-dev ## R CMD build, with the vignette, and R CMD check of the R package
	@tools/check-analysis

unit: install-dev ## run the tests that need no lab
	@python -m pytest tests/unit tests/faults -m "not lab"

sshd: install-dev ## run the tests that need an sshd or Slurm, but no lab
	@python -m pytest tests/lab -m "not lab and not proof"

proofs: install-dev ## run the long tests: reboots, resumed campaigns, traffic of many hosts
	@python -m pytest tests/lab -m proof

faults: install-dev ## run a campaign for each fault of the matrix, and check its result; takes an hour
	@python -m pytest tests/faults -q -rN

lab-test: install-dev ## run the tests that boot a lab
	@python -m pytest -m lab

bench: install-dev ## measure the speed of planning, reading and drawing; appends to benchmarks/results.md
	@python benchmarks/bench_plan.py --append benchmarks/results.md
	@python benchmarks/bench_overhead.py --append benchmarks/results.md
	@python benchmarks/lab_captures.py
	@Rscript benchmarks/bench_reader.R --append benchmarks/results.md
	@Rscript benchmarks/bench_match.R --append benchmarks/results.md
	@Rscript benchmarks/bench_trial.R --append benchmarks/results.md
	@Rscript benchmarks/bench_siftr.R --append benchmarks/results.md
	@python benchmarks/bench_campaign.py --append benchmarks/results.md
	@Rscript benchmarks/bench_figure.R --append benchmarks/results.md

# SUITE is a suite of Debian; MIRROR is the URL of a Debian archive, by default the one that this machine's apt uses.
SUITE ?= sid
lab-kernel: ## fetch a newer user-mode Linux for labs into .bin/uml/SUITE, and print the lines for config.yaml; SUITE=trixie
	@tools/lab-kernel "$(SUITE)"

lock: ## write the locks for pyproject.toml and requirements-dev.in; make lock UPGRADE=--upgrade takes newer versions
	@tools/lock $(UPGRADE)

clean: ## remove installed packages and caches; results/ and .lab/ stay
	rm -rf .venv .rlib .bin .stamps .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
