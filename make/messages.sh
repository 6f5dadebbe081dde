# Messages of make in English and Chinese, chosen by the same variables as those of the program (elmo_zh/language.py).

case ${ELMO_ZH_LANG:-${LANGUAGE:-${LC_ALL:-${LC_MESSAGES:-${LANG:-en}}}}} in [zZ][hH]*) LANGUAGE_CHOSEN=zh ;; *) LANGUAGE_CHOSEN=en ;; esac

say() { # say ENGLISH CHINESE
    if [ "$LANGUAGE_CHOSEN" = zh ]; then echo "$2" >&2; else echo "$1" >&2; fi
}

fail() { # fail ENGLISH CHINESE
    say "Error: $1" "错误：$2"
    exit 1
}
