"""Models for tasks as scikit-learn estimators, for pipelines, cross-validation and grid searches."""

from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_zh.checks import check_choice, check_tags, check_value, refusal
from elmo_zh.config.declare import values_of
from elmo_zh.config.task_settings import INPUTS, DataFiles, FitJob, HeadSettings, Reading, TrainSettings
from elmo_zh.corpus.readers.examples import Example, detect_scheme, in_bioes
from elmo_zh.invocation import install_line
from elmo_zh.run.job import Work
from elmo_zh.run.reporter import SilentReporter
from elmo_zh.tasks.datasets import HELD_OUT_FRACTION, Dataset, Split, choose_rows
from elmo_zh.tasks.fit import with_inputs
from elmo_zh.tasks.scores import ClassPrediction, TagPrediction, main_metric, score_answers
from elmo_zh.tasks.task_model import TaskModel
from elmo_zh.tasks.train import PreparedTask
from elmo_zh.text.normalise import identity_spans

try:
    from sklearn.base import ClassifierMixin
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_consistent_length, check_is_fitted

    from elmo_zh.sklearn import StringEstimator, label_column, list_strings
except ImportError:
    raise ImportError(
        f"elmo_zh.tasks.estimators needs scikit-learn. Install it with: {install_line('tasks')}", name="sklearn"
    ) from None


class _TaskEstimator(StringEstimator):
    """A model on a bundle's vectors. `fit` holds out a tenth of the texts to decide when to stop.

    Words outside the vocabulary are read as the known words that they contain (`ElmoEmbedder.load`).
    """

    _kind = ""

    def __init__(
        self,
        model: str | Path = "runs/latest/model",
        *,
        inputs: Sequence[str] = (),
        head: str = HeadSettings.head,
        encoder: str = HeadSettings.encoder,
        metric: str = HeadSettings.metric,
        hidden_dim: int = HeadSettings.hidden_dim,
        epochs: int = TrainSettings.epochs,
        patience: int = TrainSettings.patience,
        batch_size: int = TrainSettings.batch_size,
        learning_rate: float = TrainSettings.learning_rate,
        seed: int = DataFiles.seed,
        device: str = "auto",
    ) -> None:
        """Store the settings.

        Args:
            model: Folder of the bundle, or name of an installed model.
            inputs: Inputs of the network: some of word2vec, elmo and characters; empty for the default of `task fit`.
            head: Model: mixture (linear models with a BiLSTM), bilstm, or linear, as for `task fit`.
            encoder: LSTMs that read the inputs: single (one BiLSTM) or merged (two with a residual connection).
            metric: Score that decides when a classifier stops: accuracy or macro_f1.
            hidden_dim: Size of each direction of the LSTMs.
            epochs: Maximum number of epochs.
            patience: Stop after this many epochs without a better score on the held-out tenth.
            batch_size: Texts per step.
            learning_rate: Learning rate of Adam.
            seed: Seed for choosing the held-out tenth and for training.
            device: Device of the biLM: auto (a GPU if there is one), cpu or cuda.
        """
        self.model = model
        self.inputs = inputs
        self.head = head
        self.encoder = encoder
        self.metric = metric
        self.hidden_dim = hidden_dim
        self.epochs = epochs
        self.patience = patience
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.seed = seed
        self.device = device

    def _fit(self, examples: Sequence[Example], scheme: str = "") -> None:
        job = self._job()
        if len(examples) < 2:
            raise ValueError(f"fit: {len(examples)} texts; expected at least two: one decides when to stop")
        seed = job.files.seed
        rows = np.arange(len(examples))
        dev = choose_rows(examples, rows, max(1, round(HELD_OUT_FRACTION * len(examples))), seed)
        split = Split(train=np.setdiff1d(rows, dev), dev=dev, test=rows[:0])
        dataset = Dataset(examples=examples, split=split, scheme=scheme, files={})
        embedder = self._load_model()
        reporter = SilentReporter()
        with TemporaryDirectory() as folder:
            job = with_inputs(job, dataset, embedder, reporter)
            fitted = PreparedTask.prepare(job, dataset, embedder, Work(Path(folder), reporter)).fit()
        self.task_ = TaskModel(fitted.description, fitted.head, fitted.linear, embedder)

    def _job(self) -> FitJob:
        """Return the settings as `task fit` takes them; raise ValueError for a setting that it would reject."""
        inputs = self.inputs
        names = list(inputs) if isinstance(inputs, Iterable) and not isinstance(inputs, str) else [None]
        if any(name not in INPUTS for name in names) or len(set(names)) != len(names):
            raise refusal(ValueError, "fit", "inputs", inputs, f"a list of some of {', '.join(INPUTS)}, each once")
        if self._kind == "tag":
            check_choice(self.metric, ["accuracy"], "fit", "metric")
        files, training, settings = (
            {
                name: check_value(value, getattr(self, name), "fit")
                for name, value in values_of(group).items()
                if hasattr(self, name)
            }
            for group in (DataFiles, TrainSettings, HeadSettings)
        )
        return FitJob(
            files=DataFiles(**files),
            reading=Reading(kind=self._kind),
            settings=HeadSettings(kind=self._kind, inputs=tuple(map(str, names)), **settings),
            training=TrainSettings(**training),
        )

    def save(self, path: str | PathLike[str], *, force: bool = False) -> None:
        """Write the trained model to a task folder for `TaskModel.load` and `elmo-zh task predict`.

        Labels are written as strings. The folder refers to the bundle and does not contain it. Its only score is from
        the held-out tenth of the texts.

        Args:
            path: The folder to write; it appears when it is complete.
            force: Replace an existing trained task.

        Raises:
            NotFittedError: If the estimator is not fitted.
            OutputError: If the folder exists and `force` is not given, or it contains something else.
        """
        check_is_fitted(self, "task_")
        self.task_.save(path, force=force)


class ElmoClassifier(ClassifierMixin, _TaskEstimator):  # type: ignore[misc]
    """Classifies texts like `task fit classify`, by default with a mixture of linear models and a BiLSTM.

        scores = cross_val_score(ElmoClassifier("runs/latest/model"), texts, labels, cv=5)

    Attributes:
        classes_: The labels in order, set by `fit`.
        task_: The trained model, set by `fit`.
    """

    _kind = "classify"

    def fit(self, X: Iterable[str], y: Iterable[Any]) -> "ElmoClassifier":
        """Train on texts and their labels.

        Args:
            X: Strings.
            y: One label for each string.

        Raises:
            ValueError: If a setting is invalid, the numbers of labels and texts differ, a label is missing, there are
                fewer than two classes, or X is a single string.
            TypeError: If an item of X is not a string.
            BundleError: If the folder is not a valid bundle.
        """
        texts, labels = list_strings(X, "fit"), label_column(y)
        check_consistent_length(texts, labels)
        check_classification_targets(labels)
        self.classes_, numbers = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError("fit: all texts have the same label; expected at least two labels")
        names = list(map(str, self.classes_))
        self._fit([Example((text,), (names[number],)) for text, number in zip(texts, numbers, strict=True)])
        return self

    def predict(self, X: Iterable[str]) -> NDArray[Any]:
        """Return the most probable label of each string."""
        probabilities = self.predict_proba(X)
        labels: NDArray[Any] = self.classes_[probabilities.argmax(axis=1)]
        return labels

    def predict_proba(self, X: Iterable[str]) -> NDArray[np.float64]:
        """Return the probability of each label, in the order of `classes_`, float64, shape (N, K)."""
        check_is_fitted(self, "task_")
        predictions = self.task_.predict(list_strings(X, "predict"))
        names = list(map(str, self.classes_))
        rows = [
            [prediction.probabilities.get(name, 0.0) for name in names]
            for prediction in predictions
            if isinstance(prediction, ClassPrediction)
        ]
        return np.array(rows, np.float64).reshape(-1, len(names))


class ElmoTagger(_TaskEstimator):
    """Tags the characters of texts with a BiLSTM and CRFs, like `task fit tag`.

        tagger = ElmoTagger("runs/latest/model").fit(["我在北京"], [["O", "O", "B-LOC", "I-LOC"]])

    Attributes:
        task_: The trained model, set by `fit`.
    """

    _kind = "tag"

    def fit(self, X: Iterable[str], y: Iterable[Sequence[str]]) -> "ElmoTagger":
        """Train on texts and the tags of their characters.

        Args:
            X: Strings.
            y: One tag per character for each string: BIO, BMES or BIOES, or tags that mark no spans.

        Raises:
            ValueError: If a setting is invalid, a text does not have one tag per character, or X is a single string.
            TypeError: If an item of X is not a string.
            CorpusError: If the tags do not follow a known scheme.
            BundleError: If the folder is not a valid bundle.
        """
        examples = _tagged(X, y, "fit")
        scheme = detect_scheme((tag for example in examples for tag in example.labels), "fit")
        self._fit(in_bioes(examples)[0] if scheme else examples, scheme)
        return self

    def predict(self, X: Iterable[str]) -> list[list[str]]:
        """Return a tag for each character of each string, in the scheme of the training tags."""
        check_is_fitted(self, "task_")
        predictions = self.task_.predict(list_strings(X, "predict"))
        return [prediction.tags for prediction in predictions if isinstance(prediction, TagPrediction)]

    def score(self, X: Iterable[str], y: Iterable[Sequence[str]]) -> float:
        """Return the F1 of whole spans, or the accuracy if the tags do not mark spans."""
        examples = _tagged(X, y, "score")
        check_is_fitted(self, "task_")
        metric = main_metric(self.task_.description.settings, self.task_.description.scheme)
        gold = [example.labels for example in examples]
        return float(score_answers(gold, self.predict([example.texts[0] for example in examples]), metric)[metric])


def _tagged(X: Iterable[str], y: Iterable[Sequence[str]], call: str) -> list[Example]:
    texts, tags = list_strings(X, call), check_tags(y, call)
    check_consistent_length(texts, tags)
    for number, (text, each) in enumerate(zip(texts, tags, strict=True)):
        if len(text) != len(each):
            raise ValueError(f"{call}: text {number} has {len(text)} characters and {len(each)} tags")
    return [Example((text,), each, identity_spans(len(text))) for text, each in zip(texts, tags, strict=True)]
