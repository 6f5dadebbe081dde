"""Held-out evaluation: on a fixed sample during training, on all held-out text at the end."""

import numpy as np
from numpy.typing import NDArray

from elmo_zh.id_store.encoded_sentences import HeldoutSentences, IdStore
from elmo_zh.model.language_model import LanguageModel
from elmo_zh.run.reporter import Progress
from elmo_zh.training.distributed import SINGLE_PROCESS, ProcessGroup
from elmo_zh.training.scoring import Figures, TextMeasure, score_sentences
from elmo_zh.vocabulary.vocabulary import UNKNOWN_ID

# The sample does not depend on the training seed, so that runs can be compared.
_SAMPLE_SEED = 20_180_215


def sample_sentences(heldout: HeldoutSentences, num_tokens: int) -> NDArray[np.int64]:
    """Return the indices of the held-out sample, about `num_tokens` words of random sentences, in ascending order."""
    order = np.random.default_rng(_SAMPLE_SEED).permutation(len(heldout))
    lengths = heldout.lengths(order)
    enough = int(np.searchsorted(np.cumsum(lengths), num_tokens)) + 1
    return np.sort(order[:enough])


def measure_text(store: IdStore, chosen: NDArray[np.int64]) -> TextMeasure:
    """Return the counts of the chosen held-out sentences."""
    heldout = store.heldout
    sentences = [store.lexicon.targets(heldout[int(index)]) for index in chosen]
    num_tokens = sum(len(ids) for ids in sentences)
    return TextMeasure(
        num_predictions=num_tokens + len(sentences),
        num_tokens=num_tokens,
        num_unknown=sum(int(np.count_nonzero(ids == UNKNOWN_ID)) for ids in sentences),
        num_characters=int(heldout.characters[chosen].sum()) + len(sentences),
        spelling_nats=float(heldout.spelling_nats[chosen].sum()),
    )


def evaluate_heldout(
    model: LanguageModel,
    store: IdStore,
    chosen: NDArray[np.int64],
    progress: Progress | None = None,
    group: ProcessGroup = SINGLE_PROCESS,
) -> Figures:
    """Return the exact figures of held-out sentences, computed in float32 as the exported model computes them."""
    sentences = [store.heldout[int(index)] for index in chosen]
    nats = score_sentences(model.bilm, model.softmax, store.lexicon, sentences, progress, group)
    return Figures.build(measure_text(store, chosen), *nats)
