"""Recognise what elmo-zh has written among texts, which is not text to read."""

import re
from collections.abc import Collection
from pathlib import Path

from elmo_zh.run.files import PARTS, UNFINISHED

# Names that only a folder of ours has together.
_FOLDERS = (
    {"config.toml", "stages"},  # a run
    {"options.json", "bundle.json"},
    {"options.json", "vocab.txt"},  # a model in the layout of another program
    {"index.json", "occurrences.npy"},
    {"task.json", "head.safetensors"},
    {"comparison.json", "comparison.md"},
    {"probe.json", "probe.md"},
    {"info.json", "vectors.npy"},
)
# How the files begin that have a suffix of texts: rows of `score` and `embed`; of `task predict`; of `senses` and
# `drift`; of `concordance`, `frequencies`, `collocates` and `keywords`; the page of `explore`.
_SUFFIXES, _HEAD_BYTES = (".tsv", ".csv", ".jsonl", ".html"), 65_536
_HEADS = re.compile(
    rb"(file\t)?line\t(tokens\tunknown|place\tstart\tend)\t"
    rb'|\{("file": "[^\n]*", )?"line": \d+, "(tokens|place)": '
    rb"|(label\tprobability\ttext|line\tstart\tend\tlabel\t(probability\t)?text)"
    rb'|\{"text1?": "[^\n]*", ("label": "[^\n]*", "probabilities": \{|"units": \[[^\n]*, "offsets": \[\[)'
    rb"|occurrence\tusage\tcosine\t|word\told\tnew\told_count\t"
    rb"|(\xef\xbb\xbf)?(number[\t,]source[\t,]line[\t,]start|name[\t,]part[\t,]count)[\t,]"
    rb"|(\xef\xbb\xbf)?word[\t,](together[\t,]count|count[\t,]other_count)[\t,]"
    rb'|\{"(number": \d+, "source|name": "[^\n]*", "part|word": "[^\n]*", "(together|count": \d+, "other_count))": '
    rb"|<!DOCTYPE html>.{,4096}<title>elmo-zh explore</title>",
    re.DOTALL,
)


def is_own_folder(path: Path, names: Collection[str]) -> bool:
    """Return whether a folder with files and folders of these names is a run, a model, an index or another output."""
    if path.name.endswith(UNFINISHED) or (path.name.endswith(PARTS) and "manifest.json" in names):
        return True
    return any(marks.issubset(names) for marks in _FOLDERS)


def is_own_file(path: Path) -> bool:
    """Return whether a file begins as an output does."""
    if not path.name.endswith(_SUFFIXES):
        return False
    with path.open("rb") as file:
        return _HEADS.match(file.read(_HEAD_BYTES)) is not None
