"""The spelling model, which gives the cost of spelling an unknown word character by character."""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from elmo_zh.errors import BundleError
from elmo_zh.language import _
from elmo_zh.run.tables import TSV_ESCAPES
from elmo_zh.vocabulary.vocabulary import iter_counts, save_counts

# Written as a name in the file because it is not a character.
END_OF_WORD = "</W>"
# All code points except the surrogates.
UNICODE_CHARACTERS = 0x110000 - 0x800

_UNESCAPES = {escaped: chr(code) for code, escaped in TSV_ESCAPES.items()}


@dataclass(frozen=True)
class SpellingModel:
    """Add-one smoothed counts of the characters and word ends in training words outside the vocabulary.

    One more slot stands for all unseen characters, uniformly distributed over Unicode. The model makes bits per
    character comparable between vocabularies: a word outside the vocabulary costs its <UNK> plus its spelling.
    """

    counts: Mapping[str, int]

    @classmethod
    def build(cls, unknown_words: Mapping[str, int]) -> "SpellingModel":
        """Return the model of unknown words, given how often each of them occurs."""
        counts: Counter[str] = Counter()
        for word, count in unknown_words.items():
            for character in word:
                counts[character] += count
        return cls({**counts, END_OF_WORD: sum(unknown_words.values())})

    @cached_property
    def _num_slots(self) -> int:
        return sum(self.counts.values()) + len(self.counts) + 1

    def nats(self, word: str) -> float:
        """Return the negative log probability, in nats, of a word's characters and its end."""
        slots = self._num_slots
        cost = 0.0
        for symbol in (*word, END_OF_WORD):
            if symbol in self.counts:
                cost += math.log(slots / (self.counts[symbol] + 1))
            else:
                cost += math.log(slots * UNICODE_CHARACTERS)
        return cost

    def save(self, path: Path) -> None:
        """Write lines of character TAB count, the highest count first, escaping tabs, line ends and backslashes."""
        ranked = sorted(self.counts.items(), key=lambda item: (-item[1], item[0]))
        save_counts(path, ((symbol.translate(TSV_ESCAPES), count) for symbol, count in ranked))


def load_spelling_model(path: Path) -> SpellingModel:
    """Read a spelling model from character_counts.tsv; raise BundleError if the file is damaged."""
    counts: dict[str, int] = {}
    for number, (escaped, count) in enumerate(iter_counts(path), start=1):
        symbol = _UNESCAPES.get(escaped, escaped)
        if count < 0 or (len(symbol) != 1 and symbol != END_OF_WORD):
            raise BundleError.damaged(path, _("line {number}").format(number=number))
        counts[symbol] = count
    if END_OF_WORD not in counts:
        raise BundleError.damaged(path, f"the line for {END_OF_WORD} is missing")
    return SpellingModel(counts)
