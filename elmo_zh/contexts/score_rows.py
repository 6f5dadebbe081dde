"""Scores as rows: a table with a header (TSV), or JSON lines."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from elmo_zh.contexts.line_score import ScoredLine
from elmo_zh.corpus.input_texts import InputText
from elmo_zh.corpus.names import is_archive_name

_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})
_DIGITS = 6


class ScoreRows:
    """Turns scored lines into rows.

    Attributes:
        columns: The names of the values of a row.
    """

    def __init__(self, texts: Sequence[InputText], *, kind: str, by_token: bool, with_difference: bool) -> None:
        """Choose the form.

        Args:
            texts: The texts, of which those with scored lines have been read; a row says which file its line is in if
                there are several, or an archive.
            kind: tsv or jsonl.
            by_token: One row a token, else one a line.
            with_difference: Add the difference from another model.
        """
        self._texts, self._is_table, self._by_token = texts, kind == "tsv", by_token
        self._with_difference = with_difference
        self._names_files = len(texts) > 1 or any(is_archive_name(text.source.file_name) for text in texts)
        place = ["file", "line"] if self._names_files else ["line"]
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
            place = self._texts[line.text_number].place(line.number) if self._names_files else [line.number]
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
