"""What the name of a file says about its content."""

import mimetypes
import re
from pathlib import PurePosixPath

from elmo_zh.corpus.packing import COMPRESSED_SUFFIXES

FORMAT_OF_SUFFIX = {
    ".txt": "text",
    ".text": "text",
    ".csv": "csv",
    ".tsv": "tsv",
    ".json": "json",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".xml": "wikidump",
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
    ".md": "markdown",
    ".markdown": "markdown",
}
ARCHIVE_SUFFIXES = (".zip", ".tar", ".tgz", ".tbz2", ".txz", ".tzst")
KINDS = ".txt, .csv, .tsv, .json, .jsonl, .xml, .html, .md, also packed as .gz, .bz2, .xz, .zst, .zip, .tar"

# It stands beside a multistream dump and holds offsets.
_DUMP_INDEX = re.compile(r"-multistream-index\d*\.txt$")


def without_compression(name: str) -> str:
    """Return a file's name in small letters without its folder and the suffix of its compression."""
    name = PurePosixPath(name).name.lower()
    for suffix in COMPRESSED_SUFFIXES:
        name = name.removesuffix(suffix)
    return name


def suffix_of(name: str) -> str:
    """Return what a file's name ends in, compression aside: ".csv" of "a.csv.gz"; empty if that is nothing."""
    return PurePosixPath(without_compression(name)).suffix


def is_corpus_name(name: str) -> bool:
    """Return whether a file found in a folder is taken for text: by its suffix, or because it has none."""
    suffix = suffix_of(name)
    if _DUMP_INDEX.search(without_compression(name)):
        return False
    return not suffix or suffix in FORMAT_OF_SUFFIX or suffix in ARCHIVE_SUFFIXES


def is_archive_name(name: str) -> bool:
    """Return whether a file is an archive by its name."""
    return suffix_of(name) in ARCHIVE_SUFFIXES


def is_other_name(name: str) -> bool:
    """Return whether a name is known as that of something else than a corpus: an image, a program, an office file."""
    if is_corpus_name(name):
        return False
    # The table that comes with Python, not the machine's, so that it is the same everywhere.
    kind, _ = mimetypes.MimeTypes().guess_type(without_compression(name))
    return kind is not None or bool(_DUMP_INDEX.search(without_compression(name)))


def shown(name: str) -> str:
    """Return a name in one line: what a terminal would obey, and bytes that are no text, are spelt."""
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in name)


def is_hidden(path: PurePosixPath) -> bool:
    """Return whether a part of a path starts with a dot, or is the folder of forks that macOS puts into archives."""
    return any((part.startswith(".") and part != "..") or part == "__MACOSX" for part in path.parts)
