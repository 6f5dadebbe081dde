#!/bin/sh
# From raw text to a model: the variables CORPUS, RUN, CONFIG, SET, INIT, EXTRAS, ARGS of `make help`, as options of pipeline.
set -u

. make/messages.sh

if [ -n "${CORPUS+given}" ]; then
    config=configs/small.toml
    # One path, which may have spaces, or words: paths and globs.
    if [ -e "$CORPUS" ]; then set -- "$CORPUS"; else set -- $CORPUS; fi
    for path; do
        [ "$path" != - ] || continue
        # Before anything is installed.
        [ -e "$path" ] || fail "CORPUS: $path does not exist. Check the path; it is relative to $(pwd)." \
            "CORPUS：$path 不存在。请检查路径（相对于 $(pwd)）。"
    done
    [ $# -gt 0 ] || fail "CORPUS is empty. Give a file or folder of text, or leave out CORPUS= to train on data/sample." \
        "CORPUS 为空。请指定文本文件或文件夹；要用 data/sample 训练，请去掉 CORPUS=。"
else
    say 'Without CORPUS, a tiny model is trained on the sample text, data/sample.' '没有给出 CORPUS：用示例文本 data/sample 训练一个很小的模型。'
    set -- data/sample
    config=configs/tiny.toml
fi

# The run has the name of the corpus; that of the folder if there are several files.
case $1 in
-) name=stdin ;;
*) name=$(realpath "$1") && [ $# -eq 1 ] || name=$(dirname "$name") ;;
esac
name=$(basename "$name" | sed -E 's/(\.(txt|text))?(\.(gz|bz2|xz|zst))?$//; s/[][*?%&=:[:space:]]+/-/g; s/^latest$/latest-text/')
RUN=${RUN:-runs/$name}
# A run keeps its own settings, so the default configuration is only for a new run.
[ -e "$RUN/config.toml" ] || CONFIG=${CONFIG:-$config}

sh make/set-up.sh corpus explore tasks || exit 1

set -- "$@" --run "$RUN"
[ -z "${CONFIG:-}" ] || set -- "$@" --config "$CONFIG"
[ -z "${INIT:-}" ] || set -- "$@" --init "$INIT"
set -f
for setting in ${SET:-}; do
    set -- "$@" --set "$setting"
done
set +f
eval "set -- \"\$@\" ${ARGS:-}" # ARGS is written as in a shell, with quotes
exec "${VENV:-.venv}/bin/elmo-zh" pipeline "$@"
