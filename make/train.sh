#!/bin/sh
# From raw text to a model. The variables are those of `make help`: CORPUS, RUN, CONFIG, SET, INIT, EXTRAS, ARGS.
#
# Misspelt names are reported before anything is installed or written.
set -u

VENV=${VENV:-.venv}

. "$(dirname "$0")/messages.sh"

expand_home() {
    case $1 in '~') echo "$HOME" ;; '~'/*) echo "$HOME/${1#??}" ;; *) echo "$1" ;; esac
}

# The last name of a path, or of an address without its query; with the host if the name alone is meaningless.
last_name() {
    case $1 in
    -) echo stdin ;;
    *://*)
        address=${1%%[?#]*}
        address=${address#*://}
        address=${address%/}
        name=${address##*/}
        case $name in
        "$address") ;;
        index | index.* | download | data | data.* | raw | latest | text | corpus) name=${address%%/*}-$name ;;
        esac
        echo "$name"
        ;;
    *) basename -- "$(realpath "$1" 2>/dev/null || echo "$1")" ;;
    esac
}

run_name() {
    last_name "$1" | sed -E 's/(\.(txt|text))?(\.(gz|bz2|xz|zst))?$//; s/[][*?%&=:[:space:]]+/-/g; s/^latest$/latest-text/'
}

if [ -z "${CORPUS+given}" ]; then
    set -- data/sample
    name=sample
    config=configs/tiny.toml
else
    case $CORPUS in
    *[![:space:]]*) ;;
    *) fail "CORPUS: it is empty. Give a file or folder of text, or leave out CORPUS= to train on data/sample." \
        "CORPUS：内容为空。请给出文本文件或文件夹；要用 data/sample 训练，请去掉 CORPUS=。" ;;
    esac
    CORPUS=$(expand_home "$CORPUS")
    config=configs/small.toml
    if [ -e "$CORPUS" ]; then # one path, perhaps with spaces
        set -- "$CORPUS"
        name=$(run_name "$CORPUS")
    else # one or several, with globs
        set --
        name=
        set -f
        for word in $CORPUS; do
            word=$(expand_home "$word")
            case $word in
            - | *://*)
                set -- "$@" "$word"
                name=${name:-$(run_name "$word")}
                continue
                ;;
            esac
            # The run is named after the folder of a glob.
            if [ -e "$word" ]; then path=$word; else path=$(dirname -- "$word"); fi
            set +f
            for file in $word; do
                if [ -e "$word" ]; then file=$word; fi
                [ -e "$file" ] || fail "CORPUS: $word does not exist. Check the path; it is relative to the current folder $(pwd). If an argument contains spaces, put it in quotes." \
                    "CORPUS：$word 不存在。请检查路径（相对于当前文件夹 $(pwd)）。含空格的参数要加引号。"
                set -- "$@" "$file"
            done
            set -f
            name=${name:-$(run_name "$path")}
        done
        set +f
    fi
fi

RUN=$(expand_home "${RUN:-}")
RUN=${RUN:-runs/$name}
# A run keeps its own settings, so the default configuration is only for a new run.
CONFIG=$(expand_home "${CONFIG:-}")
[ -n "$CONFIG" ] || [ -e "$RUN/config.toml" ] || CONFIG=$config
[ -z "$CONFIG" ] || [ -e "$CONFIG" ] || fail "CONFIG: $CONFIG does not exist. There are: $(echo configs/*.toml)" \
    "CONFIG：$CONFIG 不存在。可用的有：$(echo configs/*.toml)"
INIT=$(expand_home "${INIT:-}")
# A run that exists may have used its model already; a name without / may be that of an installed model.
if [ -n "$INIT" ] && [ ! -e "$RUN/config.toml" ] && [ ! -e "$INIT/bundle.json" ]; then
    if [ -e "$INIT/model/bundle.json" ]; then fail "INIT: $INIT is a run. Write its model: INIT=$INIT/model" \
        "INIT：$INIT 是运行文件夹。请写它的模型：INIT=$INIT/model"; fi
    [ ! -f "$INIT" ] || fail "INIT: $INIT is a file, not the folder of a model. To start from word2vec vectors, use: SET=word2vec.vectors=$INIT" \
        "INIT：$INIT 是文件，不是模型的文件夹。要从 word2vec 向量开始，请使用：SET=word2vec.vectors=$INIT"
    case $INIT in
    */*) fail "INIT: $INIT is not a model. Give the folder of one, such as runs/NAME/model." \
        "INIT：$INIT 不是模型。请给出模型的文件夹，如 runs/NAME/model。" ;;
    esac
fi

sh make/set-up.sh corpus explore tasks || exit 1

set -- "$@" --run "$RUN"
[ -z "$CONFIG" ] || set -- "$@" --config "$CONFIG"
[ -z "$INIT" ] || set -- "$@" --init "$INIT"
set -f
for setting in ${SET:-}; do
    set -- "$@" --set "$setting"
done
set +f
eval "set -- \"\$@\" ${ARGS:-}" # ARGS is written as in a shell, with quotes
exec "$VENV/bin/elmo-zh" pipeline "$@"
