# make train CORPUS=path   from raw text to a model      make test    the test suite
# Both set up .venv first if it is missing. See `make help`.

VENV := .venv
BIN := $(VENV)/bin
# Tests run in two processes; a file's tests stay together.
PARALLEL ?= -n 2 --dist loadfile
# Used by make/set-up.sh and make/train.sh, which describe them. A variable that is not given is not exported, so that
# CORPUS= with nothing behind it differs from no CORPUS.
VARIABLES := CORPUS RUN CONFIG SET INIT EXTRAS TORCH PYTHON ARGS
export VENV $(foreach name,$(VARIABLES),$(if $(filter-out undefined,$(origin $(name))),$(name)))

# en or zh. Texts that make itself prints are variables that end in it.
LANGUAGE_CHOSEN = $(shell . make/messages.sh; echo "$$LANGUAGE_CHOSEN")

# An unknown variable (corpus=, CORPSU=) would have no effect. Names with _ belong to other programs.
TYPED := $(foreach name,$(.VARIABLES),$(if $(filter command,$(origin $(name))),$(name)))
UNKNOWN := $(filter-out $(VARIABLES) VENV PARALLEL SHELL TMPDIR,$(foreach name,$(TYPED),$(if $(findstring _,$(name)),,$(name))))
ifneq ($(UNKNOWN),)
MEANT := $(filter $(VARIABLES),$(shell echo '$(UNKNOWN)' | tr a-z A-Z))
UNKNOWN_en := $(firstword $(UNKNOWN))= is not a variable of this Makefile. $(if $(MEANT),Write it in capitals: $(firstword $(MEANT))=,There are: $(VARIABLES))
UNKNOWN_zh := 本 Makefile 没有变量 $(firstword $(UNKNOWN))=。$(if $(MEANT),请大写：$(firstword $(MEANT))=,可用的变量：$(VARIABLES))
$(error $(UNKNOWN_$(LANGUAGE_CHOSEN)))
endif

TARGETS := help train test test-all test-processors check docs messages transcripts pictures site bench bench-gpu interop fuzz release clean set-up set-up-test set-up-dev
# An existing file or folder (make train my-texts) would count as made, and the sample would be trained.
OTHERS := $(filter-out $(TARGETS),$(MAKECMDGOALS))
ifneq ($(OTHERS),)
# Those after CORPUS=name belong to it: its name has spaces and no quotes, or there are several names. With RUN=name as
# well, they may belong to either.
NAMES := $(strip $(CORPUS) $(OTHERS))
QUOTED := $(if $(RUN),RUN="..." CORPUS="...",CORPUS=$(if $(word 2,$(NAMES)),"$(NAMES)",$(NAMES)))
MEANT := $(if $(filter train,$(MAKECMDGOALS)),make train $(QUOTED))
OTHERS_en := $(firstword $(OTHERS)) is not a target of this Makefile. $(if $(MEANT),Write: $(MEANT),See: make help)
OTHERS_zh := 本 Makefile 没有目标 $(firstword $(OTHERS))。$(if $(MEANT),请输入：$(MEANT),请看：make help)
$(error $(OTHERS_$(LANGUAGE_CHOSEN)))
endif

.DEFAULT_GOAL := help
.PHONY: $(TARGETS)

help:  ## Show this help
	@sh make/help.sh $(MAKEFILE_LIST)

train:  ## Train a model on raw text: make train CORPUS=my-texts/
	@sh make/train.sh

# Byte code is kept, also where the environment forbids it: tests start the program a hundred times.
test: set-up-test  ## Run the test suite (some minutes)
	@PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest $(PARALLEL) $(ARGS)

test-all: set-up-test  ## Run all tests but those that need a GPU (several hours)
	@$(BIN)/python -m pytest $(PARALLEL) -m 'not gpu' $(ARGS)

# Stand-ins for older processors: oneDNN, MKL and torch limited to their instructions.
AVX2 := ONEDNN_MAX_CPU_ISA=AVX2 MKL_ENABLE_INSTRUCTIONS=AVX2 ATEN_CPU_CAPABILITY=avx2
AVX512 := ONEDNN_MAX_CPU_ISA=AVX512_CORE
OLDEST := ONEDNN_MAX_CPU_ISA=AVX2 MKL_ENABLE_INSTRUCTIONS=AVX2 ATEN_CPU_CAPABILITY=default

test-processors: set-up-test  ## Run the test suite as on older processors, three times
	@$(AVX2) $(BIN)/python -m pytest $(PARALLEL) $(ARGS)
	@$(AVX512) $(BIN)/python -m pytest $(PARALLEL) $(ARGS)
	@$(OLDEST) $(BIN)/python -m pytest $(PARALLEL) $(ARGS)

check: set-up-dev  ## Check format, lint, spelling, types, wheels for each Python, and the kernels as on an older processor
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/codespell *.md docs/*.md docs/*.py elmo_zh/[a-z]*.py elmo_zh/[!l]*/ tests make benchmarks
	@$(BIN)/mypy
	@$(BIN)/python .ci/wheels.py
	@$(AVX2) $(BIN)/python -m pytest -q --no-header tests/model/kernels

docs: set-up  ## Write the pages on settings and commands from the code, in English and Chinese
	@$(BIN)/python docs/generate.py

messages: set-up-dev  ## Bring the catalogue of Chinese messages up to date with the code
	@PYTHONPATH=. $(BIN)/python docs/messages.py

transcripts: set-up  ## Write the outputs that README and docs show by running the commands (some minutes)
	@$(BIN)/python docs/transcripts.py $(if $(RUN),--run '$(RUN)')

pictures: set-up  ## Write the pictures of explore's page in docs/pictures (needs Chromium, and a model of the sample)
	@PYTHONPATH=. $(BIN)/python docs/pictures.py $(if $(RUN),--run '$(RUN)')

site: set-up  ## Build the pages as a site in build/site/html, in English and Chinese
	@[ -x build/zensical/bin/zensical ] || { $(BIN)/python -m venv build/zensical && build/zensical/bin/pip install -q zensical==0.0.73; }
	@$(BIN)/python docs/site.py $(CURDIR)/build/zensical/bin/zensical

bench: set-up  ## Measure training and embedding speed, compared with this machine's matrix products
	@$(BIN)/python benchmarks/speed.py

bench-gpu: set-up  ## Check and measure a GPU (some minutes); writes bench-gpu/gpu.txt and gpu.json
	@PYTHONPATH=. $(BIN)/python benchmarks/gpu.py --output bench-gpu $(ARGS)

interop: set-up  ## Compare vectors with AllenNLP, simple_elmo and pytorch-fast-elmo (docs/interop.md)
	@$(BIN)/python tests/interop/compare.py --python '$(or $(PYTHON),python3)' $(if $(RUN),--run '$(RUN)') $(ARGS)

# atheris has no wheel for every Python; without it the inputs are changed blindly.
fuzz: set-up-test  ## Fuzz the readers of foreign bytes, one per processor, an hour each: ARGS="--seconds 60 html zip"
	@$(BIN)/python -m pip install -q 'atheris>=3' || echo 'atheris cannot be installed here: inputs are changed blindly.'
	@$(BIN)/python tests/fuzz/fuzz.py $(ARGS)

release: set-up-dev  ## Build wheels and source archives in dist/ and check them; upload nothing
	@sh make/release.sh

clean:  ## Remove the virtual environments and caches, but no runs
	rm -rf $(VENV) .interop build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis

NEXT_en := 'Everything is installed. Next, train a model on your text:' '  make train CORPUS=my-texts/ INIT=starter' \
	'Or look at the words of the starter model, in the browser:' '  $(BIN)/elmo-zh explore'
NEXT_zh := '安装完毕。接下来用自己的文本训练模型：' '  make train CORPUS=my-texts/ INIT=starter' \
	'也可以在浏览器里查看起点模型认识的词：' '  $(BIN)/elmo-zh explore'

set-up:  ## Install everything, with the starter model, into .venv
	@sh make/set-up.sh corpus explore tasks $(if $(filter set-up,$(MAKECMDGOALS)),&& printf '%s\n' $(NEXT_$(LANGUAGE_CHOSEN)))

set-up-test:
	@sh make/set-up.sh test

set-up-dev:
	@sh make/set-up.sh dev
