"""A task prepared for training: its texts and labels as numbers, its networks, their training, and their mixtures.

Networks are trained with early stopping. All random numbers of an epoch depend only on the seed and the epoch.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from elmo_zh.bundle.weights import load_tensors, save_tensors
from elmo_zh.bundle.word2vec_table import Word2Vec
from elmo_zh.config.task_settings import FitJob, HeadSettings
from elmo_zh.corpus.readers.examples import Example
from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.language import _
from elmo_zh.model.kernels.execution import with_half_of_the_threads
from elmo_zh.model.scalar_mix import mix_parameter_groups
from elmo_zh.run.job import Files, FinishedPart, Json, Step, Work
from elmo_zh.run.reporter import Progress, Reporter, counted
from elmo_zh.tasks.datasets import Dataset, Numbers
from elmo_zh.tasks.encode_texts import (
    FIRST_CHARACTER,
    Item,
    Target,
    TextEncoder,
    Texts,
    VectorCache,
    known_characters,
    read_alike,
    read_texts,
    sentences_of,
    short_batches,
)
from elmo_zh.tasks.linear import (
    CHARACTERS,
    ELMO,
    FEWEST_LABELS,
    NETWORK,
    STEPS,
    WORD2VEC,
    Features,
    Judged,
    LinearModel,
    choose_members,
    fit_linear,
    held_out_folds,
    mix,
    network_logs,
    predict_rows,
)
from elmo_zh.tasks.networks import Sizes, TaskHead, choose_lstm_precision, mix_taggers, predict_items
from elmo_zh.tasks.scores import Prediction, class_predictions, main_metric, score_classes, score_predictions
from elmo_zh.tasks.task_model import TaskDescription, as_prediction
from elmo_zh.training.optimizer import load_state_tensors, state_tensors

# This many batches of shuffled texts are sorted by length, so each batch holds texts of similar length.
_SORTED_BATCHES = 50
_LARGEST_GRADIENT = 5.0
# For n-grams, each of which occurs in few texts.
_CRF_LEARNING_RATE = 0.03
_EPOCHS, _STATE = "epochs", "safetensors"


@dataclass(frozen=True, eq=False)
class TrainedHead:
    """The weights with the best development score, and the figures of all epochs."""

    weights: Mapping[str, Tensor]
    lines: Sequence[Mapping[str, Any]]

    @property
    def best_score(self) -> float:
        """The best development score."""
        return float(self.lines[best_epoch(self.lines) - 1]["dev_score"])


def best_epoch(lines: Sequence[Mapping[str, Any]]) -> int:
    """Return the first epoch with the best score, counted from 1."""
    scores = [line["dev_score"] for line in lines]
    return scores.index(max(scores)) + 1


@dataclass(eq=False)
class TrainingState:
    """A network in training, from which the next epoch follows; it is saved after each epoch."""

    head: TaskHead
    optimizer: torch.optim.Optimizer
    precision: str  # Training precision of its LSTMs; "" without LSTMs
    lines: list[dict[str, Any]] = field(default_factory=list)  # The figures of each epoch
    best_weights: dict[str, Tensor] = field(default_factory=dict)

    def has_stopped_rising(self, patience: int) -> bool:
        """Return whether the last `patience` epochs had no better development score."""
        return bool(self.lines) and len(self.lines) - best_epoch(self.lines) >= patience

    def save(self, path: Path) -> None:
        """Write all tensors: the best weights, the present weights and the state of the optimiser."""
        optimizer = state_tensors(self.optimizer)
        groups = {"best": self.best_weights, "head": self.head.state_dict(), "optimizer": optimizer}
        tensors = {f"{group}.{name}": value for group, members in groups.items() for name, value in members.items()}
        save_tensors(tensors, path)

    def resume(self, work: Work) -> list[FinishedPart]:
        """Load the state after the last finished epoch, if its file is still there; return the finished epochs."""
        parts = work.finished(_EPOCHS)
        if parts and parts[-1].file(_STATE).exists():
            self._load(parts[-1].file(_STATE), *parts[-1].value())
            return parts
        if parts:
            work.discard(_EPOCHS)
        return []

    def _load(self, path: Path, lines: list[dict[str, Any]], precision: str) -> None:
        groups: dict[str, dict[str, Tensor]] = {"best": {}, "head": {}, "optimizer": {}}
        for full_name, value in load_tensors(path).items():
            group, __, name = full_name.partition(".")
            groups[group][name] = value
        self.lines, self.best_weights = lines, groups["best"]
        self.precision = choose_lstm_precision(self.head, 1, precision)
        self.head.load_state_dict(groups["head"])
        load_state_tensors(self.optimizer, groups["optimizer"])


@dataclass(frozen=True, kw_only=True, eq=False)
class Members:
    """A network, or classifiers with weights chosen on held-out labels, with which a task predicts.

    Attributes:
        head: The network, for tags with its CRF on n-grams; for classes, perhaps not among the members.
        predictions: The predictions for the development and test examples, by part; in a mixture, those for development
            examples come from linear models that were not fitted on them.
        weights: The weight of each member kept; empty for a network alone and for tags.
        linear: The linear models among them.
        judged: The score and contribution of each member.
    """

    head: TaskHead
    predictions: Mapping[str, Sequence[Prediction]]
    weights: Mapping[str, float] = field(default_factory=dict)
    linear: Mapping[str, LinearModel] = field(default_factory=dict)
    judged: Sequence[Judged] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class PreparedTask:
    """A dataset as numbers, with everything needed to train, score and describe networks."""

    job: FitJob
    dataset: Dataset
    embedder: ElmoEmbedder
    encoder: TextEncoder
    sizes: Sizes
    labels: tuple[str, ...]
    mean: float
    scale: float
    texts: Texts  # of all examples
    items: Mapping[str, Sequence[Item]]  # of the examples of each part
    reporter: Reporter

    @classmethod
    def prepare(cls, job: FitJob, dataset: Dataset, embedder: ElmoEmbedder, work: Work) -> "PreparedTask":
        """Read the texts and compute their vectors, unless the work folder already has them."""
        texts, inputs = read_texts(dataset.examples, embedder, work.reporter), job.settings.inputs
        sentences = list(sentences_of(texts))
        cache = VectorCache.on_disk(work.within("vectors"), embedder, sentences) if "elmo" in inputs else None
        word2vec = Word2Vec.load(embedder.bundle.path) if "word2vec" in inputs else None
        word2vec = word2vec and read_alike(word2vec, embedder, sentences)
        return cls.of_texts(job, dataset, embedder, texts, cache=cache, word2vec=word2vec, reporter=work.reporter)

    @classmethod
    def of_texts(
        cls, job: FitJob, dataset: Dataset, embedder: ElmoEmbedder, texts: Texts, *, cache: VectorCache | None,
        word2vec: Word2Vec | None, reporter: Reporter,
    ) -> "PreparedTask":  # fmt: skip
        """Turn segmented texts of all examples and their labels into numbers, with the given vectors as inputs."""
        settings, rows_of = job.settings, dataset.split.parts()
        alphabet = None
        if "characters" in settings.inputs:
            alphabet = known_characters(text.text for row in rows_of["train"] for text in texts[row])
        encoder = TextEncoder(cache, word2vec, alphabet, settings.kind == "tag" and settings.head != "bilstm")
        labels = () if settings.regression else dataset.output_labels()
        train = dataset.part("train")
        numbers = np.array([float(example.labels[0]) for example in train] if settings.regression else [0.0])
        mean, scale = float(numbers.mean()), max(float(numbers.std()), 1e-6)
        target = _target_function(settings, labels, mean, scale)
        items = {
            part: [Item(tuple(map(encoder.encode, texts[row])), target(dataset.examples[row])) for row in rows]
            for part, rows in rows_of.items()
        }
        sizes = Sizes(
            num_layers=embedder.num_layers,
            elmo_dim=embedder.dimension,
            word2vec_dim=word2vec.dimension if word2vec else 0,
            num_characters=0 if alphabet is None else FIRST_CHARACTER + len(alphabet),
            num_outputs=max(1, len(labels)),
        )
        return cls(
            job=job, dataset=dataset, embedder=embedder, encoder=encoder, sizes=sizes, labels=labels, mean=mean,
            scale=scale, texts=texts, items=items, reporter=reporter,
        )  # fmt: skip

    @property
    def metric(self) -> str:
        """The name of the score that decides when to stop."""
        return main_metric(self.job.settings, marks_spans=bool(self.dataset.scheme))

    # Training

    def head(self, seed: int, weights: Mapping[str, Tensor] | None = None) -> TaskHead:
        """Build a network, for a mixture its BiLSTM, with these weights or with initial ones drawn from a seed."""
        torch.manual_seed(seed)
        settings = self.job.settings
        settings = replace(settings, head="bilstm") if settings.head == "mixture" else settings
        head = TaskHead(settings, self.sizes, self.labels, marks_spans=bool(self.dataset.scheme))
        if weights is not None:
            head.load_state_dict(weights)
        return head

    def train(self, seed: int, work: Work | None = None) -> TrainedHead:
        """Train a network until its development score stops rising; continue after the last epoch in a work folder."""
        state, settings = self._initial_state(seed), self.job.training

        def iter_epochs() -> Iterator[int]:
            while len(state.lines) < settings.epochs and not state.has_stopped_rising(settings.patience):
                yield len(state.lines) + 1

        def compute(epoch: int, files: Files) -> Json:
            self._compute_epoch(state, seed, epoch)
            with files.file(_STATE, lasts=False) as path:
                state.save(path)
            return [state.lines, state.precision]

        if work is None:
            for epoch in iter_epochs():
                self._compute_epoch(state, seed, epoch)
        else:
            parts = state.resume(work)
            step = Step(name=_EPOCHS, compute=compute, unit="epochs", total=settings.epochs, in_order=True)
            for part in work.run(step, iter_epochs(), after=list(parts)):
                for earlier in parts[-1:]:  # only the last state is kept
                    earlier.file(_STATE).unlink(missing_ok=True)
                parts.append(part)
        trained = TrainedHead(state.best_weights, state.lines)
        if not state.head.settings.is_crf:
            self.reporter.note(
                _("Seed {seed}: the best of {lines} reached {metric} {best_score} on the development examples.").format(
                    seed=seed,
                    lines=counted(len(state.lines), "{number} epoch", "{number} epochs"),
                    metric=self.metric,
                    best_score=f"{trained.best_score:.4f}",
                )
            )
        return trained

    def _initial_state(self, seed: int) -> "TrainingState":
        head, settings = self.head(seed), self.job.training
        learning_rate = _CRF_LEARNING_RATE if head.settings.is_crf else settings.learning_rate
        optimizer = torch.optim.Adam(mix_parameter_groups(head, learning_rate, settings.mix_learning_rate))
        return TrainingState(head, optimizer, choose_lstm_precision(head, settings.batch_size))

    def _compute_epoch(self, state: "TrainingState", seed: int, epoch: int) -> None:
        """Train for an epoch; add its figures to the state and, if they are the best, its weights."""
        started = time.perf_counter()
        with self.reporter.progress(f"seed {seed}", unit="texts", total=len(self.items["train"])) as progress:
            if state.lines:
                progress.update(0, loss=state.lines[-1]["train_loss"], dev=state.lines[-1]["dev_score"])
            loss = self._train_epoch(state.head, state.optimizer, np.random.default_rng([seed, epoch]), progress)
        line = {"seed": seed, "epoch": epoch, "train_loss": loss, "dev_score": self.main_score(state.head, "dev")}
        state.lines.append({**line, "seconds": round(time.perf_counter() - started, 3)})
        if best_epoch(state.lines) == epoch:
            state.best_weights = {name: value.clone() for name, value in state.head.state_dict().items()}

    @with_half_of_the_threads()
    def _train_epoch(
        self, head: TaskHead, optimizer: torch.optim.Optimizer, generator: np.random.Generator, progress: Progress
    ) -> float:
        """Train on all batches once; return the mean loss."""
        head.train()
        torch.manual_seed(int(generator.integers(2**62)))
        total, items = 0.0, self.items["train"]
        for rows in shuffled_batches([item.length for item in items], self.job.training.batch_size, generator):
            batch = [items[row] for row in rows]
            optimizer.zero_grad()
            loss = head.loss(self.encoder.batches(batch), _targets_of(batch))
            loss.backward()  # type: ignore[no-untyped-call]
            learning = [parameter for group in optimizer.param_groups for parameter in group["params"]]
            torch.nn.utils.clip_grad_norm_(learning, _LARGEST_GRADIENT)
            optimizer.step()
            total += loss.item() * len(batch)
            progress.update(len(batch))
        return total / len(items)

    # Scores

    def scored_parts(self) -> list[str]:
        """Return the parts to score; the last one gives the final score."""
        return ["dev", "test"] if len(self.dataset.split.test) else ["dev"]

    def predictions(self, head: TaskHead, part: str) -> list[Prediction]:
        """Return a network's predictions for one part of the data, with spans marked by BIOES tags."""
        description = replace(self.describe({}), scheme="BIOES" if self.dataset.scheme else "")
        outputs = predict_items(head, self.items[part], self.encoder)
        rows = self.dataset.split.parts()[part]
        return [as_prediction(description, self.texts[row], output) for row, output in zip(rows, outputs, strict=True)]

    def scores(self, predictions: Sequence[Prediction], part: str) -> dict[str, Any]:
        """Score predictions for one part of the data against its labels."""
        return score_predictions(self.dataset.part(part), predictions, marks_spans=bool(self.dataset.scheme))

    def main_score(self, head: TaskHead, part: str) -> float:
        """Return the main score of a network on one part of the data."""
        return float(self.scores(self.predictions(head, part), part)[self.metric])

    # Mixtures

    def members(self, head: TaskHead, seed: int, work: Work) -> Members:
        """Mix a trained network with linear models by held-out labels, or with a CRF for tags, if the settings say so.

        A CRF is trained unless the work folder already has it.
        """
        judged: Sequence[Judged] = ()
        if self.job.settings.head == "mixture":
            if self.job.settings.kind != "tag":
                return self._mix_classes(head)
            head, judged = self._mix_tagger(head, seed, work)
        return Members(
            head=head, predictions={part: self.predictions(head, part) for part in self.scored_parts()}, judged=judged
        )

    def _mix_classes(self, head: TaskHead) -> Members:
        """Judge linear models on training and development examples, in folds, and the network on the latter."""
        inputs, rows_of, parts = self.job.settings.inputs, self.dataset.split.parts(), self.scored_parts()
        classes, train, dev = self.dataset.classes(self.labels), rows_of["train"], rows_of["dev"]
        known = classes[dev] >= 0
        rows = np.concatenate([train, dev[known]])
        names = [CHARACTERS, *(name for name in (ELMO, WORD2VEC) if name in inputs)]
        features, fitted = {}, {}
        folds = held_out_folds(self.dataset, rows, self.job.files.seed)
        with self.reporter.progress("linear models", unit="models", total=len(names)) as progress:
            for name in names:
                features[name] = Features.of(name, self.texts, self.encoder.cache, self.encoder.word2vec)
                fitted[name] = fit_linear(features[name], rows, classes[rows], len(self.labels), folds)
                progress.update(1)
        offers = [(name, fitted[name].held_out, np.arange(len(rows))) for name in names]
        logs = {NETWORK: {part: network_logs(predict_items(head, self.items[part], self.encoder)) for part in parts}}
        held_out_dev = np.arange(len(train), len(rows))
        if len(held_out_dev) >= FEWEST_LABELS:
            offers.append((NETWORK, logs[NETWORK]["dev"][known], held_out_dev))
        else:
            self.reporter.note(
                _(
                    "The network is left out, because judging it takes at least {FEWEST_LABELS} development examples."
                ).format(FEWEST_LABELS=FEWEST_LABELS)
            )
        weights, judged = choose_members(offers, classes[rows], class_score(self.metric))
        for name in names:
            logs[name] = {part: predict_rows(fitted[name].model, features[name], rows_of[part]) for part in parts}
            logs[name]["dev"][known] = fitted[name].held_out[held_out_dev]
        mixed = {part: mix([logs[name][part] for name in weights], [*weights.values()]) for part in parts}
        return Members(
            head=head,
            predictions={part: class_predictions(mixed[part], self.labels) for part in parts},
            weights=weights,
            linear={name: fitted[name].model for name in weights if name != NETWORK},
            judged=judged,
        )

    def _mix_tagger(self, network: TaskHead, seed: int, work: Work) -> tuple[TaskHead, list[Judged]]:
        """Train a CRF, and add it to the network with the best weight for the development examples; also judge both."""
        crf = replace(self, job=replace(self.job, settings=replace(self.job.settings, head="linear")))
        trained = crf.train(seed, work.within("crf"))
        linear = crf.head(seed, trained.weights)
        mixed = [network, *(mix_taggers(network, linear, step / STEPS) for step in range(1, STEPS + 1))]
        scores = [self.main_score(head, "dev") for head in mixed]
        best = scores.index(max(scores))
        weight, num_labels = best / STEPS, sum(item.length for item in self.items["dev"])
        first = Judged(name=NETWORK, num_labels=num_labels, score=scores[0], weight=1 - weight)
        second = Judged(
            name="crf", num_labels=num_labels, score=scores[-1], weight=weight, without=scores[0], together=scores[best]
        )
        return mixed[best], [first, second]

    def describe(self, scores: Mapping[str, Any], members: Members | None = None) -> TaskDescription:
        """Return the content of task.json for a trained task, and its scores."""
        bundle, settings, training = self.embedder.bundle, self.job.settings, self.job.training
        layer_weights: dict[str, list[float]] = {}
        if members is not None:
            if not members.weights or NETWORK in members.weights:
                layer_weights = {place: mix.layer_weights() for place, mix in members.head.mixes().items()}
            settings = members.head.settings if settings.kind == "tag" else settings
            scores = {
                **scores,
                **({"members": [asdict(member) for member in members.judged]} if members.judged else {}),
            }
        return TaskDescription(
            settings=settings,
            sizes=self.sizes,
            labels=self.labels,
            scheme=self.dataset.scheme,
            by_words=self.dataset.by_words or settings.kind != "tag",
            alphabet=self.encoder.alphabet or "",
            mean=self.mean,
            scale=self.scale,
            model={
                "path": str(bundle.path.absolute()),
                "digest": bundle.digest,
                "unknown": self.embedder.unknown,
                "precision": self.embedder.precision,
            },
            training={
                **asdict(training),
                "seeds": list(self.job.seeds()),
                "files": [path.name for path in self.dataset.files.values()],
                "columns": list(self.dataset.columns),
                **{f"{part}_examples": len(rows) for part, rows in self.dataset.split.parts().items()},
            },
            scores=scores,
            members=members.weights if members else {},
            layer_weights=layer_weights,
        )


def class_score(metric: str) -> Callable[[Numbers, Numbers], float]:
    """Return the function that rates predicted classes against true ones."""
    if metric == "macro_f1":
        return lambda gold, predicted: float(score_classes(gold.tolist(), predicted.tolist())["macro_f1"])
    return lambda gold, predicted: float((gold == predicted).mean())


def shuffled_batches(lengths: Sequence[int], batch_size: int, generator: np.random.Generator) -> list[list[int]]:
    """Divide the indexes of all texts into batches of similar length, in random order."""
    order = generator.permutation(len(lengths)).tolist()
    chunk = _SORTED_BATCHES * batch_size
    batches = []
    for start in range(0, len(order), chunk):
        by_length = sorted(order[start : start + chunk], key=lambda index: lengths[index])
        for place in range(0, len(by_length), batch_size):
            batch = by_length[place : place + batch_size]
            batches += [[batch[row] for row in rows] for rows in short_batches([lengths[index] for index in batch])]
    return [batches[number] for number in generator.permutation(len(batches))]


def _targets_of(items: Sequence[Item]) -> Tensor:
    """Stack the targets: classes, int64 (B,); numbers, float32 (B,); or tags, int64 (B, T), padded with 0."""
    targets = [item.target for item in items]
    if not isinstance(targets[0], list):
        return torch.tensor(targets)
    padded = torch.zeros(len(items), max(1, *(item.length for item in items)), dtype=torch.int64)
    for row, tags in enumerate(targets):
        padded[row, : len(tags)] = torch.tensor(tags, dtype=torch.int64)  # type: ignore[arg-type]
    return padded


def _target_function(
    settings: HeadSettings, labels: Sequence[str], mean: float, scale: float
) -> Callable[[Example], Target]:
    """Return the function that maps an example to the network's target."""
    numbers = {label: number for number, label in enumerate(labels)}

    def target(example: Example) -> Target:
        if settings.regression:
            return (float(example.labels[0]) - mean) / scale
        # Labels of development and test examples may be unknown; they are not trained on.
        places = [numbers.get(label, 0) for label in example.labels]
        return places if settings.kind == "tag" else places[0]

    return target
