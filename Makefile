# make train CORPUS=path   from raw text to a model      make test    the test suite
# Both set up .venv first if it is missing. See `make help`. Help and messages are in English | Chinese.

VENV := .venv
BIN := $(VENV)/bin
export VENV
# Tests run in two processes; a file's tests stay together.
PARALLEL ?= -n 2 --dist loadfile
# A stand-in for an older processor: oneDNN, MKL and torch limited to its instructions.
AVX2 := ONEDNN_MAX_CPU_ISA=AVX2 MKL_ENABLE_INSTRUCTIONS=AVX2 ATEN_CPU_CAPABILITY=avx2

.DEFAULT_GOAL := help
.PHONY: help train test test-all test-processors check docs messages pictures site bench bench-gpu interop fuzz \
	release clean set-up set-up-test set-up-dev

help:  ## Show this help | 显示本帮助
	@. make/messages.sh; awk -F ' *## | \\| ' -v column=$$([ $$LANGUAGE_CHOSEN = zh ] && echo 3 || echo 2) \
		'/^[a-z-]+:.*## / { sub(":.*", "", $$1); printf "  make %-16s %s\n", $$1, $$column } \
		/^#: / { sub("#: ", "", $$1); printf "%s  %-9s %s\n", n++ ? "" : "\n", $$1, $$column }' Makefile

train:  ## Train a model on raw text: make train CORPUS=my-texts/ | 用原始文本训练模型：make train CORPUS=my-texts/
	@sh make/train.sh

# Byte code is kept, also where the environment forbids it: tests start the program a hundred times.
test: set-up-test  ## Run the test suite (some minutes) | 运行测试（几分钟）
	@PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest $(PARALLEL) $(ARGS)

test-all: set-up-test  ## Run all tests but those that need a GPU (several hours) | 运行全部测试，需要 GPU 的除外（几小时）
	@$(BIN)/python -m pytest $(PARALLEL) -m 'not gpu' $(ARGS)

test-processors: set-up-test  ## Run the test suite as on older processors, three times | 像在较旧的处理器上一样运行测试，共三遍
	@$(AVX2) $(BIN)/python -m pytest $(PARALLEL) $(ARGS)
	@ONEDNN_MAX_CPU_ISA=AVX512_CORE $(BIN)/python -m pytest $(PARALLEL) $(ARGS)
	@$(AVX2) ATEN_CPU_CAPABILITY=default $(BIN)/python -m pytest $(PARALLEL) $(ARGS)

check: set-up-dev  ## Check format, lint, spelling, types, and the kernels as on an older processor | 检查格式、代码规范、拼写、类型，以及较旧处理器上的内核
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/codespell *.md docs/*.md docs/*.py elmo_zh/[a-z]*.py elmo_zh/[!l]*/ tests make benchmarks
	@$(BIN)/mypy
	@$(AVX2) $(BIN)/python -m pytest -q --no-header tests/model/kernels

docs: set-up  ## Write the pages on settings and commands from the code, in English and Chinese | 根据代码生成设置和命令的页面，中英文各一份
	@$(BIN)/python docs/generate.py

messages: set-up-dev  ## Bring the catalogue of Chinese messages up to date with the code | 按代码更新中文消息的目录
	@PYTHONPATH=. $(BIN)/python docs/messages.py

pictures: set-up  ## Write the pictures of explore's page in docs/pictures (needs Chromium, and a model of the sample) | 更新 docs/pictures 里 explore 页面的图片（需要 Chromium 和用示例文本训练的模型）
	@PYTHONPATH=. $(BIN)/python docs/pictures.py $(if $(RUN),--run '$(RUN)')

site: set-up  ## Build the pages as a site in build/site/html, in English and Chinese | 把文档做成网站，放在 build/site/html，中英文各一份
	@[ -x build/zensical/bin/zensical ] || { $(BIN)/python -m venv build/zensical && build/zensical/bin/pip install -q zensical==0.0.73; }
	@$(BIN)/python docs/site.py $(CURDIR)/build/zensical/bin/zensical

bench: set-up  ## Measure training and embedding speed, compared with this machine's matrix products | 测量训练和计算向量的速度，与本机矩阵乘法的速度比较
	@$(BIN)/python benchmarks/speed.py

bench-gpu: set-up  ## Check and measure a GPU (some minutes); writes bench-gpu/gpu.txt and gpu.json | 检查并测量 GPU，几分钟：bench-gpu/gpu.txt 和 gpu.json
	@PYTHONPATH=. $(BIN)/python benchmarks/gpu.py --output bench-gpu $(ARGS)

interop: set-up  ## Compare vectors with AllenNLP, simple_elmo and pytorch-fast-elmo (docs/interop.md) | 与 AllenNLP、simple_elmo 和 pytorch-fast-elmo 比较向量（docs/interop.md）
	@$(BIN)/python tests/interop/compare.py --python '$(or $(PYTHON),python3)' $(if $(RUN),--run '$(RUN)') $(ARGS)

# atheris has no wheel for every Python.
fuzz: set-up-test  ## Fuzz the readers of foreign bytes, one per processor, an hour each: ARGS="--seconds 60 html zip" | 模糊测试读取外来文件的代码，各一小时，每个处理器一项：ARGS="--seconds 60 html zip"
	@$(BIN)/python -m pip install -q 'atheris>=3'
	@$(BIN)/python tests/fuzz/fuzz.py $(ARGS)

release: set-up-dev  ## Build wheels and source archives in dist/ and check them; upload nothing | 在 dist/ 里构建并检查 wheel 和源码包，不上传
	@sh make/release.sh

clean:  ## Remove the virtual environments and caches, but no runs | 删除虚拟环境和缓存，保留各次运行
	rm -rf $(VENV) .interop build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis

set-up:  ## Install everything, with the starter model, into .venv | 把全部软件连同起点模型 starter 装进 .venv
	@sh make/set-up.sh corpus explore tasks

	@$(if $(filter set-up,$(MAKECMDGOALS)),. make/messages.sh; say \
		'Everything is installed. To look at words: $(BIN)/elmo-zh explore. To train a model on your text: make train CORPUS=my-texts/ INIT=starter' \
		'安装完毕。查看词语：$(BIN)/elmo-zh explore。用自己的文本训练模型：make train CORPUS=my-texts/ INIT=starter')

set-up-test:
	@sh make/set-up.sh corpus explore tasks test

set-up-dev:
	@sh make/set-up.sh corpus explore tasks test dev

# Variables.
#: CORPUS ## file, folder or glob of text, CSV, JSON, a wiki dump and so on (default: data/sample) | 文件、文件夹或通配符：文本、CSV、JSON、维基百科转储文件等（默认：data/sample）
#: RUN ## folder of the run (default: runs/NAME-OF-CORPUS) | 运行文件夹（默认：runs/语料的名字）
#: CONFIG ## settings file (default for a new run: configs/small.toml; configs/tiny.toml without CORPUS) | 设置文件（新运行默认为 configs/small.toml；没有 CORPUS 时为 configs/tiny.toml）
#: SET ## changes to single settings, such as SET="train.max_tokens=6000000 vocab.size=50000" | 修改个别设置，例如 SET="train.max_tokens=6000000 vocab.size=50000"
#: INIT ## model to start from, trained on other text: its folder, or the name of an installed one | 从哪个用其他文本训练的模型开始：它的文件夹，或已安装的模型的名字
#: EXTRAS ## optional packages to install, such as EXTRAS="parquet rjieba" (docs/dependencies.md) | 要安装的可选依赖，例如 EXTRAS="parquet rjieba"（docs/dependencies.md）
#: ARGS ## options to pass on: make train ARGS=--force, make test ARGS="-k word2vec" | 传给程序的选项：make train ARGS=--force，make test ARGS="-k word2vec"
#: TORCH ## cpu: install PyTorch without CUDA libraries, a download of 0.4 GB instead of 3 GB | cpu：安装不带 CUDA 库的 PyTorch，下载 0.4 GB 而不是 3 GB
#: PYTHON ## Python to create .venv with (default: the newest of 3.14 to 3.11) | 用哪个 Python 建立 .venv（默认：3.14 到 3.11 中最新的）
