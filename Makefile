# make train CORPUS=path   from raw text to a model      make test    the test suite
# Both set up .venv by themselves. `make help` tells more.

VENV := .venv
BIN := $(VENV)/bin
# Tests run in two processes; a file's tests stay together.
PARALLEL ?= -n 2 --dist loadfile
# For make/set-up.sh and make/train.sh, which say what each is.
VARIABLES := CORPUS RUN CONFIG SET INIT EXTRAS TORCH PYTHON ARGS
export VENV $(VARIABLES)

# A variable that is not known (corpus=, CORPSU=) would have no effect. Names with _ are for other programs.
TYPED := $(foreach name,$(.VARIABLES),$(if $(filter command,$(origin $(name))),$(name)))
UNKNOWN := $(filter-out $(VARIABLES) VENV PARALLEL SHELL TMPDIR,$(foreach name,$(TYPED),$(if $(findstring _,$(name)),,$(name))))
ifneq ($(UNKNOWN),)
MEANT := $(filter $(VARIABLES),$(shell echo '$(UNKNOWN)' | tr a-z A-Z))
$(error $(firstword $(UNKNOWN))= is not a variable of this Makefile. $(if $(MEANT),Write it in capitals: $(firstword $(MEANT))=,There are: $(VARIABLES)))
endif

.DEFAULT_GOAL := help
.PHONY: help train test test-all test-processors check docs bench interop clean set-up set-up-test set-up-dev

help:  ## Show this help
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | awk -F '\t' '{printf "  make %-15s %s\n", $$1, $$2}'
	@echo
	@echo '  CORPUS   file, folder, glob or address of text, CSV, JSON, a wiki dump ... (default: data/sample)'
	@echo '  RUN      folder of the run (default: runs/NAME-OF-CORPUS)'
	@echo '  CONFIG   settings (default: configs/small.toml; configs/tiny.toml without CORPUS)'
	@echo '  SET      single settings, such as SET="train.max_tokens=6000000 vocab.size=50000"'
	@echo '  INIT     a model to start from, trained on other text'
	@echo '  EXTRAS   further packages, such as EXTRAS="parquet rjieba" (docs/dependencies.md)'
	@echo '  TORCH    cpu: PyTorch without CUDA libraries, 0.4 GB to download in place of 3 GB'
	@echo '  PYTHON   the Python for .venv (default: the newest of 3.14 to 3.11)'

train:  ## From raw text to a model: make train CORPUS=my-texts/
	@sh make/train.sh

test: set-up-test  ## Run the test suite (some minutes)
	@$(BIN)/python -m pytest $(PARALLEL) $(ARGS)

test-all: set-up-test  ## Run all tests but those that need a GPU (half an hour)
	@$(BIN)/python -m pytest $(PARALLEL) -m 'not gpu' $(ARGS)

# Stand-ins for older processors: oneDNN, MKL and torch limited to their instructions.
AVX2 := ONEDNN_MAX_CPU_ISA=AVX2 MKL_ENABLE_INSTRUCTIONS=AVX2 ATEN_CPU_CAPABILITY=avx2
AVX512 := ONEDNN_MAX_CPU_ISA=AVX512_CORE
OLDEST := ONEDNN_MAX_CPU_ISA=AVX2 MKL_ENABLE_INSTRUCTIONS=AVX2 ATEN_CPU_CAPABILITY=default

test-processors: set-up-test  ## Run the test suite as on older processors, three times
	@$(AVX2) $(BIN)/python -m pytest $(PARALLEL) $(ARGS)
	@$(AVX512) $(BIN)/python -m pytest $(PARALLEL) $(ARGS)
	@$(OLDEST) $(BIN)/python -m pytest $(PARALLEL) $(ARGS)

check: set-up-dev  ## Check format, lint, types, wheels for each Python, and the kernels as on an older processor
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/python .ci/wheels.py
	@$(AVX2) $(BIN)/python -m pytest -q --no-header tests/model/kernels

docs: set-up  ## Write docs/settings.md and docs/commands.md from the code
	@$(BIN)/python docs/generate.py

bench: set-up  ## Measure training and embedding speed beside this machine's matrix products
	@$(BIN)/python benchmarks/speed.py

interop: set-up  ## Compare vectors with AllenNLP, simple_elmo and pytorch-fast-elmo (docs/interop.md)
	@$(BIN)/python tests/interop/compare.py --python '$(or $(PYTHON),python3)' $(if $(RUN),--run '$(RUN)') $(ARGS)

clean:  ## Remove the virtual environments and caches; runs stay
	rm -rf $(VENV) .interop build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis

set-up:
	@sh make/set-up.sh corpus

set-up-test:
	@sh make/set-up.sh test

set-up-dev:
	@sh make/set-up.sh dev
