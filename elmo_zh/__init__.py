"""elmo-zh: from raw Chinese text to ELMo vectors.

    from elmo_zh import ElmoEmbedder

    embedder = ElmoEmbedder.load("runs/latest/model")
    [vectors] = embedder.embed(["今天天气很好"])  # float32, (L + 1, n, 2P)

The main classes, each imported on first use:

- ElmoEmbedder: vectors of sentences.
- Elmo: the biLM as a PyTorch module, with a learned mix of layers; ScalarMix: that mix alone.
- TaskModel: a model trained on labelled data.
- LineScorer: the costs of lines, which are negative log-probabilities.
- ContextIndex: words in their sentences, and the search for similar ones.
- Word2Vec: the word2vec vectors that a model started from, one for each word.

Examples: docs/python.md, pytorch.md, tasks.md and contexts.md. The modules elmo_zh.sklearn and elmo_zh.spacy need
scikit-learn and spaCy.
"""

import importlib
import importlib.util
from typing import TYPE_CHECKING

from elmo_zh.version import __version__

if TYPE_CHECKING:
    from elmo_zh.bundle.word2vec_table import Word2Vec
    from elmo_zh.contexts.drift import measure_drift
    from elmo_zh.contexts.index import ContextIndex
    from elmo_zh.contexts.line_scorer import LineScorer
    from elmo_zh.contexts.senses import find_senses
    from elmo_zh.embed.elmo import Elmo, batch_to_ids
    from elmo_zh.embed.embedder import ElmoEmbedder
    from elmo_zh.embed.reduction import pool_spans
    from elmo_zh.embed.unknown_rate import UnknownWordsWarning
    from elmo_zh.model.scalar_mix import ScalarMix, mix_parameter_groups
    from elmo_zh.tasks.task_model import TaskModel
    from elmo_zh.text.sentences import split_sentences

__all__ = [
    "ContextIndex",
    "Elmo",
    "ElmoEmbedder",
    "LineScorer",
    "ScalarMix",
    "UnknownWordsWarning",
    "Word2Vec",
    "__version__",
    "batch_to_ids",
    "find_senses",
    "measure_drift",
    "mix_parameter_groups",
    "pool_spans",
    "split_sentences",
]
# Without scikit-learn, `from elmo_zh import *` skips what needs it; importing it by name says how to install it.
if importlib.util.find_spec("sklearn"):
    __all__ += ["TaskModel"]

_HOMES = {
    "ContextIndex": "elmo_zh.contexts.index",
    "Elmo": "elmo_zh.embed.elmo",
    "ElmoEmbedder": "elmo_zh.embed.embedder",
    "LineScorer": "elmo_zh.contexts.line_scorer",
    "ScalarMix": "elmo_zh.model.scalar_mix",
    "TaskModel": "elmo_zh.tasks.task_model",
    "UnknownWordsWarning": "elmo_zh.embed.unknown_rate",
    "Word2Vec": "elmo_zh.bundle.word2vec_table",
    "batch_to_ids": "elmo_zh.embed.elmo",
    "find_senses": "elmo_zh.contexts.senses",
    "measure_drift": "elmo_zh.contexts.drift",
    "mix_parameter_groups": "elmo_zh.model.scalar_mix",
    "pool_spans": "elmo_zh.embed.reduction",
    "split_sentences": "elmo_zh.text.sentences",
}


def __getattr__(name: str) -> object:
    """Import an exported name on first use, so that `import elmo_zh` does not import torch."""
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the module's names for completion, including those not imported yet."""
    return sorted({*globals(), *_HOMES})
