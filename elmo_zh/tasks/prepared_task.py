"""A task prepared for training: its texts and labels as numbers, its vectors, and its networks."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from elmo_zh.bundle.word2vec_table import Word2Vec
from elmo_zh.config.task_settings import FitJob
from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.errors import OptionError
from elmo_zh.run.job import Work
from elmo_zh.run.reporter import Reporter, counted
from elmo_zh.tasks.datasets import Dataset, output_labels
from elmo_zh.tasks.encode_texts import KnownCharacters, TextEncoder, Texts, read_alike, read_texts, sentences_of
from elmo_zh.tasks.layers import Sizes
from elmo_zh.tasks.linear import Floats
from elmo_zh.tasks.mixture import NETWORK, STEPS, Judged, LinearModels, Mixture, fit_mixture, is_sure, network_logs
from elmo_zh.tasks.predictions import Prediction
from elmo_zh.tasks.scores import main_metric, score_classes, score_predictions
from elmo_zh.tasks.task_description import TaskDescription
from elmo_zh.tasks.task_head import TaskHead, mix_taggers
from elmo_zh.tasks.task_model import as_prediction
from elmo_zh.tasks.train_head import Item, TrainedHead, predict_items, target_function, train_head
from elmo_zh.tasks.vector_cache import LiveVectors, VectorCache


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
    texts: Texts
    items: Mapping[str, Sequence[Item]]
    reporter: Reporter

    @classmethod
    def prepare(cls, job: FitJob, dataset: Dataset, embedder: ElmoEmbedder, work: Work) -> "PreparedTask":
        """Read the texts and compute their vectors, unless the work folder already has them."""
        texts = read_texts(dataset, embedder, work.reporter)
        sentences = list(sentences_of(chain(*texts.values())))
        cache: VectorCache | LiveVectors | None = None
        if job.training.bilm_learning_rate is not None:
            if embedder.unknown != "unk":
                raise OptionError(
                    f"--fine-tune works only with embed.unknown=unk, not {embedder.unknown}. Leave out --fine-tune,"
                    " or add --set embed.unknown=unk"
                )
            cache = LiveVectors(embedder.bundle, sentences)
        elif "elmo" in job.settings.inputs:
            cache = VectorCache.on_disk(work.within("vectors"), embedder, sentences)
        word2vec = Word2Vec.load(embedder.bundle.path) if "word2vec" in job.settings.inputs else None
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
        """Turn segmented texts and their labels into numbers, with the given vectors as inputs."""
        settings = job.settings
        word2vec = word2vec and read_alike(word2vec, embedder, sentences_of(chain(*texts.values())))
        characters = None
        if "characters" in settings.inputs:
            characters = KnownCharacters.of(text.text for each in texts["train"] for text in each)
        encoder = TextEncoder(cache, word2vec, characters, settings.kind == "tag" and settings.head != "bilstm")
        labels = () if settings.regression else output_labels(dataset)
        numbers = np.array([float(example.labels[0]) for example in dataset.train] if settings.regression else [0.0])
        mean, scale = float(numbers.mean()), max(float(numbers.std()), 1e-6)
        target = target_function(settings, labels, mean, scale)
        items = {
            part: [
                Item(tuple(map(encoder.encode, each)), target(example))
                for each, example in zip(texts[part], examples, strict=True)
            ]
            for part, examples in dataset.parts().items()
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
        trained = train_head(
            self.head(seed),
            self.items["train"],
            self._dev_score,
            encoder=self.encoder,
            settings=self.job.training,
            seed=seed,
            work=work,
        )
        if not self.job.settings.is_crf:
            self.reporter.note(
                f"Seed {seed}: the best of {counted(len(trained.lines), 'epoch')} reached {self.metric}"
                f" {trained.best_score:.4f} on the development examples."
            )
        return trained

    def _dev_score(self, head: TaskHead) -> float:
        return float(self.scores(self.predictions(head, "dev"), "dev")[self.metric])

    def load(self, seed: int, trained: TrainedHead) -> TaskHead:
        """Return a trained network; if the biLM was trained too, restore its trained weights."""
        head = self.head(seed)
        head.load_state_dict(trained.weights)
        if isinstance(self.encoder.cache, LiveVectors):
            self.encoder.cache.bilm.load_state_dict(trained.bilm_weights)
        return head

    def predictions(self, head: TaskHead, part: str) -> list[Prediction]:
        """Return a network's predictions for one part of the data, with spans marked by BIOES tags."""
        description = replace(self.describe(), scheme="BIOES" if self.dataset.scheme else "")
        found = predict_items(head, self.items[part], self.encoder)
        return [as_prediction(description, each, raw) for each, raw in zip(self.texts[part], found, strict=True)]

    def mix(self, head: TaskHead, seed: int, work: Work) -> Mixture:
        """Mix a trained network with linear models by held-out labels, or with a CRF for tags."""
        parts = self.scored_parts()
        if self.job.settings.kind == "tag":
            tagger, judged = self._mix_tagger(head, seed, work)
            return Mixture({}, {}, judged, {part: self.predictions(tagger, part) for part in parts}, tagger)
        network = {part: network_logs(predict_items(head, self.items[part], self.encoder)) for part in parts}
        cache, word2vec = self.encoder.cache, self.encoder.word2vec
        assert not isinstance(cache, LiveVectors)  # with --fine-tune the network is alone

        def score(classes: NDArray[np.int64], logs: Floats) -> float:
            given, found = ([self.labels[number] for number in each] for each in (classes, np.exp(logs).argmax(axis=1)))
            return float(score_classes(given, found)[self.metric])

        return fit_mixture(
            LinearModels(self.dataset, self.texts, cache=lambda: cache, word2vec=word2vec, seed=self.job.files.seed),
            self.job.settings.inputs,
            self.dataset,
            self.labels,
            network,
            score=score,
            reporter=self.reporter,
        )

    def _mix_tagger(self, network: TaskHead, seed: int, work: Work) -> tuple[TaskHead, list[Judged]]:
        """Train a CRF and add it to the network if it earns its place; return the figures of both too."""
        crf = replace(self, job=replace(self.job, settings=replace(self.job.settings, head="linear")))
        linear = crf.load(seed, crf.train(seed, work))
        held_out = zip(self.items["dev"], self.dataset.dev, strict=True)
        known = [item for item, example in held_out if set(example.labels) <= set(self.labels)]

        def mixed(number: int) -> TaskHead:
            return mix_taggers(network, linear, number / STEPS) if number else network

        costs = [self._costs(network, known)]
        # They are convex in the weight, so they fall up to the best one.
        while len(costs) < STEPS:
            costs.append(self._costs(mixed(len(costs)), known))
            if costs[-1].sum() >= costs[-2].sum():
                costs.pop()
                break
        scores = [self._dev_score(mixed(number)) for number in range(len(costs))]
        best = max(number for number, score in enumerate(scores) if score >= scores[0])
        weight = best / STEPS if known and is_sure(costs[0] - costs[best]) else 0.0
        first = Judged(name=NETWORK, num_labels=sum(item.length for item in known), score=scores[0], weight=1 - weight)
        alone, together = self._dev_score(linear), scores[best]
        second = replace(first, name="crf", score=alone, weight=weight, without=scores[0], together=together)
        return mixed(best if weight else 0), [first, second]

    def _costs(self, head: TaskHead, items: Sequence[Item]) -> Floats:
        return np.array(predict_items(head, items, self.encoder, "costs"), np.float64)

    def describe(
        self, scores: Mapping[str, Any] | None = None, head: TaskHead | None = None, mixture: Mixture | None = None
    ) -> TaskDescription:
        """Return the content of task.json for a trained network or a mixture with it, and its scores."""
        bundle, job = self.embedder.bundle, self.job
        reading = {"unknown": self.embedder.unknown, "precision": self.embedder.precision}
        is_kept = mixture is None or mixture.tagger is not None or NETWORK in mixture.weights
        layer_weights = {place: mix.layer_weights() for place, mix in head.mixes().items()} if head and is_kept else {}
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
                **{f"{part}_examples": len(examples) for part, examples in self.dataset.parts().items()},
            },
            scores={**(scores or {}), **({"members": [asdict(each) for each in mixture.judged]} if mixture else {})},
            members=mixture.weights if mixture else {},
            layer_weights=layer_weights,
        )

    def scored_parts(self) -> list[str]:
        """Return the parts to score; the last one gives the final score."""
        return ["dev", "test"] if self.dataset.test else ["dev"]

    def scores(self, predictions: Sequence[Prediction], part: str) -> dict[str, Any]:
        """Score predictions for one part of the data against its labels."""
        examples = self.dataset.parts()[part]
        return score_predictions(examples, predictions, marks_spans=bool(self.dataset.scheme))
