"""Folders of several files that are fuzzed: one file is replaced, then the folder is read."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from contexts.texts import build, write_text
from contract.command_line import changed_json
from drawn_bundles import SHAPES, WORDS, add_word2vec, write_model

from elmo_zh import ContextIndex, ElmoEmbedder
from elmo_zh.bundle import BundleLayout
from elmo_zh.bundle.read import load_bundle
from elmo_zh.bundle.word2vec_table import Word2Vec
from elmo_zh.bundle.write import load_golden
from elmo_zh.config import TextConfig
from elmo_zh.config.task_settings import HeadSettings
from elmo_zh.contexts.senses import usage_vectors
from elmo_zh.id_store import load_id_store
from elmo_zh.id_store.build import EncodeJob
from elmo_zh.run.files import file_digest
from elmo_zh.run.job import run_job
from elmo_zh.run.reporter import SilentReporter
from elmo_zh.tasks.networks import Sizes, TaskHead
from elmo_zh.tasks.task_model import TaskDescription, TaskLayout, load_description, load_weights, write_task
from elmo_zh.vocabulary.spelling import SpellingModel
from elmo_zh.vocabulary.vocabulary import SPECIALS, Vocabulary

LINES = ("我们 今天 吃 苹果 。", "", "今天 我们 。", "苹果 苹果")


@dataclass(frozen=True)
class Folder:
    path: Path
    files: Sequence[Path]
    read: Callable[[], object]
    # Called when a file was replaced: as one who makes a folder to do harm makes its digests right.
    prepare: Callable[[Path], object] = lambda path: None


def bundle_folder(folder: Path, mode: str) -> Folder:
    model = write_model(
        folder / "model", SHAPES[mode], text=TextConfig(segmenter="whitespace"), warm=True, with_softmax=True
    )
    if mode == "token":
        add_word2vec(model)
    layout = BundleLayout(model)

    def sign(path: Path) -> None:
        if path != layout.info:
            with changed_json(layout.info) as info:
                info["digests"][path.name] = file_digest(path)

    def read() -> None:
        bundle = load_bundle(model)
        load_golden(BundleLayout(bundle.path).golden)
        if mode == "token":
            Word2Vec.load(model)
        ElmoEmbedder(bundle, "cpu").embed_tokens([["我们", "吃"]])

    return Folder(model, [layout.info, *layout.digested()], read, sign)


def id_store_folder(folder: Path) -> Folder:
    vocabulary = Vocabulary((*SPECIALS, *WORDS))
    vocabulary.save(folder / "vocab.data")
    SpellingModel.build({"好": 1}).save(folder / "character_counts.tsv")
    text = write_text(folder / "train-00000.txt", [line for line in LINES if line])
    job = EncodeJob(
        files={"train": [text], "heldout": [text]},
        vocabulary=folder / "vocab.data",
        character_counts=folder / "character_counts.tsv",
        num_slots=11,
        output=folder / "ids",
    )
    run_job(job, force=False, reporter=SilentReporter())

    def read() -> None:
        store = load_id_store(folder / "ids", vocabulary, 11)
        for sentences in (store.train, store.heldout):
            for number in range(len(sentences)):
                sentences[number]

    return Folder(folder, sorted((folder / "ids").iterdir()), read)


def index_folder(folder: Path) -> Folder:
    model = write_model(folder / "model", SHAPES["token"], text=TextConfig(segmenter="whitespace"))
    build(ElmoEmbedder.load(model, "cpu"), [write_text(folder / "a.txt", LINES)], folder / "a.index", min_count=1)

    without_digests(folder / "a.index" / "index.json")

    def read() -> None:
        index = ContextIndex.load(folder / "a.index")
        for word in index.words[:3]:
            index.count(word)
            for number in index.occurrences(word)[:3].tolist():
                occurrence = index.occurrence(number)
                index.line(occurrence.line)
            usage_vectors(index, 1, index.occurrences(word))
        for layer in range(2):
            index.neighbours(index.vectors(layer)[0], layer, 3)

    return Folder(folder, sorted((folder / "a.index").iterdir()), read)


def without_digests(path: Path) -> None:
    """Make a folder as earlier versions wrote it: digests would find every change before the readers see it."""
    with changed_json(path) as found:
        found["digests"] = {}


def task_folder(folder: Path) -> Folder:
    settings = HeadSettings(kind="classify", hidden_dim=3, character_dim=5)
    sizes = Sizes(num_layers=3, elmo_dim=10, word2vec_dim=5, num_characters=7, num_outputs=2)
    layout = TaskLayout(folder)
    description = TaskDescription(
        settings=settings,
        sizes=sizes,
        labels=("好", "坏"),
        scheme="",
        by_words=True,
        alphabet="我们吃",
        mean=0.0,
        scale=1.0,
        model={"path": "model", "digest": "sha256:0", "unknown": "unk", "precision": "float32"},
        training={"seeds": [1]},
        scores={},
        layer_weights=[0.5],
    )
    write_task(layout, description, TaskHead(settings, sizes, description.labels, marks_spans=False), {})
    without_digests(layout.description)
    return Folder(folder, [layout.description, layout.head], lambda: load_weights(layout, load_description(layout)))
