"""Scores as rows: a table with a header (TSV), or JSON lines."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from elmo_zh.contexts.line_score import ScoredLine

_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})
_DIGITS = 6


class ScoreRows:
    """Turns scored lines into rows.

    Attributes:
        columns: The names of the values of a row.
    """

    def __init__(self, text_names: Sequence[str], *, kind: str, by_token: bool, with_difference: bool) -> None:
        """Choose the form.

        Args:
            text_names: The names of the texts; a row says which one its line is in if there are several.
            kind: tsv or jsonl.
            by_token: One row a token, else one a line.
            with_difference: Add the difference from another model.
        """
        self._names, self._is_table, self._by_token = text_names, kind == "tsv", by_token
        self._with_difference = with_difference
        place = ["file", "line"] if len(text_names) > 1 else ["line"]
        if by_token:
            own = ["place", "start", "end", "token", "forward_nats", "backward_nats", "unknown"]
        else:
            own = ["tokens", "unknown", "characters", "forward_nats", "backward_nats", "bits_per_character"]
            own += ["perplexity", *(["difference"] if with_difference else [])]
        self.columns = [*place, *own]

    def header(self) -> str:
        """Return the first line of the file, "" if it has no header."""
        return "\t".join(self.columns) + "\n" if self._is_table else ""

    def of_lines(self, lines: Iterable[ScoredLine]) -> Iterator[str]:
        """Yield the rows of lines, each with its line end."""
        for line in lines:
            place = [self._names[line.text_number], line.number] if len(self._names) > 1 else [line.number]
            for values in self._token_values(line) if self._by_token else [self._line_values(line)]:
                yield self._row([*place, *values])

    def _line_values(self, line: ScoredLine) -> list[Any]:
        score = line.score
        counts = [score.num_tokens, score.num_unknown, score.num_characters]
        figures = [score.forward_nats, score.backward_nats, score.bits_per_character, score.perplexity]
        return [*counts, *figures, *([line.difference] if self._with_difference else [])]

    @staticmethod
    def _token_values(line: ScoredLine) -> Iterator[list[Any]]:
        for place, token in enumerate(line.score.tokens or ()):
            costs = [token.forward_nats, token.backward_nats]
            yield [place, token.start, token.end, token.token, *costs, int(token.is_unknown)]

    def _row(self, values: Sequence[Any]) -> str:
        if self._is_table:
            return "\t".join(map(_cell, values)) + "\n"
        rounded = (round(value, _DIGITS) if isinstance(value, float) else value for value in values)
        return json.dumps(dict(zip(self.columns, rounded, strict=True)), ensure_ascii=False) + "\n"


def _cell(value: Any) -> str:
    """Return a value as a cell: fixed digits; empty for what an empty line lacks; tabs and line ends escaped."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.{_DIGITS}f}"
    return str(value).translate(_ESCAPES)
