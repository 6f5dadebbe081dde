"""Add ELMo vectors to spaCy documents, with a pipeline component.

Requires the package spaCy (extra `spacy`).
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_zh.checks import check_layers, refusal
from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.embed.reduction import Reduction, pool_spans
from elmo_zh.embed.unknown_rate import UnknownWatch
from elmo_zh.errors import BundleError
from elmo_zh.invocation import install_line
from elmo_zh.text.preparation import TokenisedLine, align_sentences

try:
    from spacy.language import Language
    from spacy.tokens import Doc, Token
    from spacy.util import minibatch
except ImportError:
    raise ImportError(f"elmo_zh.spacy needs spaCy. Install it with: {install_line('spacy')}", name="spacy") from None


class ElmoComponent:
    """Gives the tokens of a spaCy document vectors from a bundle, however the document was tokenised.

        nlp = spacy.blank("zh")
        nlp.add_pipe("elmo_zh", config={"model": "runs/latest/model", "layer": "average"})
        doc = nlp("今天天气很好")
        doc.tensor  # the chosen layer, float32, (n, 2P); also token.vector and span.vector
        doc._.elmo_layers[:, 0]  # all layers of the first token, float32, (L + 1, 2P)

    The model splits and segments the document's text as in its own training. A token of the document gets the mean
    vector of the model's tokens that share a character with it, or zeros if no token does.

    Attributes:
        embedder: Computes the vectors, from the bundle.
        layer: The layer of `doc.tensor` and `token.vector`.
    """

    def __init__(self, embedder: ElmoEmbedder, layer: str | int = "average") -> None:
        """Create the component; raise ValueError for a layer that `create_component` does not list."""
        self.layer = check_layers(layer, embedder.num_layers, "ElmoComponent", "layer", among=("average", "top"))
        if self.layer.stacked(embedder.num_layers):
            raise refusal(ValueError, "ElmoComponent", "layer", layer, "one layer, since a token has one vector")
        self.embedder = embedder
        self._watch = UnknownWatch(embedder.bundle)

    def __call__(self, doc: Doc) -> Doc:
        """Set a document's `tensor` and `elmo_layers`, and return the document."""
        self._add_vectors([doc])
        return doc

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Yield documents with their vectors; the sentences of `batch_size` documents are computed together."""
        for docs in minibatch(stream, batch_size):
            self._add_vectors(docs)
            yield from docs

    def _add_vectors(self, docs: Sequence[Doc]) -> None:
        lines_of = [self._lines(doc.text) for doc in docs]
        sentences = [line.tokens for lines in lines_of for line in lines]
        self._watch.look(sentences)
        vectors = iter(self.embedder.compute_vectors(sentences))
        for doc, lines in zip(docs, lines_of, strict=True):
            self._fill(doc, lines, [next(vectors) for _ in lines])

    def _lines(self, text: str) -> list[TokenisedLine]:
        trained_on = self.embedder.bundle.text
        split = trained_on is not None and trained_on.split_sentences
        return list(
            align_sentences(text, self.embedder.prepare, split=split, segmented=self.embedder.bundle.keeps_tokens)
        )

    def _fill(self, doc: Doc, lines: Sequence[TokenisedLine], vectors: Sequence[NDArray[np.float32]]) -> None:
        nothing = np.zeros((self.embedder.num_layers, 0, self.embedder.dimension), np.float32)
        offsets = np.concatenate([np.zeros((0, 2), np.int32), *(line.offsets for line in lines)])
        spans = [(token.idx, token.idx + len(token)) for token in doc]
        layers = pool_spans(np.concatenate([nothing, *vectors], axis=1), offsets, spans)
        doc.tensor = np.ascontiguousarray(Reduction(layers=self.layer).apply(layers))
        doc._.elmo_layers = layers
        if not len(doc):
            doc.vector = np.zeros(doc.tensor.shape[1], np.float32)  # without tokens, spaCy's own mean has no dimension
        # Without hooks, spaCy prefers the vectors of its vocabulary, if any, to the tensor. Hooks are set only where
        # they are needed, since spaCy cannot save them.
        if doc.vocab.vectors.size:
            doc.user_token_hooks |= {"vector": _token_vector, "has_vector": _has_vector}
            doc.user_hooks |= {"vector": _doc_vector, "has_vector": _has_vector}

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:  # noqa: ARG002
        """Write the digest of the model; the model itself is not copied."""
        Path(path).write_bytes(self.to_bytes())

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> "ElmoComponent":  # noqa: ARG002
        """Check that the model is the one that the pipeline was saved with.

        Raises:
            BundleError: If it is a different model, or the file is missing or damaged.
        """
        return self.from_bytes(Path(path).read_bytes() if Path(path).is_file() else b"")

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:  # noqa: ARG002
        """Return the content that `to_disk` writes."""
        return json.dumps({"model_digest": self.embedder.bundle.digest}).encode()

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> "ElmoComponent":  # noqa: ARG002
        """Check the content that `to_bytes` returned; raise the same errors as `from_disk`."""
        bundle = self.embedder.bundle
        if bundle.digest.encode() not in data:
            raise BundleError(
                f"{bundle.path} is not the model that the pipeline was saved with: {bundle.digest}; expected"
                f" {data[:100].decode(errors='replace')}. Put that model back, or name its folder:"
                ' spacy.load(path, config={"components": {"elmo_zh": {"model": folder}}})'
            )
        return self


@Language.factory(  # type: ignore[untyped-decorator]
    "elmo_zh",
    assigns=["doc.tensor", "doc._.elmo_layers", "token.vector"],
    default_config={"model": "starter", "layer": "average", "device": "auto", "precision": "float32"},
)
def create_component(
    nlp: Language,  # noqa: ARG001
    name: str,  # noqa: ARG001
    model: str,
    layer: str | int,
    device: str,
    precision: str,
) -> ElmoComponent:
    """Create the component for `nlp.add_pipe("elmo_zh", config={...})`.

    Args:
        nlp: The pipeline.
        name: Name of the component in the pipeline.
        model: Folder of the bundle, or the name of an installed model.
        layer: Layer of `doc.tensor` and `token.vector`: average (of all layers), top, or the number of a layer, 0 being
            the token layer.
        device: auto (a GPU if there is one), cpu or cuda.
        precision: Precision of the matrix products: float32, bfloat16 or int8.

    Raises:
        BundleError: If the folder is not a valid bundle.
        ElmoZhError: If the precision is unknown or does not work on the device, or there is no GPU for cuda.
        ValueError: If the device or the layer is not one of those listed.
    """
    return ElmoComponent(ElmoEmbedder.load(model, device, precision), layer)


def _token_vector(token: Token) -> Any:
    return token.doc.tensor[token.i]


def _doc_vector(doc: Doc) -> Any:
    return doc.tensor.mean(axis=0) if len(doc) else np.zeros(doc.tensor.shape[1], np.float32)


def _has_vector(_: Doc | Token) -> bool:
    return True


def _set_layers(doc: Doc, layers: NDArray[np.float32]) -> None:
    doc.user_data["elmo_layers"] = layers


def _layers(doc: Doc) -> NDArray[np.float32] | None:
    """Return the layers of a document, or None; raise ValueError if the number of its tokens has changed."""
    layers: NDArray[np.float32] | None = doc.user_data.get("elmo_layers")
    if layers is not None and layers.shape[1] != len(doc):
        raise ValueError(
            f"doc._.elmo_layers: the vectors are of {layers.shape[1]} tokens, the document has {len(doc)}; put elmo_zh"
            " after the component that merges or splits tokens"
        )
    return layers


# Set once, at import, so that saved documents have their layers too; `force` is for a module that is imported again.
Doc.set_extension("elmo_layers", getter=_layers, setter=_set_layers, force=True)
