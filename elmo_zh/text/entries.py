"""Prepare the entries of side files as the text is prepared, and warn of those that have no effect on it.

Side files are user dictionaries, lists of words, vectors and vocabularies of other programs. Text is normalised and
segmented before anything is looked up in it, so an entry must have the form that the text has by then.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from elmo_zh.language import _
from elmo_zh.run.reporter import Reporter

_SHOWN_ENTRIES, _SHOWN_CHARACTERS = 5, 24


class Entries:
    """Prepares the entries of a file; counts those without effect, and names the first five.

    Attributes:
        path: The file.
        num_left_out: Number of entries without effect.
    """

    def __init__(self, path: Path, normalise: Callable[[str], str]) -> None:
        self.path, self._normalise = path, normalise
        self.num_left_out = 0
        self._examples: list[tuple[int, str]] = []

    def prepare(self, entry: str, line: int) -> str | None:
        """Return an entry in the form it has in prepared text; if it is not one word, count it and return None."""
        prepared = self._normalise(entry).strip()
        if prepared and " " not in prepared:
            return prepared
        self.leave_out(line, entry, _("is not one word"))
        return None

    def require_whole(self, words: Mapping[str, int], segment: Callable[[str], list[str]]) -> None:
        """Count the words (given with line numbers) that have no effect because the segmenter divides them."""
        for word, line in words.items():
            if (tokens := segment(word)) != [word]:
                self.leave_out(line, word, _("is divided into {tokens}").format(tokens=_shown(" ".join(tokens))))

    def leave_out(self, line: int, entry: str, reason: str) -> None:
        """Count an entry that has no effect; `reason` completes a sentence about it, such as "is not one word"."""
        self.num_left_out += 1
        if len(self._examples) < _SHOWN_ENTRIES or line < self._examples[-1][0]:
            self._examples.append((line, f"{_shown(entry)} {reason}"))
            self._examples = sorted(self._examples)[:_SHOWN_ENTRIES]

    def report(self, reporter: Reporter) -> None:
        """Warn of the entries without effect, if there are any."""
        if self.num_left_out:
            message = _("{path}: entries without effect: {number:,}. {examples}")
            shown = ((_("line {number}").format(number=line), entry) for line, entry in self._examples)
            examples = _("; ").join(_("{name}: {value}").format(name=line, value=entry) for line, entry in shown)
            examples += " ..." if self.num_left_out > len(self._examples) else ""
            reporter.warn(message.format(path=self.path, number=self.num_left_out, examples=examples))


def _shown(text: str) -> str:
    """Return a text for a message: shortened, and escaped if it has characters that cannot be seen."""
    text = text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."
    return text if text.isprintable() and text.strip() else repr(text)
