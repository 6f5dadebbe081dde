"""How much text there is to embed, and whether its vectors fit on the disk: known before the work begins."""

import hashlib
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from elmo_zh.corpus.files import iter_lines
from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.errors import OutputError
from elmo_zh.run.reporter import Reporter, counted, format_bytes
from elmo_zh.text.segmenters.registry import split_tokens

# Raw lines that are segmented to estimate the number of tokens: from this many to twice as many.
_SAMPLE_LINES = 256
# The fraction of an estimate that is taken as certain.
_CERTAIN_FRACTION = 0.5


@dataclass(frozen=True, kw_only=True)
class Survey:
    """The size of a text.

    Attributes:
        lines: Number of lines.
        tokens: Number of tokens, counted or estimated.
        sampled_lines: Number of lines from which the tokens were estimated; 0 if they were counted.
        source_digest: Digest of the file, as `file_digest` returns it.
    """

    lines: int
    tokens: int
    sampled_lines: int = 0
    source_digest: str = field(default="", compare=False)

    def describe(self) -> str:
        """Return the numbers for people."""
        if not self.sampled_lines:
            return f"{counted(self.lines, 'line')}, {counted(self.tokens, 'token')}"
        sample = counted(self.sampled_lines, "line")
        return f"{self.lines:,} lines, about {self.tokens:,} tokens (estimated from {sample})"

    def shard(self, num_lines: int) -> "Survey":
        """Return the estimated survey of a shard of so many lines."""
        if num_lines == self.lines:
            return self
        tokens = round(self.tokens * num_lines / max(1, self.lines))
        return Survey(lines=num_lines, tokens=tokens, sampled_lines=self.sampled_lines or num_lines)


def count_lines_and_tokens(embedder: ElmoEmbedder, source: Path, *, segmented: bool) -> Survey:
    """Read a text once: compute its digest, check that every line is sound, count lines and tokens.

    Args:
        embedder: The model, which knows how raw text is segmented.
        source: The text.
        segmented: Its tokens are split at U+0020, and counted; the tokens of raw lines are estimated.

    Raises:
        CorpusError: If the text cannot be read.
    """
    lines = tokens = characters = 0
    sample = _Sample()
    sha256 = hashlib.sha256()
    for line in iter_lines(source, digest=sha256):
        if segmented:
            tokens += len(split_tokens(line))
        else:
            sample.offer(lines, line)
        characters += len(line)
        lines += 1
    digest = f"sha256:{sha256.hexdigest()}"
    if segmented:
        return Survey(lines=lines, tokens=tokens, source_digest=digest)
    sampled_characters = sum(map(len, sample.lines))
    sampled_tokens = sum(len(embedder.tokens(line)) for line in sample.lines)
    estimate = round(characters * sampled_tokens / max(1, sampled_characters))
    if len(sample.lines) == lines:
        return Survey(lines=lines, tokens=sampled_tokens, source_digest=digest)
    return Survey(lines=lines, tokens=estimate, sampled_lines=len(sample.lines), source_digest=digest)


@dataclass
class _Sample:
    """Lines at equal distances, whatever the number of lines turns out to be."""

    lines: list[str] = field(default_factory=list)
    distance: int = 1

    def offer(self, number: int, line: str) -> None:
        if number % self.distance == 0:
            self.lines.append(line)
            if len(self.lines) >= 2 * _SAMPLE_LINES:
                self.lines = self.lines[::2]
                self.distance *= 2


def check_disk_space(output: Path, needed_bytes: float, *, is_exact: bool, reporter: Reporter) -> str:
    """Return how much disk space is needed and how much is free, for people.

    Args:
        output: The path of the output.
        needed_bytes: Bytes that will be written.
        is_exact: Whether that number is certain; else only half of it is.
        reporter: Receives a warning if the space may not be enough.

    Raises:
        OutputError: If the space is certainly not enough.
    """
    folder = next(folder for folder in output.absolute().parents if folder.is_dir())
    free = shutil.disk_usage(folder).free
    needed = ("" if is_exact else "about ") + format_bytes(needed_bytes)
    if needed_bytes * (1 if is_exact else _CERTAIN_FRACTION) > free:
        raise OutputError(
            f"{output}: {needed} of disk space are needed until it is finished, but only {format_bytes(free)} are"
            " free. Make room, or write less: --layers average, --dtype float16, --pool mean."
        )
    if needed_bytes > free:
        reporter.warn(
            f"{output}: {needed} of disk space will be needed until it is finished, but only {format_bytes(free)} are"
            " free."
        )
    return f"{needed} of disk space needed, {format_bytes(free)} free"
