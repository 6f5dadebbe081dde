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
from numpy.typing import NDArray
from torch import Tensor

from elmo_zh.bundle.weights import load_tensors, save_tensors
from elmo_zh.bundle.word2vec_table import Word2Vec
from elmo_zh.config.task_settings import FitJob
from elmo_zh.corpus.readers.examples import Example
from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.language import _
from elmo_zh.model.kernels.execution import with_half_of_the_threads
from elmo_zh.model.scalar_mix import mix_parameter_groups
from elmo_zh.run.job import Files, FinishedPart, Json, Step, Work
from elmo_zh.run.reporter import Progress, Reporter
from elmo_zh.tasks.datasets import Dataset, Numbers
from elmo_zh.tasks.encode_texts import (
    FIRST_CHARACTER,
    Encoded,
    TextEncoder,
    Texts,
    VectorCache,
    known_characters,
    num_units,
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
from elmo_zh.tasks.networks import Sizes, TaskHead, choose_lstm_precision, mix_taggers, predict_all
from elmo_zh.tasks.scores import Answers, main_metric, score_answers, score_classes
from elmo_zh.tasks.task_model import TaskDescription, answers_of, build_head
from elmo_zh.training.optimizer import load_state_tensors, state_tensors

# This many batches of shuffled texts are sorted by length, so each batch holds texts of similar length.
_SORTED_BATCHES = 50
_LARGEST_GRADIENT = 5.0
# For n-grams, each of which occurs in few texts.
_CRF_LEARNING_RATE = 0.03
_EPOCHS, _STATE = "epochs", "safetensors"


@dataclass(eq=False)
class TrainingState:
    """A network in training, with all that the next epoch starts from; it can be saved after each epoch."""

    head: TaskHead
    optimizer: torch.optim.Optimizer
    precision: str  # Training precision of its LSTMs; "" without LSTMs
    lines: list[dict[str, Any]] = field(default_factory=list)  # The figures of each epoch
    best_weights: dict[str, Tensor] = field(default_factory=dict)

    @property
    def best_epoch(self) -> int:
        """The first epoch with the best development score, counted from 1."""
        scores = [line["dev_score"] for line in self.lines]
        return scores.index(max(scores)) + 1

    @property
    def best_score(self) -> float:
        """The best development score."""
        return float(self.lines[self.best_epoch - 1]["dev_score"])

    def has_stopped_rising(self, patience: int) -> bool:
        """Return whether the last `patience` epochs have not improved the best development score."""
        return bool(self.lines) and len(self.lines) - self.best_epoch >= patience

    def save(self, path: Path) -> None:
        """Write the best weights, the current weights and the state of the optimiser."""
        optimizer = state_tensors(self.optimizer)
        groups = {"best": self.best_weights, "head": self.head.state_dict(), "optimizer": optimizer}
        tensors = {f"{group}.{name}": value for group, members in groups.items() for name, value in members.items()}
        save_tensors(tensors, path)

    def resume(self, work: Work) -> list[FinishedPart]:
        """Load the last finished epoch's state, and return the finished epochs; discard them if its file is gone."""
        parts = work.finished(_EPOCHS)
        if parts and parts[-1].file(_STATE).exists():
            self._load(parts[-1].file(_STATE), *parts[-1].value())
            return parts
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
class Fitted:
    """The parts that a task predicts with, and their scores.

    Attributes:
        description: The task's description, with its scores. head: The network (in a mixture for tags, with n-gram
        scores); None if a mixture has left it out. linear: The linear models of the mixture. lines: The figures of each
        epoch, for all seeds. answers: The predicted labels of the development and test examples, by part. In a mixture,
        each development example is predicted by linear models that were not fitted on it.
    """

    description: TaskDescription
    head: TaskHead | None
    linear: Mapping[str, LinearModel] = field(default_factory=dict)
    lines: Sequence[Mapping[str, Any]] = ()
    answers: Mapping[str, Answers] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, eq=False)
class PreparedTask:
    """A dataset as numbers, with everything needed to train and score networks."""

    job: FitJob
    dataset: Dataset
    encoder: TextEncoder
    description: TaskDescription  # without scores and members
    texts: Texts  # of all examples
    encoded: Mapping[str, Sequence[Sequence[Encoded]]]  # the texts and targets of the examples of each part
    reporter: Reporter

    @classmethod
    def prepare(cls, job: FitJob, dataset: Dataset, embedder: ElmoEmbedder, work: Work) -> "PreparedTask":
        """Segment the texts, load or compute the vectors that are inputs, and turn texts and labels into numbers."""
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
        alphabet, rows_of = None, dataset.split.parts()
        if "characters" in job.settings.inputs:
            alphabet = known_characters(text.text for row in rows_of["train"] for text in texts[row])
        encoder = TextEncoder(cache, word2vec, alphabet, job.settings.reads_grams)
        description = _describe(job, dataset, embedder, encoder)
        target_of = _target_function(description)

        def encode(row: int) -> list[Encoded]:
            first, *others = map(encoder.encode, texts[row])
            return [{**first, "target": target_of(dataset.examples[row])}, *others]

        encoded = {part: [*map(encode, rows)] for part, rows in rows_of.items()}
        return cls(
            job=job, dataset=dataset, encoder=encoder, description=description, texts=texts, encoded=encoded,
            reporter=reporter,
        )  # fmt: skip

    @property
    def metric(self) -> str:
        """The name of the score that decides when to stop."""
        return main_metric(self.job.settings, self.dataset.scheme)

    # Training

    def fit(self, work: Work) -> Fitted:
        """Train with each seed; a mixture adds other models to the best network; held-out labels decide the weights.

        Networks that are in the work folder are not trained again.
        """
        seeds, parts = self.job.seeds(), self.scored_parts()
        trained = {seed: self.train(seed, work.within("networks").within(f"seed-{seed}")) for seed in seeds}
        best = max(seeds, key=lambda seed: (trained[seed].best_score, -seed))
        by_seed = {
            str(seed): {part: self.scores(self.answers(state.head, part), part)[self.metric] for part in parts}
            for seed, state in trained.items()
        }
        fitted = self._mixed(trained[best].head, best, work)
        description = fitted.description
        scores = {part: self.scores(answers, part) for part, answers in fitted.answers.items()}
        facts = {"metric": self.metric, "chosen_seed": best, "seeds": by_seed, **scores, **description.scores}
        if fitted.head is not None and fitted.head.mix is not None:
            layer_weights = fitted.head.mix.layer_weights()
            description = replace(description, layer_weights=layer_weights)
        lines = [line for state in trained.values() for line in state.lines]
        return replace(fitted, description=replace(description, scores=facts), lines=lines)

    def train(self, seed: int, work: Work | None = None) -> TrainingState:
        """Train a network until its development score stops rising or the epochs end; return it with its best weights.

        With a work folder, continue after the last epoch there.
        """
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
        state.head.load_state_dict(state.best_weights)
        if not state.head.settings.is_crf:
            message = _(
                "Seed {seed}: epoch {best} of {number} had the best {metric} on the development examples, {score}."
            )
            score, number = f"{state.best_score:.4f}", len(state.lines)
            self.reporter.note(
                message.format(seed=seed, best=state.best_epoch, number=number, metric=self.metric, score=score)
            )
        return state

    def _initial_state(self, seed: int) -> TrainingState:
        """Return the state before training, with a network (for a mixture, its BiLSTM) initialised from a seed."""
        torch.manual_seed(seed)
        settings, training = self.description.settings, self.job.training
        settings = replace(settings, head="bilstm") if settings.head == "mixture" else settings
        head = build_head(replace(self.description, settings=settings))
        learning_rate = _CRF_LEARNING_RATE if settings.is_crf else training.learning_rate
        optimizer = torch.optim.Adam(mix_parameter_groups(head, learning_rate, training.mix_learning_rate))
        return TrainingState(head, optimizer, choose_lstm_precision(head, training.batch_size))

    def _compute_epoch(self, state: TrainingState, seed: int, epoch: int) -> None:
        """Train for an epoch; add its figures to the state, and keep its weights if no earlier epoch scored as high."""
        started = time.perf_counter()
        with self.reporter.progress(
            _("seed {seed}").format(seed=seed), unit="texts", total=len(self.encoded["train"])
        ) as progress:
            if state.lines:
                progress.update(0, loss=state.lines[-1]["train_loss"], dev=state.lines[-1]["dev_score"])
            loss = self._train_epoch(state.head, state.optimizer, np.random.default_rng([seed, epoch]), progress)
        score = self.scores(self.answers(state.head, "dev"), "dev")[self.metric]
        line = {"seed": seed, "epoch": epoch, "train_loss": loss, "dev_score": score}
        state.lines.append({**line, "seconds": round(time.perf_counter() - started, 3)})
        if state.best_epoch == epoch:
            state.best_weights = {name: value.clone() for name, value in state.head.state_dict().items()}

    @with_half_of_the_threads()
    def _train_epoch(
        self, head: TaskHead, optimizer: torch.optim.Optimizer, generator: np.random.Generator, progress: Progress
    ) -> float:
        """Train on all batches once; return the mean loss."""
        head.train()
        torch.manual_seed(int(generator.integers(2**62)))
        total, examples = 0.0, self.encoded["train"]
        for rows in shuffled_batches([*map(num_units, examples)], self.job.training.batch_size, generator):
            optimizer.zero_grad()
            loss = head.loss(self.encoder.batches([examples[row] for row in rows]))
            loss.backward()  # type: ignore[no-untyped-call]
            learning = [parameter for group in optimizer.param_groups for parameter in group["params"]]
            torch.nn.utils.clip_grad_norm_(learning, _LARGEST_GRADIENT)
            optimizer.step()
            total += loss.item() * len(rows)
            progress.update(len(rows))
        return total / len(examples)

    # Scores

    def scored_parts(self) -> list[str]:
        """Return the parts to score; the last one gives the final score."""
        return ["dev", "test"] if len(self.dataset.split.test) else ["dev"]

    def answers(self, head: TaskHead, part: str) -> Answers:
        """Return what a network predicts for one part of the data."""
        return answers_of(self.description, predict_all(head, self.encoded[part], self.encoder))

    def scores(self, answers: Answers, part: str) -> dict[str, Any]:
        """Score answers for one part of the data against its labels."""
        return score_answers(self.dataset.gold(part), answers, self.metric)

    # Mixtures

    def _mixed(self, head: TaskHead, seed: int, work: Work) -> Fitted:
        """Mix a trained network with linear models, or with a CRF for tags, if the settings say so.

        A CRF is trained unless the work folder already has it.
        """
        description = self.description
        if self.job.settings.head == "mixture":
            if self.job.settings.kind != "tag":
                return self._mix_classes(head)
            head, judged = self._mix_tagger(head, seed, work)
            description = replace(description, settings=head.settings, scores={"members": [*map(asdict, judged)]})
        answers = {part: self.answers(head, part) for part in self.scored_parts()}
        return Fitted(description=description, head=head, answers=answers)

    def _mix_classes(self, head: TaskHead) -> Fitted:
        """Mix linear models, judged in folds on training and development examples, with the network, judged on dev."""
        labels, inputs, rows_of = self.description.labels, self.job.settings.inputs, self.dataset.split.parts()
        classes, train, dev, parts = self.dataset.classes(labels), rows_of["train"], rows_of["dev"], self.scored_parts()
        known = classes[dev] >= 0
        rows = np.concatenate([train, dev[known]])
        names = [CHARACTERS, *(name for name in (ELMO, WORD2VEC) if name in inputs)]
        features, fitted = {}, {}
        folds = held_out_folds(self.dataset, rows, self.job.files.seed)
        with self.reporter.progress("linear", unit="models", total=len(names)) as progress:
            for name in names:
                features[name] = Features.of(name, self.texts, self.encoder.cache, self.encoder.word2vec)
                fitted[name] = fit_linear(features[name], rows, classes[rows], len(labels), folds)
                progress.update(1)
        offers = [(name, fitted[name].held_out, np.arange(len(rows))) for name in names]
        logs = {part: {NETWORK: network_logs(predict_all(head, self.encoded[part], self.encoder))} for part in parts}
        held_out_dev = np.arange(len(train), len(rows))
        if len(held_out_dev) >= FEWEST_LABELS:
            offers.append((NETWORK, logs["dev"][NETWORK][known], held_out_dev))
        else:
            self.reporter.note(
                _(
                    "The network is left out, because judging it takes at least {FEWEST_LABELS} development examples."
                ).format(FEWEST_LABELS=FEWEST_LABELS)
            )
        weights, judged = choose_members(offers, classes[rows], class_score(self.metric))
        for name in names:
            for part in parts:
                logs[part][name] = predict_rows(fitted[name].model, features[name], rows_of[part])
            logs["dev"][name][known] = fitted[name].held_out[held_out_dev]
        mixed = {part: mix(logs[part], weights) for part in parts}
        return Fitted(
            description=replace(self.description, members=weights, scores={"members": [*map(asdict, judged)]}),
            head=head if NETWORK in weights else None,
            linear={name: fitted[name].model for name in weights if name != NETWORK},
            answers={part: answers_of(self.description, np.exp(mixed[part]).tolist()) for part in parts},
        )

    def _mix_tagger(self, network: TaskHead, seed: int, work: Work) -> tuple[TaskHead, list[Judged]]:
        """Train a CRF; return its mixture with the network at the best weight on dev, and both members' figures."""
        settings = replace(self.job.settings, head="linear")
        crf = replace(self, description=replace(self.description, settings=settings))
        linear = crf.train(seed, work.within("crf")).head
        mixed = [network, *(mix_taggers(network, linear, step / STEPS) for step in range(1, STEPS + 1))]
        scores = [float(self.scores(self.answers(head, "dev"), "dev")[self.metric]) for head in mixed]
        best = scores.index(max(scores))
        weight, num_labels = best / STEPS, sum(map(num_units, self.encoded["dev"]))
        first = Judged(name=NETWORK, num_labels=num_labels, score=scores[0], weight=1 - weight)
        second = Judged(
            name="crf", num_labels=num_labels, score=scores[-1], weight=weight, without=scores[0], together=scores[best]
        )
        return mixed[best], [first, second]


def _describe(job: FitJob, dataset: Dataset, embedder: ElmoEmbedder, encoder: TextEncoder) -> TaskDescription:
    """Return the content of task.json before the training."""
    bundle, settings, alphabet = embedder.bundle, job.settings, encoder.alphabet or ""
    labels = () if settings.regression else dataset.output_labels()
    train = dataset.gold("train")
    numbers = np.array([float(number) for [number] in train] if settings.regression else [0.0])
    sizes = Sizes(
        num_layers=embedder.num_layers,
        elmo_dim=embedder.dimension,
        word2vec_dim=encoder.word2vec.dimension if encoder.word2vec else 0,
        num_characters=0 if encoder.alphabet is None else FIRST_CHARACTER + len(alphabet),
        num_outputs=max(1, len(labels)),
    )
    return TaskDescription(
        settings=settings,
        sizes=sizes,
        labels=labels,
        scheme=dataset.scheme,
        by_words=dataset.by_words or settings.kind != "tag",
        alphabet=alphabet,
        mean=float(numbers.mean()),
        scale=max(float(numbers.std()), 1e-6),
        model={
            "path": str(bundle.path.absolute()),
            "digest": bundle.digest,
            "unknown": embedder.unknown,
            "precision": embedder.precision,
        },
        training={
            **asdict(job.training),
            "seeds": list(job.seeds()),
            "files": [path.name for path in dataset.files.values()],
            "columns": list(dataset.columns),
            **{f"{part}_examples": len(rows) for part, rows in dataset.split.parts().items()},
        },
    )


def class_score(metric: str) -> Callable[[Numbers, Numbers], float]:
    """Return the function that rates predicted classes against true ones."""
    if metric == "macro_f1":
        return lambda gold, predicted: float(score_classes(gold.tolist(), predicted.tolist())["macro_f1"])
    return lambda gold, predicted: float((gold == predicted).mean())


def shuffled_batches(lengths: Sequence[int], batch_size: int, generator: np.random.Generator) -> list[list[int]]:
    """Divide the indexes of all examples into batches of examples of similar length, in random order."""
    order = generator.permutation(len(lengths)).tolist()
    chunk = _SORTED_BATCHES * batch_size
    batches = []
    for start in range(0, len(order), chunk):
        by_length = sorted(order[start : start + chunk], key=lambda index: lengths[index])
        for place in range(0, len(by_length), batch_size):
            batch = by_length[place : place + batch_size]
            batches += [[batch[row] for row in rows] for rows in short_batches([lengths[index] for index in batch])]
    return [batches[number] for number in generator.permutation(len(batches))]


def _target_function(description: TaskDescription) -> Callable[[Example], NDArray[Any]]:
    """Return the function that maps an example to the network's target."""
    numbers = {label: number for number, label in enumerate(description.labels)}

    def target(example: Example) -> NDArray[Any]:
        if description.settings.regression:
            return np.array([(float(example.labels[0]) - description.mean) / description.scale], np.float32)
        # Labels of development and test examples may be unknown; they are not trained on.
        return np.array([numbers.get(label, 0) for label in example.labels], np.int64)

    return target
