"""Concordance lines, or KWIC: matches of a query in context, which can be sorted, filtered and written."""

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import numpy as np
from numpy.typing import NDArray

from elmo_zh.concordance.query import ANY, ONE, Query, TokenTable, compile_expression, find_matches
from elmo_zh.contexts.index import NO_VECTORS, ContextIndex
from elmo_zh.contexts.index_files import IndexedLine, free_name, note_type, require_column
from elmo_zh.contexts.nearest import unit_rows
from elmo_zh.errors import ConfigError, ElmoZhError, OptionError
from elmo_zh.language import _
from elmo_zh.run.files import atomic_path
from elmo_zh.run.reporter import Reporter, first_ten
from elmo_zh.run.tables import cell, save_rows

Numbers = NDArray[np.int64]

# The columns of the output that do not come from the texts.
OUTPUT_NAMES = ("number", "id", "source", "line", "start", "end", "left", "node", "right")
_NOT_IN_ATTRIBUTES = re.compile(r"[^a-z0-9_-]+")
# Characters that XML cannot hold.
_NOT_IN_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_PLACE = re.compile(r"([1-9])([LR])")


@dataclass(frozen=True, kw_only=True)
class ConcordanceLine:
    """One match in its line. Offsets in the raw line are in characters, from 0."""

    number: int  # its number among all matches in the order of the texts, from 1
    line: IndexedLine  # the line, or sentence, with the name and line number of its source
    start: int  # first character of the match in the raw line
    end: int  # one past its last character
    tokens: Sequence[str]
    first_token: int  # the index in `tokens` of the match's first token
    end_token: int  # one past its last token
    columns: Mapping[str, str]
    figures: Mapping[str, float]  # the requested figures: usage, cosine

    @property
    def parts(self) -> tuple[str, str, str]:
        """The text before the match, the match, and the text after it."""
        start, end = self.start - self.line.start, self.end - self.line.start
        return self.line.text[:start], self.line.text[start:end], self.line.text[end:]

    def described(self) -> dict[str, Any]:
        """Return the line as JSON values, in the order of the columns of the output."""
        left, node, right = self.parts
        place = {"source": self.line.source, "line": self.line.number, "start": self.start, "end": self.end}
        around = {"left": left, "node": node, "right": right}
        return {"number": self.number, **place, **self.figures, **self.columns, **around}


@dataclass(frozen=True, eq=False)
class Concordance:
    """The n matches of a query.

    Attributes:
        table: The tokens of the texts.
        first: The number of each match's first token, int64, shape (n,).
        end: One past its last token, int64, shape (n,).
        numbers: Its number in the order of the texts, from 1, int64, shape (n,).
        figures: Figures of each match by name (usage, cosine), float64, shape (n,).
    """

    table: TokenTable
    first: Numbers
    end: Numbers
    numbers: Numbers
    figures: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)

    @classmethod
    def of_matches(cls, table: TokenTable, matches: tuple[Numbers, Numbers]) -> "Concordance":
        """Build the concordance of all matches, numbered in the order of the texts."""
        return cls(table, *matches, np.arange(1, len(matches[0]) + 1))

    def __len__(self) -> int:
        return len(self.first)

    def take(self, places: NDArray[Any] | slice) -> "Concordance":
        """Return the matches selected by a mask, a slice or an array of indexes."""
        figures = {name: values[places] for name, values in self.figures.items()}
        return Concordance(self.table, self.first[places], self.end[places], self.numbers[places], figures)

    def sample(self, size: int, seed: int) -> "Concordance":
        """Return a random sample of at most `size` matches, in their original order."""
        chosen = np.random.default_rng(seed).permutation(len(self))[:size]
        return self.take(np.sort(chosen))

    def with_figure(self, name: str, values: NDArray[np.float64]) -> "Concordance":
        """Return a copy with an additional figure for each match."""
        return replace(self, figures={**self.figures, name: values})

    def containing(self, expression: str) -> "Concordance":
        """Return the matches whose lines contain a match of a regular expression."""
        pattern = compile_expression(expression, "--containing")
        found = [pattern.search(self.table.line(number).text) is not None for number in self.lines.tolist()]
        return self.take(np.array(found, np.bool_))

    @property
    def lines(self) -> Numbers:
        """The line of each match, int64, shape (n,)."""
        return self.table.lines_of(self.first)

    def sorted_by(self, keys: Sequence[str]) -> "Concordance":
        """Return the matches sorted by keys, most important key first; ties keep their order.

        A key is 1L to 9L or 1R to 9R, node, a column, usage, or cosine (in descending order). A leading - reverses the
        order.
        """
        columns = []
        for key in keys:
            values = self._sort_values(key.removeprefix("-"))
            columns.append(-values if key.startswith("-") else values)
        return self.take(np.lexsort(columns[::-1])) if columns else self

    def _sort_values(self, key: str) -> NDArray[Any]:
        if match := _PLACE.fullmatch(key):
            return self._ranks_beside(int(match[1]), match[2])
        if key == "node":
            spelled = [" ".join(self.table.tokens(int(first), int(end))) for first, end in self._spans()]
            return np.unique(spelled, return_inverse=True)[1] if spelled else np.empty(0, np.int64)
        if key in self.figures:
            return -self.figures[key] if key == "cosine" else self.figures[key]
        if re.fullmatch(r"\d+[LR]", key) and key not in self.table.columns:
            raise ConfigError.unexpected(f"--sort {key}", "1L-9L, 1R-9R")
        column = require_column(self.table.columns, key, "--sort")
        return column.ranks()[column.codes[self.lines]]

    def _ranks_beside(self, distance: int, side: str) -> NDArray[Any]:
        """Return the rank of the token at a distance from each match; -1 where the line has no such token."""
        places = self.first - distance if side == "L" else self.end + distance - 1
        lines = self.lines
        is_inside = (places >= self.table.first_tokens(lines)) & (places < self.table.ends[lines])
        words = self.table.words[np.where(is_inside, places, 0)] if len(places) else np.empty(0, np.int64)
        return np.where(is_inside, self.table.ranks[words], -1)

    def _spans(self) -> Iterator[tuple[int, int]]:
        return zip(self.first.tolist(), self.end.tolist(), strict=True)

    def column_names(self, *, for_vertical: bool = False) -> dict[str, str]:
        """Return the name under which each column except `source` is written; all names in an output are different.

        With `for_vertical`, names are legal attributes in the CWB: a-z, 0-9, - and _, without a digit at the start.
        """
        names: dict[str, str] = {}
        columns = [name for name in self.table.columns if name != "source"]
        for number, name in enumerate(columns, start=1):
            wanted = name
            if for_vertical:
                wanted = _NOT_IN_ATTRIBUTES.sub("_", name.strip().lower()).strip("_-")
                wanted = wanted if wanted[:1].isalpha() else f"column_{wanted or number}"
            others = () if for_vertical else set(columns) - {name}
            names[name] = free_name(wanted, {*OUTPUT_NAMES, *self.figures, *names.values(), *others})
        return names

    def __iter__(self) -> Iterator[ConcordanceLine]:
        table, names = self.table, self.column_names().items()
        for place, (number, (first, end)) in enumerate(zip(self.lines.tolist(), self._spans(), strict=True)):
            line, line_start = table.line(number), int(table.first_tokens(np.array([number]))[0])
            yield ConcordanceLine(
                number=int(self.numbers[place]),
                line=line,
                start=line.start + int(table.spans[first][0]),
                end=line.start + int(table.spans[end - 1][1]),
                tokens=table.tokens(line_start, int(table.ends[number])),
                first_token=first - line_start,
                end_token=end - line_start,
                columns={new: table.columns[name].values[table.columns[name].codes[number]] for name, new in names},
                figures={name: float(values[place]) for name, values in self.figures.items()},
            )


@dataclass(frozen=True)
class ReadTexts:
    """The texts that a command reads: their tokens, their index, if any, and the lines to search or count in."""

    table: TokenTable
    folded: TokenTable  # the same tokens in the form in which they are searched and counted
    index: ContextIndex | None
    wanted: NDArray[np.bool_]  # shape (L,)
    prepare: Callable[[str], str]  # brings a query into the form of the tokens

    def find(self, query: str) -> Concordance:
        """Return the matches of a query in the wanted lines."""
        matches = Concordance.of_matches(self.table, find_matches(self.folded, Query(self.prepare(query))))
        return matches.take(self.wanted[matches.lines])

    def require_index(self, option: str) -> ContextIndex:
        """Return the index being read; raise OptionError if files are being read instead."""
        if self.index is None:
            raise OptionError.needs(option, "--index INDEX")
        return self.index

    def note_types(self, names: Iterable[str], reporter: Reporter) -> None:
        """Report how each column is compared and sorted, if it has dates, or numbers mixed with other cells."""
        for name in dict.fromkeys(names):
            note_type(self.table.columns, name, reporter)


def note_longer_words(
    table: TokenTable, word: str, reporter: Reporter, wanted: NDArray[np.bool_] | None = None
) -> None:
    """Report how often a word also occurs inside longer words in the wanted lines, if it does.

    Nothing is reported about phrases and wildcards.
    """
    if word.split() != [word] or set(word) & {ANY, ONE}:
        return
    wider = f"{ANY}{word}{ANY}"
    inside, whole = (table.lines_of(find_matches(table, Query(query))[0]) for query in (wider, word))
    is_wanted = np.ones(len(table.ends), np.bool_) if wanted is None else wanted
    count = int(is_wanted[inside].sum() - is_wanted[whole].sum())
    if count > 0:
        message = _(
            "Occurrences of {word} inside longer words are not included: {count:,}. To see them, search for {wider}"
            " with concordance."
        )
        reporter.note(message.format(word=word, count=count, wider=shlex.quote(wider)))


def match_occurrences(index: ContextIndex, found: Concordance) -> list[Numbers]:
    """Return, for each match, the numbers of its tokens' occurrences in the index, int64; empty if it has none."""
    places = index.token_numbers()
    starts, ends = np.searchsorted(places, found.first), np.searchsorted(places, found.end)
    return [np.arange(start, end) for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]


def by_meaning(index: ContextIndex, found: Concordance, like: int, layer: int) -> Concordance:
    """Return the matches with their `cosine` to match number `like`, which must have a vector; NaN without a vector."""
    given = np.flatnonzero(found.numbers == like)
    if not len(given):
        raise ConfigError.unexpected(f"--like {like}", first_ten([*map(str, found.numbers.tolist())]))
    own = match_occurrences(index, found)
    vectors = np.full((len(found), index.dimension), np.nan)
    for row, numbers in enumerate(own):
        if len(numbers):
            vectors[row] = unit_rows(index.vectors(layer)[numbers]).mean(axis=0)
    if np.isnan(vectors[given[0]]).any():
        [first], [end] = found.first[given], found.end[given]
        word = " ".join(found.table.tokens(int(first), int(end)))
        raise ElmoZhError(_(NO_VECTORS).format(path=index.path, word=f"{word} (--like {like})"))
    units = unit_rows(vectors)
    return found.with_figure("cosine", np.round(units @ units[given[0]], 6))


def match_usages(
    index: ContextIndex, word: str, found: Concordance, *, layer: int | None, seed: int
) -> NDArray[np.float64]:
    """Return each match's usage, from 1 as in `senses`, or NaN without vectors; raise ElmoZhError if all are NaN."""
    from elmo_zh.contexts.senses import find_senses  # searching alone needs neither scikit-learn nor torch

    senses = find_senses(index, word, layer=layer, seed=seed, top=0)
    usage_of = dict(zip(senses.occurrences.tolist(), senses.labels.tolist(), strict=True))
    own = (usage_of.get(int(numbers[0])) if len(numbers) else None for numbers in match_occurrences(index, found))
    found_usages = np.array([np.nan if usage is None else usage + 1 for usage in own])
    if np.isnan(found_usages).all():
        raise ElmoZhError(_(NO_VECTORS).format(path=index.path, word=word))
    return found_usages


def save_concordance(found: Concordance, output: Path) -> None:
    """Write the concordance lines: one token per line if the suffix is .vrt, otherwise one match per row."""
    if output.suffix != ".vrt":
        save_rows((line.described() for line in found), output)
        return
    names = found.column_names(for_vertical=True).values()
    with atomic_path(output) as unfinished, unfinished.open("w", encoding="utf-8", newline="") as file:
        file.writelines(_vertical(line, dict(zip(names, line.columns.values(), strict=True))) for line in found)


def _vertical(line: ConcordanceLine, columns: Mapping[str, str]) -> str:
    """Return a concordance line in vertical format, with the match inside <node>, and figures and columns in <s>."""
    named = {"id": line.number, "source": line.line.source, "line": line.line.number, **line.figures, **columns}
    attributes = (f" {name}={quoteattr(_in_xml(str(cell(value))))}" for name, value in named.items())
    tokens = [escape(_in_xml(token)) for token in line.tokens]
    tokens.insert(line.end_token, "</node>")
    tokens.insert(line.first_token, "<node>")
    return "\n".join([f"<s{''.join(attributes)}>", *tokens, "</s>", ""])


def _in_xml(text: str) -> str:
    return _NOT_IN_XML.sub("\ufffd", text)
