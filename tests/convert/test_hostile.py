"""Files that are damaged or mean harm: one line that says so, exit status 1, no memory taken, nothing left behind."""

import gzip
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from contract.command_line import changed_json, contents_alone, elmo_zh
from drawn_bundles import SHAPES, TOKENS, D, P, write_published, zip_folder

from elmo_zh.bundle import weights as bundle_weights

V = TOKENS.num_tokens
CELL = "RNN_1/RNN/MultiRNNCell/Cell1/LSTMCell"
GATES = "RNN_0/RNN/MultiRNNCell/Cell0/LSTMCell/W_0"
LARGE = 10**9


@pytest.fixture(scope="module")
def sound_sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of a model in each mode, in the published layout."""
    folder = tmp_path_factory.mktemp("sound")
    for mode in SHAPES:
        write_published(folder / mode, mode)
    return folder


@pytest.fixture
def token_source(sound_sources: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sound_sources / "token", tmp_path / "token"))


@pytest.fixture
def source(sound_sources: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sound_sources / "character", tmp_path / "character"))


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Its folder holds a file, to see that nothing else is touched or added."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "letter.txt").write_text("dear\n", encoding="utf-8")
    return tmp_path / "out" / "bundle"


def refused(source: Path, out: Path, *options: str | Path) -> str:
    """Return the one line that is told; the source stays as it is, and beside the output nothing is left."""
    before = contents_alone(source) if source.is_dir() else None
    answer = elmo_zh("convert", source, "--output", out, *options)
    told = answer.only_error()
    assert answer.stderr == f"Error: {told}\n"
    assert contents_alone(out.parent) == {"letter.txt": b"dear\n"}
    assert [path.name for path in out.parent.iterdir()] == ["letter.txt"]
    if source.is_dir():
        assert contents_alone(source) == before
    return told


@pytest.fixture
def _no_model_is_built(hdf5_in_its_process: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Building one, or reading a dataset, would take its memory."""

    def fail(*_: object) -> None:
        raise AssertionError("memory was taken")

    monkeypatch.setattr(bundle_weights, "parameter_shapes", fail)
    monkeypatch.setattr(h5py.Dataset, "__getitem__", fail)


# The options


@pytest.mark.parametrize(
    ("section", "values"),
    [
        ("lstm", {"dim": LARGE, "projection_dim": LARGE}),
        ("lstm", {"n_layers": 1000}),
        ("char_cnn", {"filters": [[1, LARGE]] * 1000}),
        ("char_cnn", {"unicode_characters": True, "n_characters": LARGE, "word_embedding": {"dim": LARGE}}),
    ],
)
@pytest.mark.usefixtures("_no_model_is_built")
def test_options_with_sizes_that_the_weights_do_not_have(
    source: Path, out: Path, section: str, values: dict[str, Any]
) -> None:
    with changed_json(source / "options.json") as options:
        options[section] |= values
    assert refused(source, out).startswith(str(source))


# The weights


def change_weights(folder: Path, name: str, **create: Any) -> Path:
    path = folder / "weights.hdf5"
    with h5py.File(path, "a") as file:
        del file[name]
        if create:
            file.create_dataset(name, **create)
    return path


FLOATS = np.ones(4 * D, np.float32)
ChangeWeights = Callable[[h5py.File, Path], object]


def link_elsewhere(name: str) -> ChangeWeights:
    def change(file: h5py.File, folder: Path) -> None:
        with h5py.File(folder / "other.hdf5", "w") as other:
            file.copy(name, other, name="there")
        del file[name]
        file[name] = h5py.ExternalLink(str(folder / "other.hdf5"), "/there")

    return change


def store_outside(file: h5py.File, folder: Path) -> None:
    (folder / "secret").write_bytes(FLOATS.tobytes())
    del file[f"{CELL}/B"]
    file.create_dataset(f"{CELL}/B", (4 * D,), "f4", external=[(str(folder / "secret"), 0, 16 * D)])


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (link_elsewhere(f"{CELL}/B"), f"dataset {CELL}/B is missing;"),
        (store_outside, f"dataset {CELL}/B is incomplete ("),
    ],
)
@pytest.mark.usefixtures("hdf5_in_its_process")
def test_only_plain_datasets_of_the_file_are_read(
    source: Path, out: Path, tmp_path: Path, change: ChangeWeights, told: str
) -> None:
    with h5py.File(source / "weights.hdf5", "r+") as file:
        change(file, tmp_path)
    refusal = refused(source, out)
    assert refusal.startswith(str(source / "weights.hdf5"))
    assert told in refusal


@pytest.mark.usefixtures("_no_model_is_built")
@pytest.mark.parametrize("compression", [None, "gzip"])
def test_a_dataset_of_terabytes_that_were_never_written(source: Path, out: Path, compression: str | None) -> None:
    """4 x 10^9 columns in 10 rows, and of the chunks one is there."""
    with changed_json(source / "options.json") as options:
        options["lstm"]["dim"] = LARGE
    create = {"shape": (2 * P, 4 * LARGE), "dtype": "f4", "chunks": (P, P), "compression": compression}
    path = change_weights(source, GATES, **create)
    with h5py.File(path, "a") as file:
        file[GATES][:P, :P] = 1.0
    refusal = refused(source, out)
    assert refusal.startswith(str(path))
    assert f"dataset {GATES} is incomplete (" in refusal


# The vocabulary


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"x" * 1_000_003, "; expected ['<S>', '</S>', '<UNK>']."),
        (b"<S>\n</S>\n<UNK>\na\n", "n_tokens_vocab is 8"),
    ],
)
def test_a_vocabulary_that_is_none(token_source: Path, out: Path, content: bytes, told: str) -> None:
    """The message shows the beginning of the file, however long its lines are."""
    (token_source / "vocab.data").write_bytes(content)
    found = refused(token_source, out)
    assert told in found
    assert len(found) < 1000


def test_a_packed_vocabulary_that_is_cut_off_or_grows(token_source: Path, out: Path) -> None:
    path = token_source / "vocab.data"
    packed, content = token_source / "vocab.txt.gz", path.read_bytes()
    path.unlink()
    packed.write_bytes(gzip.compress(content)[:-11])
    assert refused(token_source, out).startswith(f"{packed} is damaged (")
    packed.write_bytes(gzip.compress(content + b"x" * 30_000_000))
    assert refused(token_source, out).startswith(f"{packed} expands to far more than a model needs")


# Archives


def zip_source(folder: Path, change: Callable[[zipfile.ZipFile], object] = lambda archive: None) -> Path:
    path = zip_folder(folder, "model/")
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        change(archive)
    return path


def add_packed(name: str, content: bytes, number: int = 1) -> Callable[[zipfile.ZipFile], object]:
    return lambda archive: [archive.writestr(name.format(n), content) for n in range(number)]


UNSAFE = "{path} expands to far more than a model needs"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (add_packed("model/{}.hdf5", bytes(2**20), 23), UNSAFE),
        (add_packed("other/options.json", b"{}"), "{path} contains several files named options.json. "),
        (add_packed("x" * 300 + ".json", b"{}"), "File name too long"),
    ],
)
def test_an_archive_of_something_else(
    source: Path, out: Path, tmp_path: Path, change: Callable[[zipfile.ZipFile], object], told: str
) -> None:
    path = zip_source(source, change)
    before = {file for file in tmp_path.rglob("*") if out.parent not in file.parents}
    assert told.format(path=path) in refused(path, out)
    assert {file for file in tmp_path.rglob("*") if out.parent not in file.parents} == before


@pytest.mark.parametrize("name", ["model/film.mp4", "../evil.json", "/etc/evil.json", "\rnameless"])
def test_nothing_is_unpacked_beside_the_files_of_the_model(source: Path, out: Path, name: str) -> None:
    """Such as a file without a name, on which Python up to 3.11 fails; found by fuzzing."""
    path = zip_source(source, add_packed(name, b"{}"))
    path.write_bytes(path.read_bytes().replace(b"\rnameless", b"\0nameless"))  # a name ends at a null byte
    assert elmo_zh("convert", path, "--output", out).status == 0
    assert {file.name for file in out.parent.iterdir()} == {"bundle", "letter.txt"}
    assert not (out.parents[1] / "evil.json").exists()


def test_an_archive_cut_off_or_damaged(source: Path, out: Path) -> None:
    path = zip_source(source)
    archive = path.read_bytes()
    path.write_bytes(archive[: len(archive) // 2])
    assert refused(path, out).startswith(str(path))
    local = archive.index(b"model/weights.hdf5") - 30
    path.write_bytes(archive[: local + 60] + b"\xff" * 20 + archive[local + 80 :])
    assert refused(path, out).startswith(f"{path} is damaged (")


def test_a_problem_within_an_archive_names_the_archive(source: Path, out: Path) -> None:
    """And not the folder that it was unpacked in, which is gone by then."""
    (source / "options.json").write_text("{}", encoding="utf-8")
    assert str(zip_source(source)) in refused(zip_source(source), out)


# What is no model at all


def test_a_file_that_is_no_archive(tmp_path: Path, out: Path) -> None:
    path = tmp_path / "model.zip"
    for content in (None, b"", b"PK\x03\x04"):
        if content is not None:
            path.write_bytes(content)
        assert refused(path, out).startswith(f"{path} is neither a folder nor a zip archive")


@pytest.mark.parametrize(("kind", "name"), [("options", "options.json"), ("weights", "weights.hdf5")])
def test_a_folder_without_a_part(source: Path, out: Path, kind: str, name: str) -> None:
    (source / name).unlink()
    assert f" --{kind} FILE" in refused(source, out)
    if kind == "weights":  # as TensorFlow keeps them
        (source / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-100"\n', encoding="utf-8")
        assert "dump_weights.py" in refused(source, out)


def test_a_bundle_whose_digests_name_files_elsewhere(source: Path, out: Path, tmp_path: Path) -> None:
    bundle, name = tmp_path / "bundle", "../../secret"
    assert elmo_zh("convert", source, "--output", bundle).status == 0
    with changed_json(bundle / "bundle.json") as info:
        info["digests"][name] = "sha256:0"
    assert refused(bundle, out).startswith(f"{bundle / 'secret'} is missing.")
