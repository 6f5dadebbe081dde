"""ELMo vectors of whole sentences as a step of scikit-learn's pipelines.

Needs the package scikit-learn (extra `sklearn`).
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.embed.reduction import POOL_METHODS, Reduction
from elmo_zh.errors import BundleError
from elmo_zh.extras import install_line
from elmo_zh.text.segmenters.registry import split_tokens

try:
    from sklearn.base import BaseEstimator, TransformerMixin
except ImportError:
    raise ImportError(
        f"elmo_zh.sklearn needs scikit-learn. Install it with: {install_line('sklearn')}", name="sklearn"
    ) from None


class ElmoVectorizer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Turns strings into one vector each: those of its tokens, pooled.

    There is nothing to learn: `fit` loads the model and checks the settings, and `transform` works without it. The
    model is loaded when it is first needed, and left out of pickles and clones: a copy in another process loads it from
    its folder, and refuses another model there than that it was fitted with.

    Attributes:
        model_digest_: The digest of the model; after `fit`.
        n_features_out_: 2P, numbers in each vector; after `fit`.
    """

    # The embedder and the settings that it was loaded with.
    _loaded: tuple[tuple[str, str, str], ElmoEmbedder] | None = None

    def __init__(
        self,
        model: str | Path = "runs/latest/model",
        *,
        pool: str = "mean",
        layers: str | int = "average",
        segmented: bool = False,
        precision: str = "float32",
        device: str = "auto",
    ) -> None:
        """Keep the settings.

        Args:
            model: Folder of the bundle.
            pool: How the vectors of tokens become one: mean, max, or first-last (the forward LM's half at the last
                token, the backward LM's at the first).
            layers: average (of all layers), top, or the number of one, 0 being the token layer.
            segmented: Tokens are split at U+0020 and looked up as they are; else strings are normalised and segmented
                as the bundle says.
            precision: Of matrix products: float32, bfloat16 or int8.
            device: auto (a GPU if there is one), cpu or cuda.
        """
        self.model = model
        self.pool = pool
        self.layers = layers
        self.segmented = segmented
        self.precision = precision
        self.device = device

    def fit(self, X: Iterable[str], y: object = None) -> "ElmoVectorizer":  # noqa: ARG002
        """Load the model and check the settings; X is not read, nor is y.

        Raises:
            BundleError: If the folder is not a sound bundle.
            ElmoZhError: If precision or device is none that can be had.
            ValueError: If another setting is not one of those listed, or X is a single string.
        """
        _refuse_single_string(X)
        embedder = self._load()
        self._check_settings(embedder)
        self.model_digest_ = embedder.bundle.digest
        self.n_features_out_ = embedder.dimension
        return self

    def transform(self, X: Iterable[str]) -> NDArray[np.float32]:
        """Return the vectors of strings, float32, shape (number of strings, 2P); zeros where one has no token.

        Args:
            X: Strings, in a list, an array of one axis, a column of a table, or the like.

        Raises:
            BundleError: If the model is not the one that was fitted.
            ValueError: If a setting is not one of those listed, or X is a single string.
            TypeError: If something in X is not a string.
        """
        lines = _list_strings(X)
        embedder = self._load()
        self._check_settings(embedder)
        self._check_digest(embedder)
        vectors = np.empty((len(lines), embedder.dimension), np.float32)
        sentences = (split_tokens(line) for line in lines) if self.segmented else lines
        reduction = Reduction(layers=str(self.layers), pool=self.pool)
        for row, sentence in enumerate(embedder.embed_iter(sentences)):
            vectors[row] = reduction.apply(sentence.vectors)
        return vectors

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:  # noqa: ARG002
        """Return the names of the numbers of a vector: elmovectorizer0, elmovectorizer1, ..."""
        return np.array([f"elmovectorizer{number}" for number in range(self._load().dimension)], dtype=object)

    def _load(self) -> ElmoEmbedder:
        settings = (str(self.model), self.device, self.precision)
        if self._loaded is None or self._loaded[0] != settings:
            self._loaded = settings, ElmoEmbedder.load(*settings)
        return self._loaded[1]

    def _check_settings(self, embedder: ElmoEmbedder) -> None:
        if self.pool not in POOL_METHODS:
            raise ValueError(f"pool={self.pool!r}: expected {', '.join(POOL_METHODS[:-1])} or {POOL_METHODS[-1]}")
        numbers = [str(number) for number in range(embedder.num_layers)]
        if str(self.layers) not in ("average", "top", *numbers):
            raise ValueError(f"layers={self.layers!r}: expected average, top or a number from 0 to {numbers[-1]}")

    def _check_digest(self, embedder: ElmoEmbedder) -> None:
        fitted = getattr(self, "model_digest_", None)
        if fitted not in (None, embedder.bundle.digest):
            raise BundleError(
                f"{self.model} is not the model that was fitted: {embedder.bundle.digest}, expected {fitted}."
                " Put that one back, or fit again, with all that follows."
            )

    def __getstate__(self) -> dict[str, Any]:
        """Leave the embedder out of pickles and copies."""
        return {name: value for name, value in super().__getstate__().items() if name != "_loaded"}

    def __sklearn_tags__(self) -> Any:
        """Say what goes in: strings in one axis, which scikit-learn cannot check; float32 comes out in any case."""
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.no_validation = True
        tags.requires_fit = False
        tags.transformer_tags.preserves_dtype = []
        return tags


def _refuse_single_string(X: object) -> None:
    if isinstance(X, str):
        raise ValueError(f"a single string was given ({X[:20]!r}). Give a list of strings, such as [{X[:20]!r}].")


def _list_strings(X: Iterable[str]) -> list[str]:
    _refuse_single_string(X)
    lines = list(X)
    for line in lines:
        if not isinstance(line, str):
            raise TypeError(f"expected strings, found {type(line).__name__}: {line!r:.60}")
    return lines
