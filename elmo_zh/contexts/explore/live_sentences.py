"""LiveSentences: what the model says about any sentence, for the page that is served."""

from threading import Lock
from typing import Any

from elmo_zh.contexts.explore.page_sentences import TokenReader, has_probabilities, substitute_records, token_records
from elmo_zh.contexts.index import ContextIndex
from elmo_zh.contexts.occurrences import NeighbourLine, distinct_neighbours
from elmo_zh.embed.embedder import ElmoEmbedder

_NUM_NEIGHBOURS = 8


class LiveSentences:
    """Answers questions about sentences, one at a time.

    Sentences are read as the texts of the index. If these are segmented, a sentence without spaces is segmented first.
    """

    def __init__(self, index: ContextIndex, embedder: ElmoEmbedder, device: str) -> None:
        """Prepare a model.

        Args:
            index: The index whose occurrences are compared.
            embedder: The model that made it.
            device: auto, cpu or cuda.
        """
        self._index, self._embedder = index, embedder
        self._readers = {True: TokenReader(embedder, device, segmented=True)} if index.is_segmented else {}
        if embedder.bundle.text is not None or not index.is_segmented:
            self._readers[False] = TokenReader(embedder, device, segmented=False)
        self._lock = Lock()

    def sentence(self, text: str) -> dict[str, Any]:
        """Return `text` and `tokens`, as `token_records` returns them."""
        with self._lock:
            [tokens] = self._readers[self._is_segmented(text)].read([text])
        return {"text": text, "tokens": token_records(tokens)}

    def token(self, text: str, position: int, layer: int) -> dict[str, Any]:
        """Return what could stand in the place of a token, and its neighbours in the index.

        Args:
            text: The sentence.
            position: The position of the token, from 0.
            layer: The layer whose vectors are compared.

        Returns:
            `substitutes`, [word, probability] each or null if the model has no softmax, and `neighbours`, each [cosine,
            text, start, end, source, line from 0].

        Raises:
            ValueError: If the sentence has no such token, or the index no such layer.
        """
        with self._lock:
            tokens = self._embedder.prepare(text, segmented=self._is_segmented(text)).tokens
            if not 0 <= position < len(tokens) or layer not in self._index.layers:
                raise ValueError(f"token {position} of {len(tokens)}, layer {layer}")
            [activations] = self._embedder.compute_vectors([tokens])
            found = distinct_neighbours(self._index, activations[layer, position], layer, _NUM_NEIGHBOURS)
            substitutes = None
            if has_probabilities(self._embedder):
                [substitutes] = substitute_records(self._embedder, [(tokens, position)])
        return {"substitutes": substitutes, "neighbours": [_record(each) for each in found]}

    def _is_segmented(self, text: str) -> bool:
        return self._index.is_segmented and (" " in text or False not in self._readers)


def _record(found: NeighbourLine) -> list[Any]:
    occurrence, line = found.neighbour.occurrence, found.line
    cosine = round(found.neighbour.cosine, 3)
    return [cosine, line.text, occurrence.start, occurrence.end, line.source, line.number]
