"""Measure the text to embed, and check that its vectors fit on the disk, before the work begins."""

from dataclasses import dataclass, field
from typing import Any

from elmo_zh.corpus.input_texts import InputText
from elmo_zh.corpus.sources import Stamp
from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.embed.rows import is_long, iter_rows
from elmo_zh.run.files import file_digest
from elmo_zh.run.reporter import Reporter, counted
from elmo_zh.text.segmenters.registry import split_tokens

# Raw lines that are segmented to estimate the number of tokens: from this many to twice as many.
_SAMPLE_LINES = 256


@dataclass(frozen=True, kw_only=True)
class Survey:
    """The size of a text.

    Attributes:
        lines: Number of lines.
        tokens: Number of tokens, counted or estimated.
        sampled_lines: Number of lines from which the tokens were estimated; 0 if they were counted.
        source_digest: Digest of the file, as `file_digest` returns it.
        num_long: Number of lines that consist of several sentences.
        first_long: Number of the first of them, from 1.
    """

    lines: int
    tokens: int
    sampled_lines: int = 0
    source_digest: str = field(default="", compare=False)
    num_long: int = field(default=0, compare=False)
    first_long: int = field(default=0, compare=False)

    def describe(self, unit: str = "line") -> str:
        """Return the numbers for people."""
        if not self.sampled_lines:
            return f"{counted(self.lines, unit)}, {counted(self.tokens, 'token')}"
        sample = counted(self.sampled_lines, unit)
        return f"{counted(self.lines, unit)}, about {self.tokens:,} tokens (estimated from {sample})"

    def describe_long(self, name: str) -> str:
        """Return the advice to split long lines of a text of this name; empty if it has none."""
        if not self.num_long:
            return ""
        return (
            f"Long lines of {name} hold several sentences ({self.num_long:,} of {self.lines:,}, such as line"
            f" {self.first_long:,}, counted from 1), but the model was trained on single ones, so their vectors are"
            " worse than they could be. To split them as in training, add: --split-sentences"
        )


def count_lines_and_tokens(
    embedder: ElmoEmbedder, text: InputText, *, segmented: bool, split: bool = False, reporter: Reporter | None = None
) -> Survey:
    """Read a text once: compute its digest, check that every line is sound, count lines and tokens.

    Args:
        embedder: The model, which knows how raw text is segmented.
        text: The text.
        segmented: Its tokens are split at U+0020, and counted; the tokens of raw lines are estimated.
        split: Its lines are split into sentences, each of which counts as a line.
        reporter: Receives how the text is read.

    Raises:
        CorpusError: If the text cannot be read.
    """
    lines = tokens = characters = num_long = first_long = 0
    sample = _Sample()
    stamp = Stamp.of(text.source)
    digest = file_digest(text.source.path)
    for row in iter_rows(text, split=split, reporter=reporter):
        if segmented:
            tokens += len(split_tokens(row.text))
        else:
            sample.offer(lines, row.text)
            if not split and is_long(row.text):
                num_long += 1
                first_long = first_long or lines + 1
        characters += len(row.text)
        lines += 1
    stamp.require(text.source)
    known: dict[str, Any] = {"lines": lines, "source_digest": digest, "num_long": num_long, "first_long": first_long}
    if segmented:
        return Survey(tokens=tokens, **known)
    sampled_characters = sum(map(len, sample.lines))
    sampled_tokens = sum(len(embedder.tokens(line)) for line in sample.lines)
    if len(sample.lines) == lines:
        return Survey(tokens=sampled_tokens, **known)
    estimate = round(characters * sampled_tokens / max(1, sampled_characters))
    return Survey(tokens=estimate, sampled_lines=len(sample.lines), **known)


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
