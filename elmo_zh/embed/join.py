"""The last step of a dump: the packed file becomes the output."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import compress
from pathlib import Path

from elmo_zh.embed.formats import OutputForm, choose_writer, hdf5_packed
from elmo_zh.embed.line_blocks import Contents, LineBlock, TextBlock
from elmo_zh.embed.unfinished import DumpCounts
from elmo_zh.errors import OptionError, OutputError
from elmo_zh.run.files import atomic_path, link_or_copy
from elmo_zh.run.reporter import Progress, Reporter
from elmo_zh.vocabulary.vocabulary import UnknownWords

_REPORTED_WORDS = 10


@dataclass(frozen=True, kw_only=True)
class DumpReport:
    """Report on a finished output.

    Attributes:
        output: The file or folder.
        counts: Its counts.
        unknown_words: The most frequent words that the model cannot tell apart, each with its count.
        extra: Counts that only its format has.
    """

    output: Path
    counts: DumpCounts
    unknown_words: Mapping[str, int]
    extra: Mapping[str, int]


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


def is_plain_packed(form: OutputForm) -> bool:
    """Return whether the output is the packed file of an unfinished dump as it is."""
    return (form.format, form.layout, form.compression) == ("hdf5", "packed", "none")


def finish_packed(packed: Path, output: Path, counts: DumpCounts) -> DumpReport:
    """Give a complete packed file the name of the output, without copying its vectors."""
    unknown_words = dict(count_unknown_words(packed).most_common(_REPORTED_WORDS))
    with atomic_path(output) as unfinished:
        link_or_copy(packed, unfinished)
    return DumpReport(output=output, counts=counts, unknown_words=unknown_words, extra={})


def count_unknown_words(packed: Path) -> Counter[str]:
    """Return the counts of the unknown words of a packed file; of very many distinct ones, the most frequent half."""
    unknown = UnknownWords[bytes]()
    for block in hdf5_packed.iter_text_blocks([packed]):
        _count_unknown(block, unknown)
    return _decoded(unknown)


def join_blocks(
    joined: Iterable[LineBlock],
    output: Path,
    contents: Contents,
    counts: DumpCounts,
    form: OutputForm,
    reporter: Reporter,
) -> DumpReport:
    """Write the output from the lines of packed files; it appears complete or not at all.

    Raises:
        OutputError: If there are more or fewer lines than there should be.
    """
    unknown = UnknownWords[bytes]()
    with (
        atomic_path(output) as unfinished,
        reporter.progress("join", unit="lines", total=contents.num_lines) as progress,
    ):
        blocks = _check_blocks(joined, contents, unknown, progress)
        extra = choose_writer(form).write(unfinished, contents, blocks, form)
    unknown_words = dict(_decoded(unknown).most_common(_REPORTED_WORDS))
    return DumpReport(output=output, counts=counts, unknown_words=unknown_words, extra=extra)


def _check_blocks(
    blocks: Iterable[LineBlock], contents: Contents, unknown: UnknownWords[bytes], progress: Progress
) -> Iterator[LineBlock]:
    """Pass blocks on; check that none is missing, count unknown words, advance the progress."""
    expected = contents.first_line
    for block in blocks:
        if block.first_line != expected:
            raise OutputError(f"Line {expected} is missing between the files that are joined.")
        expected += block.num_lines
        _count_unknown(block, unknown)
        yield block
        progress.update(block.num_lines)
    if expected != contents.first_line + contents.num_lines:
        raise OutputError(f"The files that are joined end before line {expected}.")


def _count_unknown(block: TextBlock, unknown: UnknownWords[bytes]) -> None:
    unknown.add(compress(block.tokens, block.unknown))


def _decoded(unknown: UnknownWords[bytes]) -> Counter[str]:
    return Counter({word.decode(): count for word, count in unknown.counts.items()})
