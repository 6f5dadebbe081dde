"""Writers of outputs, one format a module: blocks of lines in, one file or folder out, in bounded memory."""

import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

from elmo_zh.embed.blocks import Contents, LineBlock

# What is added to the name of the text.
SUFFIXES = {"hdf5": ".hdf5", "npy": ".npy", "parquet": ".parquet", "jsonl": ".jsonl", "word2vec": ".vec"}


@dataclass(frozen=True, kw_only=True)
class OutputForm:
    """In what form vectors are written; the same vectors whatever it is.

    Attributes:
        format: One of SUFFIXES.
        layout: Of HDF5: lines (one dataset a line) or packed (all lines in one, with a table of offsets).
        compression: Of packed HDF5.
        sentence_index: Add AllenNLP's sentence_to_index, of HDF5 with one dataset a line.
    """

    format: str = "hdf5"
    layout: str = "lines"
    compression: str = "none"
    sentence_index: bool = False


class Writer(Protocol):
    """One format."""

    def check(self) -> None:
        """Raise ElmoZhError if something that is needed is not installed."""

    def estimate_bytes(self, contents: Contents) -> int:
        """Return about how large the output will be."""

    def write(self, path: Path, contents: Contents, blocks: Iterator[LineBlock], form: OutputForm) -> Mapping[str, int]:
        """Write all blocks, in order, at a path where nothing is yet; return counts worth telling."""


def choose_writer(form: OutputForm) -> Writer:
    """Return the writer of a form; its libraries are imported only now."""
    name = f"hdf5_{form.layout}" if form.format == "hdf5" else form.format
    return cast(Writer, importlib.import_module(f"elmo_zh.embed.formats.{name}"))
