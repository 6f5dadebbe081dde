# make train CORPUS=path   from raw text to a model      make test    the test suite
# Both set up .venv first if it is missing. See `make help`.

PYTHON ?= python3
VENV := .venv
# Tests run in two processes; a file's tests stay together.
PARALLEL ?= -n 2 --dist loadfile
BIN := $(VENV)/bin

CORPUS ?=
SET ?=
ifeq ($(strip $(CORPUS)),)
SOURCE := data/sample
NAME := sample
DEFAULT_CONFIG := configs/tiny.toml
else
# A path that exists is one path, even with spaces in it; otherwise CORPUS may be several paths and globs.
SOURCE := $(shell if [ -e '$(CORPUS)' ]; then echo "'$(CORPUS)'"; else echo '$(CORPUS)'; fi)
# The name of the corpus (for a glob, of its folder) without suffixes; characters that cause trouble become dashes.
NAME := $(shell p='$(CORPUS)'; [ -e "$$p" ] || p='$(firstword $(CORPUS))'; [ -e "$$p" ] || p=$$(dirname -- "$$p"); \
	basename -- "$$(realpath -m -- "$$p")" | sed -E 's/(\.(txt|text))?(\.(gz|bz2|xz|zst))?$$//; s/[*?[:space:]]+/-/g')
DEFAULT_CONFIG := configs/small.toml
endif
RUN ?= runs/$(NAME)
# A run keeps its own settings, so the default configuration is only for a new run.
CONFIG ?= $(if $(wildcard $(RUN)/config.toml),,$(DEFAULT_CONFIG))

.DEFAULT_GOAL := help
.PHONY: help train test test-all test-processors check docs bench interop clean

help:  ## Show this help
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | awk -F '\t' '{printf "  make %-15s %s\n", $$1, $$2}'
	@echo
	@echo '  CORPUS   file, folder, glob or address of text, CSV, JSON, a wiki dump and so on (default: data/sample)'
	@echo '  RUN      folder of the run (default: runs/NAME-OF-CORPUS)'
	@echo '  CONFIG   settings file (default for a new run: configs/small.toml; configs/tiny.toml without CORPUS)'
	@echo '  SET      changes to single settings, such as SET="train.max_tokens=6000000 vocab.size=50000"'

train: $(VENV)/.ready  ## Train a model on raw text: make train CORPUS=my-texts/
	@$(BIN)/elmo-zh pipeline $(SOURCE) --run '$(RUN)' $(if $(CONFIG),--config '$(CONFIG)') $(foreach s,$(SET),--set '$(s)') $(ARGS)

test: $(VENV)/.ready-test  ## Run the test suite (some minutes)
	@$(BIN)/python -m pytest $(PARALLEL) $(ARGS)

test-all: $(VENV)/.ready-test  ## Run all tests but those that need a GPU (half an hour)
	@$(BIN)/python -m pytest $(PARALLEL) -m 'not gpu' $(ARGS)

# Stand-ins for older processors: oneDNN, MKL and torch limited to their instructions.
AVX2 := ONEDNN_MAX_CPU_ISA=AVX2 MKL_ENABLE_INSTRUCTIONS=AVX2 ATEN_CPU_CAPABILITY=avx2
AVX512 := ONEDNN_MAX_CPU_ISA=AVX512_CORE
OLDEST := ONEDNN_MAX_CPU_ISA=AVX2 MKL_ENABLE_INSTRUCTIONS=AVX2 ATEN_CPU_CAPABILITY=default

test-processors: $(VENV)/.ready-test  ## Run the test suite as on older processors, three times
	@$(AVX2) $(BIN)/python -m pytest $(PARALLEL) $(ARGS)
	@$(AVX512) $(BIN)/python -m pytest $(PARALLEL) $(ARGS)
	@$(OLDEST) $(BIN)/python -m pytest $(PARALLEL) $(ARGS)

check: $(VENV)/.ready-dev  ## Check format, lint, types, and the kernels as on an older processor
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(AVX2) $(BIN)/python -m pytest -q --no-header tests/model/kernels

docs: $(VENV)/.ready  ## Write docs/settings.md and docs/commands.md from the code
	@$(BIN)/python docs/generate.py

bench: $(VENV)/.ready  ## Measure training and embedding speed, compared with this machine's matrix products
	@$(BIN)/python benchmarks/speed.py

interop: $(VENV)/.ready  ## Compare vectors with AllenNLP, simple_elmo and pytorch-fast-elmo (docs/interop.md)
	@$(BIN)/python tests/interop/compare.py --python '$(PYTHON)' $(if $(filter file,$(origin RUN)),,--run '$(RUN)') $(ARGS)

clean:  ## Remove the virtual environments and caches, but no runs
	rm -rf $(VENV) .interop build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Error: Python 3.11 or later is needed; $$($(PYTHON) --version) was found. Name another one: make PYTHON=python3.12 ..." >&2; exit 1; }
	@echo 'Setting up $(VENV), once; this downloads PyTorch and takes some minutes.'
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo 'Error: Python cannot make virtual environments; on Debian and Ubuntu: apt install python3-venv' >&2; exit 1; }

$(VENV)/.ready: pyproject.toml constraints.txt | $(VENV)/bin/python
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	@touch $@

$(VENV)/.ready-test: pyproject.toml constraints.txt | $(VENV)/bin/python
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test]'
	@touch $@ $(VENV)/.ready

$(VENV)/.ready-dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@ $(VENV)/.ready $(VENV)/.ready-test
