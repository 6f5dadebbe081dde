"""Adaptation: training that starts from a bundle's weights, on another corpus and with another vocabulary.

Rows of the token table and of the softmax are copied by word, never by position; all other weights are copied as they
are, and then the softmax's bias is fitted to the new text. The initial weights are kept in the run (RUN/start), so the
bundle is no longer needed once training has started.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file

from elmo_zh.bundle.description import model_line
from elmo_zh.bundle.layout import BundleLayout
from elmo_zh.bundle.read import Bundle, load_bundle
from elmo_zh.bundle.settings import require_same_model, require_same_text
from elmo_zh.bundle.weights import load_tensors, named_parameters
from elmo_zh.bundle.word2vec import Word2Vec, write_table
from elmo_zh.config import Config
from elmo_zh.errors import RunError
from elmo_zh.id_store.encoded_sentences import IdStore
from elmo_zh.invocation import command
from elmo_zh.model.language_model import LanguageModel, build_shape
from elmo_zh.run.files import atomic_path, read_json, write_json
from elmo_zh.run.layout import RunDir
from elmo_zh.run.record import load_record, source_digest
from elmo_zh.run.reporter import Reporter
from elmo_zh.scoring.exact import Figures
from elmo_zh.training.heldout import evaluate_heldout
from elmo_zh.training.initial_weights import RowMoves, calibrate_bias
from elmo_zh.training.trainer import Trainer
from elmo_zh.vocabulary.vocabulary import SPECIALS, Vocabulary, load_counts

# The parameters with one row for each word of the vocabulary.
_BY_WORD = ("bilm.token_table.weight", "softmax.weight", "softmax.bias")


@torch.no_grad()
def move_weights(model: LanguageModel, bundle: Bundle, vocabulary: Vocabulary, seed: int) -> RowMoves:
    """Fill a model with a bundle's weights; return where its rows came from."""
    generator = model.initialise(seed)
    source = named_parameters(bundle.bilm, bundle.softmax)
    moves = RowMoves.build(bundle.vocabulary or Vocabulary(SPECIALS), vocabulary)
    for name, own in model.named_tensors().items():
        if name not in _BY_WORD:
            own.copy_(source[name])
        elif name in source:
            moves.fill(own, source[name], generator)
    return moves


@dataclass(frozen=True)
class Start:
    """The bundle weights that a run's training starts from, as kept in RUN/start."""

    # Folder with start.json, model.safetensors and, if the bundle has them, the word2vec vectors of the run's
    # vocabulary.
    path: Path
    # Path, digest, origin and training tokens of the bundle; description of the model; counts of rows by origin;
    # figures of all held-out text once they have been computed.
    info: dict[str, Any]

    @property
    def word2vec(self) -> Path:
        """The file of the word2vec vectors, if the bundle has them."""
        return self.path / "word2vec.hdf5"

    def fill(self, model: LanguageModel) -> None:
        """Load the initial weights into a model."""
        model.load_named_tensors(load_tensors(self.path / "model.safetensors"))

    def report(self, reporter: Reporter) -> None:
        """Report where the weights came from."""
        info = self.info
        rows = info["rows"]
        reporter.note(
            f"Started from {info['bundle']}: {rows['words_kept']:,} of {sum(rows.values()):,} words keep their rows,"
            f" {rows['words_composed']:,} new words start from the known words in them, {rows['words_drawn']:,} at"
            " random."
        )
        if not info["has_softmax"]:
            remedy = "shares the token table" if info["model"]["tie_softmax"] else "starts at random"
            reporter.note(f"{info['bundle']} has no softmax, so the softmax {remedy}.")

    def measure(self, trainer: Trainer, store: IdStore, reporter: Reporter) -> None:
        """Score all held-out text with the initial weights, before the first step, unless that was done before."""
        if not len(store.heldout):
            return
        if "heldout" not in self.info:
            with reporter.progress("evaluate", unit="tokens", total=store.heldout.num_predictions) as progress:
                figures = evaluate_heldout(trainer.model, store, np.arange(len(store.heldout)), progress)
            self.info["heldout"] = asdict(figures)
            write_json(self.path / "start.json", self.info)
        trainer.append_figures(Figures(**self.info["heldout"]), "full", step=0)

    def counts(self) -> dict[str, Any]:
        """Return the counts for the stage record."""
        counts = {"started_from": {"digest": self.info["digest"], **self.info["rows"]}}
        return counts | ({"heldout_before": self.info["heldout"]} if "heldout" in self.info else {})

    def report_result(self, after: Mapping[str, Any], reporter: Reporter) -> None:
        """Report the perplexity of all held-out text before and after training."""
        before = self.info["heldout"]
        reporter.note(
            f"Adapted: held-out perplexity {before['perplexity']:,.1f} before, {after['perplexity']:,.1f} after"
            f" (exact, all {after['num_predictions']:,} predictions);"
            f" {before['bits_per_character']:.3f} and {after['bits_per_character']:.3f} bits per character."
        )
        if after["perplexity"] > before["perplexity"]:
            reporter.warn(
                "Training made the held-out perplexity worse. Try a lower train.learning_rate and"
                " train.table_learning_rate."
            )

    def describe(self) -> dict[str, Any]:
        """Return the origin that a bundle trained from these weights records."""
        return {name: self.info[name] for name in ("digest", "tokens", "origin")}


def load_start(run: RunDir) -> Start | None:
    """Return the weights that a run's training started from, or None if it did not start from a bundle."""
    path = run.start / "start.json"
    if not path.exists():
        return None
    try:
        return Start(run.start, dict(read_json(path)))
    except (ValueError, TypeError) as error:
        raise RunError(
            f"{path} is damaged ({error}). Start training again with: {command('train', '--run', run.path, '--force')}"
        ) from None


def prepare_start(run: RunDir, config: Config, vocabulary: Vocabulary, store: IdStore, reporter: Reporter) -> Start:
    """Return the weights that train.init selects, copying them from the bundle unless the run already has them."""
    path = Path(config.train.init)
    digest = source_digest(run, "train", "train.init", BundleLayout(path).info)
    model = LanguageModel.build(build_shape(config.model, len(vocabulary)), tie_softmax=config.model.is_tied)
    known = load_start(run)
    if known and known.info["digest"] == digest and known.info["model"] == model.describe(vocabulary.digest()):
        return known
    if run.holds(path):
        raise RunError(f"{path} belongs to {run.path} itself. Give --init another model, or choose another --run.")
    bundle = load_bundle(path)
    reporter.note(model_line(bundle))
    require_same_model(config.model, bundle)
    require_same_text(bundle, load_record(run.stage_record("segment")).get("settings", {}), reporter)
    _warn_about_state(bundle, config, reporter)
    moves = move_weights(model, bundle, vocabulary, config.train.seed)
    if bundle.vocabulary is not None and not moves.counts()["words_kept"]:
        raise RunError(f"{path} knows no word of {run.vocab}. Do both have the same language, script and segmenter?")
    counts = torch.tensor(load_counts(run.vocab_counts, vocabulary), dtype=torch.float64)
    is_new = torch.ones(len(vocabulary), dtype=torch.bool)
    is_new[list(moves.kept)] = False
    calibrate_bias(model, store, counts, is_new)
    return _save_start(run, model, bundle, vocabulary, moves)


def _warn_about_state(bundle: Bundle, config: Config, reporter: Reporter) -> None:
    if bundle.info["carry_state"] != config.train.carry_state:
        there, here = (str(carries).lower() for carries in (bundle.info["carry_state"], config.train.carry_state))
        reporter.warn(
            f"{bundle.path} was trained with train.carry_state={there}, but this run has {here}. The model first has to"
            " adapt to the other initial state of sentences, and its perplexity before that is not meaningful."
        )


def _save_start(run: RunDir, model: LanguageModel, bundle: Bundle, vocabulary: Vocabulary, moves: RowMoves) -> Start:
    info = {
        "bundle": str(bundle.path),
        "digest": bundle.digest,
        "tokens": bundle.info["training"].get("tokens"),
        "origin": bundle.info["origin"],
        "has_softmax": bundle.softmax is not None,
        "model": model.describe(vocabulary.digest()),
        "rows": moves.counts(),
    }
    with atomic_path(run.start) as unfinished:
        unfinished.mkdir()
        save_file(model.named_tensors(), unfinished / "model.safetensors")
        if BundleLayout(bundle.path).word2vec.is_file():
            write_table(Start(unfinished, info).word2vec, Word2Vec.load(bundle.path).table_of(vocabulary))
        write_json(unfinished / "start.json", info)
    return Start(run.start, info)
