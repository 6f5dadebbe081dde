#!/bin/sh
# Create the virtual environment and install elmo-zh in it, with the extras given as arguments. Nothing if it is done.
#
#   EXTRAS   more extras, separated by spaces or commas
#   VENV     folder of the virtual environment (default: .venv)
#   PYTHON   Python to create it with (default: the newest supported one that has venv)
#   TORCH    cpu: PyTorch's CPU build, without CUDA libraries
set -u

VENV=${VENV:-.venv}
TORCH=${TORCH:-}
STAMP=$VENV/.ready # lists the extras that are installed
LOG=$VENV/set-up.log
TORCH_VERSION=$(sed -n 's/^torch==//p' constraints.txt)
TORCH_CPU_INDEX=${TORCH_CPU_INDEX:-https://download.pytorch.org/whl/cpu}

. make/messages.sh

is_complete() { # is_complete EXTRA...
    [ -e "$STAMP" ] || return 1
    for source in pyproject.toml constraints.txt data/starter/pyproject.toml elmo_zh/locale/zh/LC_MESSAGES/messages.po; do
        [ ! "$source" -nt "$STAMP" ] || return 1
    done
    for extra; do grep -qx "$extra" "$STAMP" || return 1; done
}

# Print the newest supported Python (requires-python in pyproject.toml) that can make virtual environments.
choose_python() {
    for name in ${PYTHON:-python3.14 python3.13 python3.12 python3.11 python3}; do
        "$name" -c 'import ensurepip, sys, venv; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' 2>/dev/null || continue
        echo "$name"
        return
    done
    fail "Python 3.11 to 3.14 with its modules venv and ensurepip is needed${PYTHON:+, which $PYTHON is not}. On Debian and Ubuntu: sudo apt install python3-venv - or name another: make PYTHON=/path/to/python3.13 ..." \
        "需要 Python 3.11 至 3.14，并带有 venv 和 ensurepip 模块${PYTHON:+，$PYTHON 不符合}。在 Debian 和 Ubuntu 上请运行：sudo apt install python3-venv；或者指定另一个：make PYTHON=/path/to/python3.13 ..."
}

set -- "$@" $(echo "${EXTRAS:-}" | tr , ' ')
for extra; do
    grep -q "^$extra = \[" pyproject.toml ||
        fail "There is no extra $extra. EXTRAS can have those of pyproject.toml (docs/dependencies.md)." \
            "没有可选依赖 $extra。EXTRAS 可用的名字见 pyproject.toml（docs/dependencies.md）。"
done
is_complete "$@" && exit 0

if [ ! -e "$VENV" ]; then
    PYTHON=$(choose_python) || exit 1
    if [ "$TORCH" = cpu ]; then
        say "Setting up $VENV with $PYTHON, once: 0.4 GB to download, 1.6 GB on disk." \
            "正在用 $PYTHON 建立 $VENV，只需一次：约下载 0.4 GB，占用磁盘 1.6 GB。"
    else
        say "Setting up $VENV with $PYTHON, once. PyTorch with its CUDA libraries and the other packages: about 3 GB to download, 7 GB on disk; with TORCH=cpu 0.4 GB and 1.6 GB." \
            "正在用 $PYTHON 建立 $VENV，只需一次。PyTorch（含 CUDA 库）和其他软件包约下载 3 GB，占用磁盘 7 GB；加上 TORCH=cpu 则为 0.4 GB 和 1.6 GB。"
    fi
    "$PYTHON" -m venv "$VENV" || fail "$VENV cannot be created, for the reason above." "无法建立 $VENV，原因见上。"
fi
pip_install() { # pip_install ARGUMENT...
    "$VENV/bin/python" -m pip install --quiet --disable-pip-version-check "$@" >"$LOG" 2>&1 && return
    problem=$(sed -n 's/^ *ERROR: *//p' "$LOG" | tail -n 1)
    fail "pip could not install the packages: ${problem:-see $LOG}. Check the network (behind a proxy: HTTPS_PROXY; for an index of your own: PIP_INDEX_URL) and the space on the disk, then type the same command again; make clean first if $VENV is damaged. All of pip's messages are in $LOG." \
        "pip 无法安装软件包：${problem:-见 $LOG}。请检查网络（代理用 HTTPS_PROXY，镜像用 PIP_INDEX_URL）和磁盘空间，再运行同一命令；如果 $VENV 已损坏，请先运行 make clean。pip 的全部输出在 $LOG。"
}

extras=$(printf '%s\n' "$@" $(cat "$STAMP" 2>/dev/null) | sort -u)
say "Installing packages with pip, which may take minutes; its messages are in $LOG." \
    "正在用 pip 安装软件包，可能需要几分钟；pip 的输出在 $LOG。"
# A CPU build that is there stays one when its version changes.
[ -z "$(ls -d "$VENV"/lib/python*/site-packages/torch-*+cpu.dist-info 2>/dev/null)" ] || TORCH=cpu
[ "$TORCH" != cpu ] || [ "$(uname -s)" != Linux ] || [ -e "$(echo "$VENV"/lib/python*/site-packages/torch-"$TORCH_VERSION"+cpu.dist-info)" ] ||
    pip_install --no-deps --index-url "$TORCH_CPU_INDEX" "torch==$TORCH_VERSION+cpu"
pip_install -c constraints.txt -e ".[$(echo $extras | tr ' ' ,)]" -e data/starter
echo "$extras" >"$STAMP"
