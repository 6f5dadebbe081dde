"""The settings of labelled tasks (data, network and training), used by commands, the Python API and manifests."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from elmo_zh.config.declare import declare

KINDS = ("classify", "tag", "pairs")
INPUTS = ("word2vec", "elmo", "characters")
LABELLED_FORMATS = ("auto", "csv", "tsv", "jsonl", "conll")
# How tags mark spans, with the letters for the first unit of a span, one inside, the last, and the only one.
SCHEMES = {"BIO": "BIIB", "BMES": "BMES", "BIOES": "BIES"}


@dataclass(frozen=True, kw_only=True)
class DataFiles:
    """The files that contain the examples, and how they are split."""

    # A file of examples; or a folder with one file, or with files that have train, dev and test in their names. If
    # there are no other files, a column of a file that says train, dev or test divides its examples.
    data: Path = Path()
    dev: Path | None = declare(
        None,
        "File of development examples, which decide when training stops and, in task probe, which layer is best."
        " Default: the development examples in DATA or, if it contains none, a tenth of DATA.",
        metavar="FILE",
        path={"exists": True, "dir_okay": False},
    )
    test: Path | None = declare(
        None,
        "File of test examples, which are scored at the end. Default: the test examples in DATA or, if they are"
        " missing and there is no file of development examples, a tenth of DATA.",
        metavar="FILE",
        path={"exists": True, "dir_okay": False},
    )
    limit: int | None = declare(
        None, "Use at most N training examples, chosen at random. Default: all.", least=1, metavar="N"
    )
    seed: int = declare(1, "Random seed.", least=0, most=2**31)
    has_found_test: bool = False  # Whether `test` was found in a folder, and is left out if it has no labels

    def paths(self) -> dict[str, Path]:
        """Return the given paths by part: DATA as "train", and "dev" and "test" if they are given."""
        parts = {"train": self.data, "dev": self.dev, "test": self.test}
        return {part: path for part, path in parts.items() if path is not None}


@dataclass(frozen=True, kw_only=True)
class Reading:
    """Settings for reading files of labelled data."""

    kind: str = ""  # One of `KINDS`
    regression: bool = False  # Labels are numbers
    encoding: str = "auto"  # Encoding of the files, or auto
    text_columns: tuple[str, ...] = declare(
        (),
        "Column or field that contains the text: its name, or its number, counting from 1. For pairs, use this"
        " option twice. Default: with a trained task, the columns it was trained on; otherwise detected from names"
        " and content.",
        names=("--text-column", "--field"),
        metavar="NAME",
    )
    label_column: str = declare(
        "",
        "Column or field that contains the label: its name, or its number, counting from 1. Default: with a trained"
        " task, the column it was trained on; otherwise detected from names and content.",
        metavar="NAME",
    )
    format: str = declare(
        "auto",
        "Format of the labelled files; auto detects it for each file.",
        choices=LABELLED_FORMATS,
        names=("--input-format",),
    )
    skips_unlabelled: bool = declare(
        False,
        "For classes and pairs: skip rows with an empty label or several labels. Default: they are an error.",
        names=("--skip-unlabelled",),
    )
    task_columns: tuple[str, ...] = ()  # Columns of the texts and the label of a trained task's own data

    @property
    def num_texts(self) -> int:
        """Number of texts per example."""
        return 2 if self.kind == "pairs" else 1

    def columns(self, *, with_label: bool = True) -> tuple[str, ...]:
        """Return the requested columns, texts first, then the label; "" for a column that has to be found."""
        texts = (*self.text_columns, "", "")[: self.num_texts]
        return (*texts, self.label_column) if with_label else texts

    def columns_in(self, names: Collection[str], *, with_label: bool = True) -> tuple[str, ...]:
        """Return for each column its given name, otherwise the trained task's if it is in `names`, otherwise ""."""
        wanted = self.columns(with_label=with_label)
        trained_on = self.task_columns if len(self.task_columns) == self.num_texts + 1 else ("",) * len(wanted)
        return tuple(name or (known if known in names else "") for name, known in zip(wanted, trained_on, strict=False))


@dataclass(frozen=True, kw_only=True)
class HeadSettings:
    """Settings of a task network."""

    kind: str = ""  # One of `KINDS`
    head: str = declare(
        "mixture",
        "Kind of model: bilstm (a BiLSTM network), linear (classify: a linear model on the mean of the inputs; tag:"
        " a CRF on character n-grams; not for pairs) or mixture (the network combined with linear models, or for"
        " tag with the CRF, if this helps on held-out examples). With --regression, mixture means bilstm.",
        choices=("mixture", "bilstm", "linear"),
    )
    # The inputs that describe a unit, some of `INPUTS`; empty if they depend on the data and the model.
    inputs: tuple[str, ...] = ("word2vec", "elmo")
    regression: bool = declare(False, "Predict numbers instead of classes; the labels must be numbers.")
    metric: str = declare(
        "accuracy",
        "Score for classes and pairs, used to decide when training stops and to compare results: accuracy or"
        " macro_f1 (the mean F1 over the classes, which is better if one class is far more frequent than the"
        " others).",
        choices=("accuracy", "macro_f1"),
    )
    hidden_dim: int = declare(100, "Number of LSTM cells in each direction.", least=1, most=4096, names=("--hidden",))
    character_dim: int = 50  # Length of a character's vector; the vector of its place in the word is a fifth as long
    dropout: float = 0.5  # Probability with which each number of an input or output of the LSTMs is dropped in training
    mix_penalty: float = 0.001  # Lambda in the ELMo paper: factor of the L2 penalty on the weights of the layers

    @property
    def is_crf(self) -> bool:
        """Whether this is a linear tagger: a CRF on character n-grams."""
        return self.kind == "tag" and self.head == "linear"

    @property
    def reads_grams(self) -> bool:
        """Whether this is a tagger that reads character n-grams, alone or in a mixture."""
        return self.kind == "tag" and self.head != "bilstm"


@dataclass(frozen=True, kw_only=True)
class TrainSettings:
    """Settings for training a task network."""

    epochs: int = declare(30, "Maximum number of epochs.", least=1)
    patience: int = declare(
        3, "Stop after this many epochs without a better score on the development examples.", least=1
    )
    batch_size: int = declare(16, "Number of texts, or pairs of texts, in each training step.", least=1)
    learning_rate: float = declare(
        0.003,
        "Adam's learning rate for the network. The weights that mix ELMo's layers have a learning rate of their own.",
        above=0,
        most=1,
    )
    mix_learning_rate: float = 0.01  # Learning rate of the weights of ELMo's layers


@dataclass(frozen=True, kw_only=True)
class FitJob:
    """The data and settings for training a task model."""

    files: DataFiles  # The labelled data
    reading: Reading  # How the data is read
    settings: HeadSettings  # The network
    training: TrainSettings = TrainSettings()  # How the network is trained
    num_seeds: int = 1  # Number of training runs, with consecutive seeds; the best on the development examples is kept

    def seeds(self) -> range:
        """Return the seeds of all training runs."""
        return range(self.files.seed, self.files.seed + self.num_seeds)


PREDICTION_FORMATS = ("jsonl", "tsv", "csv", "conll")


@dataclass(frozen=True, kw_only=True)
class PredictionForm:
    """The option of `task predict` that chooses the output format."""

    format: str | None = declare(
        None,
        "Output format: JSON lines (jsonl), a table of labels or spans (tsv, csv), or one line per word or"
        " character with its tag (conll). Default: the format given by the suffix of --output, otherwise jsonl.",
        choices=PREDICTION_FORMATS,
    )
