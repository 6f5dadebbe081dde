"""How much there is to embed, and whether its vectors fit on the disk: known before the work begins."""

import shutil
from dataclasses import dataclass, field
from pathlib import Path

from elmo_zh.corpus.files import iter_lines
from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.errors import OutputError
from elmo_zh.run.reporter import Reporter, format_bytes
from elmo_zh.text.segmenters.registry import split_tokens

# Raw lines that are segmented to estimate how many tokens there are: this many, up to twice as many.
_SAMPLE_LINES = 256
# So much of an estimate is taken for certain.
_SURE_SHARE = 0.5


@dataclass(frozen=True, kw_only=True)
class Survey:
    """What a text holds.

    Attributes:
        lines: How many.
        tokens: How many, exactly or about.
        sampled_lines: From how many lines the tokens were estimated; 0 if they were counted.
    """

    lines: int
    tokens: int
    sampled_lines: int = 0

    def describe(self) -> str:
        """Return the numbers for people."""
        if not self.sampled_lines:
            return f"{self.lines:,} lines, {self.tokens:,} tokens"
        return f"{self.lines:,} lines, about {self.tokens:,} tokens (by {self.sampled_lines:,} of the lines)"

    def share(self, num_lines: int) -> "Survey":
        """Return what a part of so many lines holds, about."""
        if num_lines == self.lines:
            return self
        tokens = round(self.tokens * num_lines / max(1, self.lines))
        return Survey(lines=num_lines, tokens=tokens, sampled_lines=self.sampled_lines or num_lines)


def survey_text(embedder: ElmoEmbedder, source: Path, *, segmented: bool) -> Survey:
    """Read a text once: all its lines are sound, and how many tokens they have is known, or estimated if it is raw.

    Raises:
        CorpusError: If the text cannot be read.
    """
    lines = tokens = characters = 0
    sample = _Sample()
    for line in iter_lines(source):
        if segmented:
            tokens += len(split_tokens(line))
        else:
            sample.offer(lines, line)
        characters += len(line)
        lines += 1
    if segmented:
        return Survey(lines=lines, tokens=tokens)
    sampled_characters = sum(map(len, sample.lines))
    sampled_tokens = sum(len(embedder.tokens(line)) for line in sample.lines)
    estimate = round(characters * sampled_tokens / max(1, sampled_characters))
    if len(sample.lines) == lines:
        return Survey(lines=lines, tokens=sampled_tokens)
    return Survey(lines=lines, tokens=estimate, sampled_lines=len(sample.lines))


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


def check_room(output: Path, needed: float, *, is_exact: bool, reporter: Reporter) -> str:
    """Return how much room there is and will be needed, for people.

    Args:
        output: Where it will be written.
        needed: Bytes that it will take.
        is_exact: Whether that number is certain; else half of it is.
        reporter: Where to tell that the room may not be enough.

    Raises:
        OutputError: If there is certainly not enough.
    """
    folder = next(folder for folder in output.absolute().parents if folder.is_dir())
    free = shutil.disk_usage(folder).free
    about = "" if is_exact else "about "
    if needed * (1 if is_exact else _SURE_SHARE) > free:
        raise OutputError(
            f"{output}: {about}{format_bytes(needed)} are needed, the parts and their join together, but its disk has"
            f" {format_bytes(free)} free. Make room, or write less: --layers average, --dtype float16, --pool mean."
        )
    if needed > free:
        reporter.warn(
            f"{output}: about {format_bytes(needed)} will be needed, but its disk has {format_bytes(free)} free."
        )
    return f"{about}{format_bytes(needed)} needed on the way, {format_bytes(free)} free"
