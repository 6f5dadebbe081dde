"""Output formats, one writer per module: blocks of lines in, one file or folder out, in bounded memory."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

from elmo_zh.choices import HDF5_LAYOUTS, OUTPUT_FORMATS
from elmo_zh.embed.line_blocks import Contents, LineBlock
from elmo_zh.errors import OptionError, OutputError


@dataclass(frozen=True, kw_only=True)
class OutputForm:
    """The form in which vectors are written; the vectors are the same in all of them.

    Attributes:
        format: A name in `elmo_zh.choices.OUTPUT_FORMATS`.
        layout: Layout of HDF5: lines (one dataset per line) or packed (one for all lines, with a table of offsets).
        compression: Compression of packed HDF5.
        sentence_index: Add AllenNLP's sentence_to_index to HDF5 with one dataset per line.
        by_token: One row per token in Parquet, else one per line.
    """

    format: str = "hdf5"
    layout: str = "lines"
    compression: str = "none"
    sentence_index: bool = False
    by_token: bool = False

    @property
    def has_known_size(self) -> bool:
        """Whether the size follows from the numbers of lines and tokens; word2vec has one vector a distinct word."""
        return self.format != "word2vec"


class Writer(Protocol):
    """An output format as it is registered in `elmo_zh.choices.OUTPUT_FORMATS`: a module or an object.

    Attributes:
        SUFFIX: Suffix that is added to the name of the text, such as ".jsonl".
    """

    SUFFIX: str

    def check(self) -> None:
        """Raise ElmoZhError if something that the writer needs is not installed."""

    def estimate_bytes(self, contents: Contents) -> int:
        """Return the approximate size of the output in bytes."""

    def write(self, path: Path, contents: Contents, blocks: Iterator[LineBlock], form: OutputForm) -> Mapping[str, int]:
        """Write all blocks, in order, to a path where nothing exists yet; return counts worth reporting."""


def choose_writer(form: OutputForm) -> Writer:
    """Return the writer of a form, whose libraries are imported only now.

    Raises:
        ConfigError: If the format is unknown, or a plug-in that cannot be imported.
    """
    return cast(Writer, HDF5_LAYOUTS.load(form.layout) if form.format == "hdf5" else OUTPUT_FORMATS.load(form.format))


def check_form(form: OutputForm, *, layers: str, pool: str) -> None:
    """Raise OptionError for a form whose options contradict each other, the layers or the pooling."""
    if form.format != "hdf5" and form.layout != "lines":
        raise OptionError(f"--layout {form.layout} goes with --format hdf5, not {form.format}. Leave one of them out.")
    if form.compression != "none" and form.layout != "packed":
        raise OptionError(f"--compression {form.compression} needs --layout packed, whose datasets are large enough.")
    if form.sentence_index and (form.format, form.layout) != ("hdf5", "lines"):
        raise OptionError("--sentence-index needs HDF5 with one dataset per line. Leave out --format and --layout.")
    if form.by_token and (form.format != "parquet" or pool != "none"):
        raise OptionError(
            f"--by token writes one row per token into Parquet, but --format is {form.format} and --pool is {pool}."
            " Give --format parquet and no --pool."
        )
    if form.format == "word2vec" and (layers == "all" or pool != "none"):
        raise OptionError(
            f"--format word2vec holds one vector per word, but --layers is {layers} and --pool is {pool}."
            " Give --layers average, top, mix or a number, and no --pool."
        )
    choose_writer(form).check()


def is_output(path: Path, form: OutputForm) -> bool:
    """Return whether what is at a path may be an output of embed; an empty file may be anything.

    The format of a plug-in is recognised by its suffix.
    """
    if path.is_file() and not path.stat().st_size:
        return True
    built_in = [OUTPUT_FORMATS.load(name) for name in OUTPUT_FORMATS.built_in]
    if any(writer.is_output(path) for writer in built_in):
        return True
    return form.format not in OUTPUT_FORMATS.built_in and path.suffix == output_suffix(form)


def require_matching_suffix(output: Path, form: OutputForm) -> None:
    """Raise OutputError if the name of an output has the suffix of a format other than the one to write."""
    suffixes = {name: output_suffix(OutputForm(format=name)) for name in OUTPUT_FORMATS.built_in}
    named = next((name for name, suffix in suffixes.items() if output.suffix == suffix), form.format)
    if named != form.format and output.suffix != output_suffix(form):
        raise OutputError(
            f"--output {output} has the suffix of the format {named}, but the format is {form.format}."
            f" Add --format {named}, or give the output another name."
        )


def output_suffix(form: OutputForm) -> str:
    """Return the suffix of outputs in a form."""
    return choose_writer(form).SUFFIX
