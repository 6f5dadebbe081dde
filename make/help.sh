#!/bin/sh
# Print the targets and variables of the Makefile given as arguments: in English from its comments, in Chinese from here.

. "$(dirname "$0")/messages.sh"

if [ "$LANGUAGE_CHOSEN" = zh ]; then
    cat <<'END'
  make help            显示本帮助
  make train           用原始文本训练模型：make train CORPUS=my-texts/
  make test            运行测试（几分钟）
  make test-all        运行全部测试，需要 GPU 的除外（几小时）
  make test-processors 像在较旧的处理器上一样运行测试，共三遍
  make check           检查格式、代码规范、类型、各版本 Python 的 wheel，以及较旧处理器上的内核
  make docs            根据代码生成设置和命令的页面，中英文各一份
  make messages        按代码更新中文消息的目录
  make transcripts     运行命令，更新 README 和文档里的输出（几分钟）
  make pictures        更新 docs/pictures 里 explore 页面的图片（需要 Chromium 和用示例文本训练的模型）
  make site            把文档做成网站，放在 build/site/html，中英文各一份
  make bench           测量训练和计算向量的速度，与本机矩阵乘法的速度比较
  make bench-gpu       检查并测量 GPU，几分钟：bench-gpu/gpu.txt 和 gpu.json
  make interop         与 AllenNLP、simple_elmo 和 pytorch-fast-elmo 比较向量（docs/interop.md）
  make fuzz            模糊测试读取外来文件的代码，各一小时，每个处理器一项：ARGS="--seconds 60 html zip"
  make release         在 dist/ 里构建并检查 wheel 和源码包，不上传
  make clean           删除虚拟环境和缓存，保留各次运行
  make set-up          把全部软件连同起点模型 starter 装进 .venv

  CORPUS   文件、文件夹、通配符或网址：文本、CSV、JSON、维基百科转储文件等（默认：data/sample）
  RUN      运行文件夹（默认：runs/语料的名字）
  CONFIG   设置文件（新运行默认为 configs/small.toml；没有 CORPUS 时为 configs/tiny.toml）
  SET      修改个别设置，例如 SET="train.max_tokens=6000000 vocab.size=50000"
  INIT     从哪个用其他文本训练的模型开始：它的文件夹，或已安装的模型的名字
  EXTRAS   要安装的可选依赖，例如 EXTRAS="parquet rjieba"（docs/dependencies.md）
  ARGS     传给程序的选项：make train ARGS=--force，make test ARGS="-k word2vec"
  TORCH    cpu：安装不带 CUDA 库的 PyTorch，下载 0.4 GB 而不是 3 GB
  PYTHON   用哪个 Python 建立 .venv（默认：3.14 到 3.11 中最新的）
END
    exit
fi
grep -hE '^[a-z-]+:.*## ' "$@" | sed -E 's/:.*## /\t/' | awk -F '\t' '{printf "  make %-15s %s\n", $1, $2}'
cat <<'END'

  CORPUS   file, folder, glob or address of text, CSV, JSON, a wiki dump and so on (default: data/sample)
  RUN      folder of the run (default: runs/NAME-OF-CORPUS)
  CONFIG   settings file (default for a new run: configs/small.toml; configs/tiny.toml without CORPUS)
  SET      changes to single settings, such as SET="train.max_tokens=6000000 vocab.size=50000"
  INIT     model to start from, trained on other text: its folder, or the name of an installed one
  EXTRAS   optional packages to install, such as EXTRAS="parquet rjieba" (docs/dependencies.md)
  ARGS     options to pass on: make train ARGS=--force, make test ARGS="-k word2vec"
  TORCH    cpu: install PyTorch without CUDA libraries, a download of 0.4 GB instead of 3 GB
  PYTHON   Python to create .venv with (default: the newest of 3.14 to 3.11)
END
