#!/bin/sh
# Create the virtual environment and install elmo-zh in it, with the extras given as arguments.
#
#   EXTRAS   more extras, separated by spaces or commas
#   VENV     folder of the virtual environment (default: .venv)
#   PYTHON   Python to create it with (default: the newest supported one that has venv)
#   TORCH    cpu: PyTorch's CPU build, without CUDA libraries
#
# Does nothing if everything is installed already. Every failure ends in one line that says what to do.
set -u

VENV=${VENV:-.venv}
PYTHON=${PYTHON:-}
TORCH=${TORCH:-}
# The same as requires-python in pyproject.toml.
SUPPORTED='3.14 3.13 3.12 3.11'
RANGE='3.11 to 3.14'
# Lists the extras that are installed.
STAMP=$VENV/.ready
LOG=$VENV/set-up.log
TORCH_VERSION=$(sed -n 's/^torch==//p' constraints.txt)
TORCH_CPU_INDEX=${TORCH_CPU_INDEX:-https://download.pytorch.org/whl/cpu}

# Messages of pip, among its warnings, if an index does not answer.
UNREACHABLE='newconnectionerror|connecttimeout|name ?resolution|connection (refused|broken|reset|aborted|timed out)'
UNREACHABLE="$UNREACHABLE|read ?timed ?out|proxyerror|sslerror|network is unreachable"

. "$(dirname "$0")/messages.sh"

contains() { # contains "a b c" b
    case " $1 " in *" $2 "*) ;; *) return 1 ;; esac
}

# ---- extras ----

known_extras() {
    sed -n '/^\[project.optional-dependencies\]/,/^\[project.scripts\]/s/^\([a-z]*\) = .*/\1/p' pyproject.toml | tr '\n' ' '
}

with_implied() { # test implies corpus, and so on
    for extra in $*; do
        echo "$extra"
        with_implied $(sed -n "s/^$extra = .*\"elmo-zh\[\([a-z,]*\)\]\".*/\1/p" pyproject.toml | tr , ' ')
    done
}

# ---- Python ----

version_of() {
    "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null
}

has_venv() {
    "$1" -c 'import venv, ensurepip' 2>/dev/null
}

no_venv() { # no_venv python3.13 3.13
    fail "$1 cannot make virtual environments: its modules venv and ensurepip are missing. On Debian and Ubuntu type: sudo apt install python$2-venv - or name another Python: make PYTHON=python3.13 ..." \
        "$1 不能建立虚拟环境：缺少 venv 和 ensurepip 模块。在 Debian 和 Ubuntu 上请运行：sudo apt install python$2-venv；或者指定另一个 Python：make PYTHON=python3.13 ..."
}

choose_python() {
    if [ -n "$PYTHON" ]; then
        version=$(version_of "$PYTHON")
        [ -n "$version" ] || fail "PYTHON=$PYTHON does not run. Name a Python $RANGE: make PYTHON=python3.13 ..." \
            "PYTHON=$PYTHON 无法运行。请指定 Python（$RANGE）：make PYTHON=python3.13 ..."
        contains "$SUPPORTED" "$version" ||
            fail "Python $RANGE is needed, and $PYTHON is $version. Name another one: make PYTHON=python3.13 ..." \
                "需要 Python $RANGE，而 $PYTHON 是 $version。请指定另一个：make PYTHON=python3.13 ..."
        has_venv "$PYTHON" || no_venv "$PYTHON" "$version"
        return
    fi
    unsupported= without_venv= without_venv_version=
    for name in $(printf 'python%s ' $SUPPORTED) python3; do
        version=$(version_of "$name") || continue
        if ! contains "$SUPPORTED" "$version"; then
            unsupported=$version
        elif has_venv "$name"; then
            PYTHON=$name
            [ -z "$without_venv" ] || say "$without_venv has no venv module, so $PYTHON is used." \
                "$without_venv 没有 venv 模块，改用 $PYTHON。"
            return
        elif [ -z "$without_venv" ]; then
            without_venv=$name without_venv_version=$version
        fi
    done
    [ -z "$without_venv" ] || no_venv "$without_venv" "$without_venv_version"
    [ -n "$unsupported" ] && only="only Python $unsupported" || only='no Python'
    fail "Python $RANGE is needed, and $only was found. Install one, or name it: make PYTHON=/path/to/python3.13 ..." \
        "需要 Python $RANGE，但没有找到（$only）。请安装，或者指定：make PYTHON=/path/to/python3.13 ..."
}

# ---- PyTorch and its disk space ----

installed_torch() { # cpu, default, or nothing
    for found in "$VENV"/lib/python*/site-packages/torch-[0-9]*.dist-info; do
        case $found in *+cpu.dist-info) echo cpu ;; *'*'*) ;; *) echo default ;; esac
    done
}

has_driver() {
    command -v nvidia-smi >/dev/null || [ -e /proc/driver/nvidia/version ] || [ -e /usr/lib/wsl/lib/nvidia-smi ]
}

# Set the megabytes to download and on disk. Only PyTorch's default build for Linux includes CUDA libraries.
measure() {
    if [ "$TORCH" = cpu ] || [ "$(uname -s)" != Linux ]; then
        what='PyTorch and the other packages' download_mb=400 disk_mb=2000
    else
        what='PyTorch with its CUDA libraries and the other packages' download_mb=3000 disk_mb=7000
    fi
}

gigabytes() {
    awk "BEGIN { printf \"%.1f GB\", $1 / 1000 }"
}

existing_parent() {
    folder=$1
    while [ ! -d "$folder" ]; do folder=$(dirname -- "$folder"); done
    echo "$folder"
}

free_mb() {
    df -Pk "$1" 2>/dev/null | awk 'NR == 2 { printf "%d", $4 * 1.024 / 1000 }'
}

mount_of() {
    df -Pk "$1" 2>/dev/null | awk 'NR == 2 { print $6 }'
}

require_room() { # require_room FOLDER MEGABYTES WHAT-ELSE-TO-DO THE-SAME-IN-CHINESE
    free=$(free_mb "$1")
    [ -z "$free" ] || [ "$free" -ge "$2" ] ||
        fail "$(cd "$1" && pwd) has $(gigabytes "$free") free, and $what need $(gigabytes "$2") there. Make room$3." \
            "$(cd "$1" && pwd) 剩余 $(gigabytes "$free")，安装需要 $(gigabytes "$2")。请腾出空间$4。"
}

require_all_room() {
    beside=$(existing_parent "$VENV") temporary=${TMPDIR:-/tmp} cpu= cpu_zh=
    [ "$TORCH" = cpu ] || has_driver || {
        cpu=', or add TORCH=cpu to the command for the smaller build'
        cpu_zh='，或在命令里加上 TORCH=cpu 安装较小的版本'
    }
    if [ "$(mount_of "$beside")" = "$(mount_of "$temporary")" ]; then
        require_room "$beside" $((disk_mb + download_mb)) "$cpu" "$cpu_zh"
    else
        require_room "$beside" "$disk_mb" "$cpu" "$cpu_zh"
        require_room "$temporary" "$download_mb" ", or add TMPDIR=FOLDER to the command, with a folder on a larger disk" \
            "，或在命令里加上 TMPDIR=FOLDER（较大磁盘上的文件夹）"
    fi
}

announce() {
    say "Setting up $VENV with $1, once. $what: about $(gigabytes "$download_mb") to download, $(gigabytes "$disk_mb") on disk." \
        "正在用 $1 建立 $VENV，只需一次：约下载 $(gigabytes "$download_mb")，占用磁盘 $(gigabytes "$disk_mb")。"
    [ "$TORCH" = cpu ] || [ "$(uname -s)" != Linux ] || has_driver ||
        say 'No NVIDIA driver was found. To download 0.4 GB instead of 3 GB, press Ctrl-C and add TORCH=cpu to the command.' \
            '没有找到 NVIDIA 驱动。要把下载量从 3 GB 减到 0.4 GB，请按 Ctrl-C，并在命令里加上 TORCH=cpu。'
}

# ---- pip ----

pip_install() {
    "$VENV/bin/python" -m pip install --quiet --disable-pip-version-check "$@" >"$LOG" 2>&1
}

explain_pip() {
    if grep -qi 'no space left\|quota exceeded' "$LOG"; then
        fail "There is no room left on the disk of $VENV or of ${TMPDIR:-/tmp}. Make room, or add TMPDIR=FOLDER to the command, with a folder on a larger disk, and type the same command again." \
            "$VENV 或 ${TMPDIR:-/tmp} 所在的磁盘已满。请腾出空间，或在命令里加上 TMPDIR=FOLDER（较大磁盘上的文件夹），再运行同一命令。"
    fi
    if grep -Eqi "$UNREACHABLE" "$LOG"; then
        fail "The package index cannot be reached. Check the network; behind a proxy set HTTPS_PROXY; to use an index of your own, set PIP_INDEX_URL. Then type the same command again. pip's messages are in $LOG." \
            "无法访问软件源。请检查网络；使用代理时请设置 HTTPS_PROXY；使用镜像时请设置 PIP_INDEX_URL。然后再运行同一命令。pip 的输出在 $LOG。"
    fi
    problem=$(sed -n 's/^ *ERROR: *//p' "$LOG" | tail -n 1)
    fail "pip could not install the packages${problem:+: ${problem%.}}. The output of pip is in $LOG." \
        "pip 无法安装软件包${problem:+：${problem%.}}。pip 的输出在 $LOG。"
}

install_cpu_torch() {
    say "Installing PyTorch's CPU build from $TORCH_CPU_INDEX." \
        "正在从 $TORCH_CPU_INDEX 安装 PyTorch 的 CPU 版。"
    pip_install --no-deps --index-url "$TORCH_CPU_INDEX" "torch==$TORCH_VERSION+cpu" && return
    grep -qi 'no space left\|quota exceeded' "$LOG" && explain_pip
    fail "PyTorch's CPU build cannot be fetched from $TORCH_CPU_INDEX. Type make without TORCH=cpu for the default build (3 GB), or put the wheel of torch $TORCH_VERSION+cpu into a folder and add PIP_FIND_LINKS=FOLDER." \
        "无法从 $TORCH_CPU_INDEX 取得 PyTorch 的 CPU 版。请去掉 TORCH=cpu 安装默认版（3 GB），或把 torch $TORCH_VERSION+cpu 的 wheel 放进文件夹，并加上 PIP_FIND_LINKS=FOLDER。"
}

# ---- main ----

case $TORCH in '' | cpu) ;; *) fail "TORCH=$TORCH is unknown. Leave it out for PyTorch's default build, or set TORCH=cpu." \
    "不认识 TORCH=$TORCH。请去掉它以安装 PyTorch 默认版，或设置 TORCH=cpu。" ;; esac
set -- "$@" $(echo "${EXTRAS:-}" | tr , ' ')
for extra in $*; do
    contains "$(known_extras)" "$extra" || fail "There is no extra $extra (EXTRAS). There are: $(known_extras)" \
        "没有可选依赖 $extra（EXTRAS）。可用的有：$(known_extras)"
done

torch=$(installed_torch)
if [ "$TORCH" = cpu ] && [ "$torch" = default ]; then
    fail "$VENV already has PyTorch's default build. For the CPU build, type make clean first; it keeps your runs." \
        "$VENV 里已有 PyTorch 默认版。要安装 CPU 版，请先运行 make clean，它不会删除各次运行。"
fi
installed=
[ ! -e "$STAMP" ] || installed=$(cat "$STAMP")
is_complete=yes
[ -e "$STAMP" ] || is_complete=
for source in pyproject.toml constraints.txt data/starter/pyproject.toml; do
    [ ! "$source" -nt "$STAMP" ] || is_complete=
done
for extra in $*; do
    contains "$installed" "$extra" || is_complete=
done
if [ -n "$PYTHON" ] && [ -x "$VENV/bin/python" ]; then
    version=$(version_of "$VENV/bin/python")
    [ "$version" = "$(version_of "$PYTHON")" ] || say "$VENV keeps its Python $version; for $PYTHON type make clean first." \
        "$VENV 仍使用 Python $version；要换成 $PYTHON，请先运行 make clean。"
fi
[ -z "$is_complete" ] || exit 0

[ "$torch" != cpu ] || TORCH=cpu
measure
if [ -x "$VENV/bin/python" ] && "$VENV/bin/python" -m pip --version >/dev/null 2>&1; then
    if [ -z "$torch" ]; then
        require_all_room
        announce "Python $(version_of "$VENV/bin/python")"
    fi
else
    [ ! -e "$VENV/bin" ] || fail "$VENV is damaged, or its Python is gone. Type make clean, then the same command again; your runs are kept." \
        "$VENV 已损坏，或者它的 Python 已不存在。请运行 make clean，再运行同一命令；各次运行不会删除。"
    choose_python
    require_all_room
    announce "$PYTHON (Python $version)"
    "$PYTHON" -m venv "$VENV" >/dev/null 2>&1 || {
        rm -rf "$VENV"
        no_venv "$PYTHON" "$version"
    }
fi

[ "$TORCH" != cpu ] || [ "$(uname -s)" != Linux ] ||
    [ -d "$(echo "$VENV"/lib/python*/site-packages/torch-"$TORCH_VERSION"+cpu.dist-info)" ] || install_cpu_torch
extras=$(with_implied $* $installed | sort -u | tr '\n' ' ')
say "Installing packages with pip, which may take minutes; its messages are in $LOG." \
    "正在用 pip 安装软件包，可能需要几分钟；pip 的输出在 $LOG。"
pip_install -c constraints.txt -e ".[$(echo $extras | tr ' ' ,)]" -e data/starter || explain_pip
echo "$extras" >"$STAMP"
