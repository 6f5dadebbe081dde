"""The model bundle: the names of its files, and the forms in which a model can be exported."""

from dataclasses import dataclass
from pathlib import Path

from elmo_zh.choices import WEIGHT_DTYPES
from elmo_zh.config.declare import declare

BUNDLE_FORMAT = 1
# All files that a folder in the layout of another program may contain.
_OTHER_LAYOUT_FILES = {"options.json", "model.hdf5", "model.safetensors", "vocab.txt"}


def is_model(folder: Path) -> bool:
    """Return whether a folder may be replaced: it is a bundle, or has only the files of a model in another layout."""
    names = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    return "bundle.json" in names or ("options.json" in names and names <= _OTHER_LAYOUT_FILES)


@dataclass(frozen=True, kw_only=True)
class BundleForm:
    """The layout and the data type of an exported model."""

    layout: str = declare(
        "bundle",
        "Files to write: a bundle for elmo-zh, the files that simple_elmo reads, or the weights as safetensors.",
        choices=("bundle", "simple_elmo", "safetensors"),
    )
    dtype: str = declare(
        "float32",
        "Data type of the weights. float16 takes half the space of float32.",
        choices=WEIGHT_DTYPES,
    )


# The form in which `export` and `pipeline` write RUN/model.
FLOAT32_BUNDLE = BundleForm()


class BundleLayout:
    """The paths of the files in a bundle."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.options = path / "options.json"  # the sizes of the biLM, as bilm-tf and AllenNLP read them
        self.weights = path / "weights.hdf5"  # all weights, in the published layout
        self.vocab = path / "vocab.data"  # one token per line; converted character-mode models may lack it
        self.vocab_embedding = path / "vocab_embedding.hdf5"  # token embeddings where bilm-tf looks for them
        self.word2vec = path / "word2vec.hdf5"  # the vectors that the token layer started from, if there are any
        self.character_counts = path / "character_counts.tsv"  # the spelling model of unknown words
        self.golden = path / "golden.hdf5"  # the vectors of three sentences, for comparison
        self.warm_state = path / "warm_state.hdf5"  # the state that sentences start from, if training carried it over
        self.alphabet = path / "alphabet.json"  # the ids of characters, if the model does not read bytes
        self.user_dictionary = path / "user_dictionary.txt"  # the segmenter's, if one was used
        self.info = path / "bundle.json"  # the description of the model, and the digests of the files above
        # Without digests; converted and older bundles lack them: corpus, run and date of the training; the model card.
        self.history = path / "history.json"
        self.card = path / "model_card.md"

    def digested(self) -> list[Path]:
        """Return the files whose digests bundle.json records: the required ones, and the optional ones that exist."""
        required = [self.options, self.weights, self.character_counts, self.golden]
        optional = [self.vocab, self.vocab_embedding, self.word2vec, self.warm_state, self.alphabet]
        return [*required, *(path for path in (*optional, self.user_dictionary) if path.exists())]
