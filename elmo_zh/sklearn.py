"""Compute ELMo vectors of whole sentences as a step of a scikit-learn pipeline.

Requires the package scikit-learn (extra `words`).
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_zh.bundle import BundleLayout
from elmo_zh.bundle.find_bundle import find_bundle
from elmo_zh.checks import check_choice, check_layers, check_strings, refusal
from elmo_zh.choices import POOL_METHODS
from elmo_zh.config import Layers
from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.embed.reduction import Reduction
from elmo_zh.errors import BundleError
from elmo_zh.invocation import install_line
from elmo_zh.run.files import file_digest
from elmo_zh.text.normalise import split_segmented

try:
    from sklearn.base import BaseEstimator, TransformerMixin
except ImportError:
    raise ImportError(
        f"elmo_zh.sklearn needs scikit-learn. Install it with: {install_line('words')}", name="sklearn"
    ) from None


# As many models as one pipeline is likely to combine.
_MOST_KEPT = 4


@lru_cache(_MOST_KEPT)
def _load_once(folder: Path, digest: str, device: str, precision: str) -> ElmoEmbedder:
    """Load a model, and keep it for later calls and for the clones that a search or a cross-validation makes."""
    embedder = ElmoEmbedder.load(folder, device, precision)
    if embedder.bundle.digest != digest:
        raise BundleError(
            f"{folder} is not the model that was fitted: {embedder.bundle.digest}; expected {digest}."
            " Put that model back, or fit the whole pipeline again."
        )
    return embedder


class ElmoVectorizer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Turns each string into one vector, pooled from the vectors of its tokens.

        features = ElmoVectorizer("runs/latest/model", pool="mean").transform(["今天天气很好", "苹果很甜"])  # (2, 2P)

    Nothing is learned: `fit` just loads the model and checks the settings, and `transform` works without it. The model
    is loaded when it is first needed, and shared by the estimators of a process that use it on the same device with the
    same precision (the last four models are kept). Pickles leave it out: a copy in another process loads it from its
    folder, and refuses any model other than the one it was fitted with.

    Attributes:
        model_digest_: The digest of the model; set by `fit`.
        n_features_out_: The length of each vector: 2P, or k * 2P for k layers; set by `fit`.
    """

    def __init__(
        self,
        model: str | Path = "runs/latest/model",
        *,
        pool: str = "mean",
        layers: str | int | Sequence[int] = "average",
        segmented: bool = False,
        precision: str = "float32",
        device: str = "auto",
    ) -> None:
        """Store the settings.

        Args:
            model: Folder of the bundle, or name of an installed model.
            pool: How the vectors of tokens become one: mean, max, or first-last (the forward LM's half at the last
                token, the backward LM's half at the first).
            layers: average (of all layers), top, or the number of a layer, 0 being the token layer; all, or a list of
                numbers: the pooled vectors of these k layers one after the other, k * 2P features.
            segmented: Strings are segmented, with spaces between tokens, which are looked up as they are; otherwise
                strings are normalised and segmented as in the model's training.
            precision: Precision of the matrix products: float32, bfloat16 or int8.
            device: auto (a GPU if there is one), cpu or cuda.
        """
        self.model = model
        self.pool = pool
        self.layers = layers
        self.segmented = segmented
        self.precision = precision
        self.device = device

    def fit(self, X: Iterable[str], y: Any = None) -> "ElmoVectorizer":  # noqa: ARG002
        """Load the model and check the settings.

        Args:
            X: Strings, as in `transform`; they are not read.
            y: Ignored.

        Raises:
            BundleError: If the folder is not a valid bundle.
            ElmoZhError: If the precision is unknown or does not work on the device, or there is no GPU for cuda.
            ValueError: If device, pool or layers has a value that is not allowed.
        """
        embedder = self._load()
        self._check_settings(embedder)
        self.model_digest_ = embedder.bundle.digest
        self.n_features_out_ = self._width(embedder)
        return self

    def transform(self, X: Iterable[str]) -> NDArray[np.float32]:
        """Return one vector per string.

        Args:
            X: Strings in a list, an array with one axis, a column of a table or another iterable.

        Returns:
            float32, shape (number of strings, 2P) or, for k layers, (number of strings, k * 2P); zeros for a string
            without tokens.

        Raises:
            BundleError: If the folder is not a valid bundle, or not the model of `fit`.
            ElmoZhError: As in `fit`.
            ValueError: If device, pool or layers is not one of those listed, or X is a single string.
            TypeError: If X is not iterable or is a table, or an item of X is not a string.

        Warns:
            UnknownWordsWarning: If the share of unknown words is far higher than in training.
        """
        if isinstance(X, str):  # as scikit-learn does
            raise refusal(ValueError, "transform", "X", X, "a list of strings")
        lines = check_strings(X, "transform", "X")
        embedder = self._load(getattr(self, "model_digest_", ""))
        self._check_settings(embedder)
        vectors = np.empty((len(lines), self._width(embedder)), np.float32)
        sentences = (split_segmented(line, embedder.bundle.text) for line in lines) if self.segmented else lines
        reduction = Reduction(layers=Layers(self.layers), pool=self.pool)
        for row, sentence in enumerate(embedder.embed_iter(sentences)):
            vectors[row] = reduction.apply(sentence.vectors).ravel()
        return vectors

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:  # noqa: ARG002
        """Return the names of the output features: elmovectorizer0, elmovectorizer1, ..."""
        width = self._width(self._load(getattr(self, "model_digest_", "")))
        return np.array([f"elmovectorizer{number}" for number in range(width)], dtype=object)

    def _width(self, embedder: ElmoEmbedder) -> int:
        return embedder.dimension * (len(Layers(self.layers).stacked(embedder.num_layers)) or 1)

    def _load(self, digest: str = "") -> ElmoEmbedder:
        """Load the model, or reuse the one with this digest from an earlier call, even if its folder has changed."""
        folder = find_bundle(self.model)
        info = BundleLayout(folder).info
        digest = digest or (file_digest(info) if info.is_file() else "")
        return _load_once(folder, digest, str(self.device), str(self.precision))

    def _check_settings(self, embedder: ElmoEmbedder) -> None:
        check_choice(self.pool, POOL_METHODS, "ElmoVectorizer", "pool")
        check_layers(self.layers, embedder.num_layers, "ElmoVectorizer", among=("all", "average", "top"))

    def __sklearn_tags__(self) -> Any:
        """Declare that the input is strings, and that `transform` works without `fit` and always returns float32."""
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.no_validation = True
        tags.requires_fit = False
        tags.transformer_tags.preserves_dtype = []
        return tags
