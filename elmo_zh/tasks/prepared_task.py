"""A task prepared for training: its texts and labels as numbers, its vectors, its networks, and their mixtures."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch

from elmo_zh.bundle.word2vec_table import Word2Vec
from elmo_zh.config.task_settings import FitJob
from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.errors import OptionError
from elmo_zh.language import _
from elmo_zh.run.job import Work
from elmo_zh.run.reporter import Reporter, counted
from elmo_zh.tasks.datasets import Dataset, Numbers, fold_numbers
from elmo_zh.tasks.encode_texts import KnownCharacters, TextEncoder, Texts, read_alike, read_texts, sentences_of
from elmo_zh.tasks.layers import Sizes
from elmo_zh.tasks.linear import (
    CHARACTERS,
    ELMO,
    FEWEST_LABELS,
    MANY_ROWS,
    NETWORK,
    NUM_FOLDS,
    STEPS,
    WORD2VEC,
    Features,
    Floats,
    Judged,
    LinearModel,
    LinearModels,
    choose_members,
    mix,
    network_logs,
)
from elmo_zh.tasks.predictions import Prediction, class_predictions
from elmo_zh.tasks.scores import main_metric, score_classes, score_predictions
from elmo_zh.tasks.task_head import TaskHead, mix_taggers
from elmo_zh.tasks.task_model import TaskDescription, as_prediction
from elmo_zh.tasks.train_head import Item, TrainedHead, Training, predict_items, target_function
from elmo_zh.tasks.vector_cache import LiveVectors, VectorCache


@dataclass(frozen=True, eq=False)
class Mixture:
    """The classifiers chosen on held-out labels, with their weights and predictions.

    Attributes:
        weights: The weight of each member kept; empty for tags, whose members are one network.
        linear: The linear models among them.
        judged: The score and contribution of each member.
        predictions: The mixture's predictions for the development and test examples, by part; for the development
            examples, they come from linear models that were not fitted on them.
        tagger: That network; None for classes.
    """

    weights: Mapping[str, float]
    linear: Mapping[str, LinearModel]
    judged: Sequence[Judged]
    predictions: Mapping[str, Sequence[Prediction]]
    tagger: TaskHead | None = None


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
        texts = read_texts(dataset.examples, embedder, work.reporter)
        cache: VectorCache | LiveVectors | None = None
        if job.training.bilm_learning_rate is not None:
            if embedder.unknown != "unk":
                raise OptionError(
                    _(
                        "--fine-tune works only with embed.unknown=unk, not {unknown}. Leave out --fine-tune, or add"
                        " --set embed.unknown=unk"
                    ).format(unknown=embedder.unknown)
                )
            cache = LiveVectors(embedder.bundle, sentences_of(texts))
        elif "elmo" in job.settings.inputs:
            cache = VectorCache.on_disk(work.within("vectors"), embedder, sentences_of(texts))
        word2vec = Word2Vec.load(embedder.bundle.path) if "word2vec" in job.settings.inputs else None
        word2vec = word2vec and read_alike(word2vec, embedder, sentences_of(texts))
        return cls.of_texts(job, dataset, embedder, texts, cache=cache, word2vec=word2vec, reporter=work.reporter)

    @classmethod
    def of_texts(
        cls,
        job: FitJob,
        dataset: Dataset,
        embedder: ElmoEmbedder,
        texts: Texts,
        *,
        cache: VectorCache | LiveVectors | None,
        word2vec: Word2Vec | None,
        reporter: Reporter,
    ) -> "PreparedTask":
        """Turn segmented texts of all examples and their labels into numbers, with the given vectors as inputs."""
        settings, rows_of = job.settings, dataset.split.parts()
        characters = None
        if "characters" in settings.inputs:
            characters = KnownCharacters.of(text.text for row in rows_of["train"] for text in texts[row])
        encoder = TextEncoder(cache, word2vec, characters, settings.kind == "tag" and settings.head != "bilstm")
        labels = () if settings.regression else dataset.output_labels()
        train = dataset.part("train")
        numbers = np.array([float(example.labels[0]) for example in train] if settings.regression else [0.0])
        mean, scale = float(numbers.mean()), max(float(numbers.std()), 1e-6)
        target = target_function(settings, labels, mean, scale)
        items = {
            part: [Item(tuple(map(encoder.encode, texts[row])), target(dataset.examples[row])) for row in rows]
            for part, rows in rows_of.items()
        }
        sizes = Sizes(
            num_layers=embedder.num_layers,
            elmo_dim=embedder.dimension,
            word2vec_dim=word2vec.dimension if word2vec else 0,
            num_characters=len(characters) if characters else 0,
            num_outputs=max(1, len(labels)),
        )
        return cls(
            job=job, dataset=dataset, embedder=embedder, encoder=encoder, sizes=sizes, labels=labels, mean=mean,
            scale=scale, texts=texts, items=items, reporter=reporter,
        )  # fmt: skip

    def head(self, seed: int) -> TaskHead:
        """Build a network, for a mixture its BiLSTM, with initial weights drawn from a seed."""
        torch.manual_seed(seed)
        settings = self.job.settings
        settings = replace(settings, head="bilstm") if settings.head == "mixture" else settings
        return TaskHead(settings, self.sizes, self.labels, marks_spans=bool(self.dataset.scheme))

    @property
    def metric(self) -> str:
        """The name of the score that decides when to stop."""
        return main_metric(self.job.settings, marks_spans=bool(self.dataset.scheme))

    def train(self, seed: int, work: Work) -> TrainedHead:
        """Train a network with one seed, or continue its training."""
        if isinstance(self.encoder.cache, LiveVectors):
            self.encoder.cache.reset()
        training = Training(
            self.head(seed), self.items["train"], self._dev_score, self.encoder, self.job.training, seed, work.reporter
        )
        trained = training.run(work)
        if not self.job.settings.is_crf:
            self.reporter.note(
                _("Seed {seed}: the best of {lines} reached {metric} {best_score} on the development examples.").format(
                    seed=seed,
                    lines=counted(len(trained.lines), "{number} epoch", "{number} epochs"),
                    metric=self.metric,
                    best_score=f"{trained.best_score:.4f}",
                )
            )
        return trained

    def load(self, seed: int, trained: TrainedHead) -> TaskHead:
        """Return a trained network; if the biLM was trained too, restore its trained weights."""
        head = self.head(seed)
        head.load_state_dict(trained.weights)
        if isinstance(self.encoder.cache, LiveVectors):
            self.encoder.cache.bilm.load_state_dict(trained.bilm_weights)
        return head

    # Scores

    def scored_parts(self) -> list[str]:
        """Return the parts to score; the last one gives the final score."""
        return ["dev", "test"] if len(self.dataset.split.test) else ["dev"]

    def predictions(self, head: TaskHead, part: str) -> list[Prediction]:
        """Return a network's predictions for one part of the data, with spans marked by BIOES tags."""
        description = replace(self.describe(), scheme="BIOES" if self.dataset.scheme else "")
        outputs = predict_items(head, self.items[part], self.encoder)
        rows = self.dataset.split.parts()[part]
        return [as_prediction(description, self.texts[row], output) for row, output in zip(rows, outputs, strict=True)]

    def scores(self, predictions: Sequence[Prediction], part: str) -> dict[str, Any]:
        """Score predictions for one part of the data against its labels."""
        return score_predictions(self.dataset.part(part), predictions, marks_spans=bool(self.dataset.scheme))

    def all_scores(self, head: TaskHead) -> dict[str, dict[str, Any]]:
        """Score a network on the development and test examples."""
        return {part: self.scores(self.predictions(head, part), part) for part in self.scored_parts()}

    def _dev_score(self, head: TaskHead) -> float:
        return float(self.scores(self.predictions(head, "dev"), "dev")[self.metric])

    # Mixtures

    def mix(self, head: TaskHead, seed: int, work: Work) -> Mixture:
        """Mix a trained network with linear models by held-out labels, or with a CRF for tags."""
        if self.job.settings.kind == "tag":
            tagger, judged = self._mix_tagger(head, seed, work)
            parts = self.scored_parts()
            return Mixture({}, {}, judged, {part: self.predictions(tagger, part) for part in parts}, tagger)
        return self._mix_classes(head)

    def _mix_classes(self, head: TaskHead) -> Mixture:
        """Judge linear models on training and development examples, in folds, and the network on the latter."""
        inputs, classes, rows_of = (
            self.job.settings.inputs,
            self.dataset.classes(self.labels),
            self.dataset.split.parts(),
        )
        train, dev = rows_of["train"], rows_of["dev"]
        known = classes[dev] >= 0
        rows = np.concatenate([train, dev[known]])
        cache, word2vec = self.encoder.cache, self.encoder.word2vec
        assert not isinstance(cache, LiveVectors)  # with --fine-tune the network is alone
        models = linear_models(
            self.dataset, lambda name: Features.of(name, self.texts, cache, word2vec), self.job.files.seed
        )
        score = class_score(self.metric)
        fitted = {}
        names = [CHARACTERS, *(name for name in (ELMO, WORD2VEC) if name in inputs)]
        with self.reporter.progress("linear models", unit="models", total=len(names)) as progress:
            for name in names:
                fitted[name] = models.fit(name, rows, classes[rows])
                progress.update(1)
        offers = [(name, fitted[name].held_out, np.arange(len(rows))) for name in names]
        logs: dict[str, dict[str, Floats]] = {NETWORK: {}}
        for part in self.scored_parts():
            logs[NETWORK][part] = network_logs(predict_items(head, self.items[part], self.encoder))
        held_out_dev = np.arange(len(train), len(rows))
        if len(held_out_dev) >= FEWEST_LABELS:
            offers.append((NETWORK, logs[NETWORK]["dev"][known], held_out_dev))
        else:
            self.reporter.note(
                _(
                    "The network is left out, because judging it takes at least {FEWEST_LABELS} development examples."
                ).format(FEWEST_LABELS=FEWEST_LABELS)
            )
        weights, judged = choose_members(offers, classes[rows], score)
        for name in names:
            logs[name] = {part: models.predict(name, fitted[name], rows_of[part]) for part in self.scored_parts()}
            logs[name]["dev"][known] = fitted[name].held_out[held_out_dev]
        mixed = {part: mix([logs[name][part] for name in weights], [*weights.values()]) for part in self.scored_parts()}
        linear = {name: fitted[name].model for name in weights if name != NETWORK}
        return Mixture(weights, linear, judged, {part: class_predictions(mixed[part], self.labels) for part in mixed})

    def _mix_tagger(self, network: TaskHead, seed: int, work: Work) -> tuple[TaskHead, list[Judged]]:
        """Train a CRF, and add it to the network with the best weight for the development examples; also judge both."""
        crf = replace(self, job=replace(self.job, settings=replace(self.job.settings, head="linear")))
        linear = crf.load(seed, crf.train(seed, work))
        tagger, scores = network, [self._dev_score(network)]
        best = 0
        for step in range(1, STEPS + 1):
            mixed = mix_taggers(network, linear, step / STEPS)
            scores.append(self._dev_score(mixed))
            if scores[-1] > scores[best]:
                tagger, best = mixed, step
        weight, num_labels = best / STEPS, sum(item.length for item in self.items["dev"])
        first = Judged(name=NETWORK, num_labels=num_labels, score=scores[0], weight=1 - weight)
        second = Judged(
            name="crf", num_labels=num_labels, score=scores[-1], weight=weight, without=scores[0], together=scores[best]
        )
        return tagger, [first, second]

    def describe(
        self, scores: Mapping[str, Any] | None = None, head: TaskHead | None = None, mixture: Mixture | None = None
    ) -> TaskDescription:
        """Return the content of task.json for a trained network or a mixture with it, and its scores."""
        bundle, job = self.embedder.bundle, self.job
        reading = {"unknown": self.embedder.unknown, "precision": self.embedder.precision}
        is_kept = mixture is None or mixture.tagger is not None or NETWORK in mixture.weights
        layer_weights = {place: mix.layer_weights() for place, mix in head.mixes().items()} if head and is_kept else {}
        counts = {f"{part}_examples": len(rows) for part, rows in self.dataset.split.parts().items()}
        return TaskDescription(
            settings=head.settings if head and job.settings.kind == "tag" else job.settings,
            sizes=self.sizes,
            labels=self.labels,
            scheme=self.dataset.scheme,
            by_words=self.dataset.by_words or job.settings.kind != "tag",
            alphabet=self.encoder.characters.characters if self.encoder.characters else "",
            mean=self.mean,
            scale=self.scale,
            model={"path": str(bundle.path.absolute()), "digest": bundle.digest, **reading},
            training={
                **asdict(job.training),
                "seeds": list(job.seeds()),
                "files": [path.name for path in self.dataset.files.values()],
                "columns": list(self.dataset.columns),
                **counts,
            },
            scores={**(scores or {}), **({"members": [asdict(each) for each in mixture.judged]} if mixture else {})},
            members=dict(mixture.weights) if mixture else {},
            layer_weights=layer_weights,
        )


def linear_models(dataset: Dataset, features_of: Callable[[str], Features], seed: int) -> LinearModels:
    """Return what fits linear models on rows of a dataset and predicts held-out ones in folds."""

    def fold_of(rows: Numbers) -> Numbers:
        # Many held-out labels tell enough after two fits.
        return fold_numbers(dataset.at(rows), NUM_FOLDS if len(rows) < MANY_ROWS else 2, seed)

    return LinearModels(features_of, fold_of)


def class_score(metric: str) -> Callable[[Numbers, Numbers], float]:
    """Return the function that rates predicted classes against true ones."""
    if metric == "macro_f1":
        return lambda gold, predicted: float(score_classes(gold.tolist(), predicted.tolist())["macro_f1"])
    return lambda gold, predicted: float((gold == predicted).mean())
