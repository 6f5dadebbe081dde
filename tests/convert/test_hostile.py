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
        ("char_cnn", {"n_highway": 1000}),
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


@pytest.mark.parametrize(
    "create",
    [
        {},
        *({"data": data} for data in (FLOATS[:-1], FLOATS[:, None], np.array(["1.0"] * 52, dtype="S3"))),
        *({"data": FLOATS.astype(dtype)} for dtype in (np.int64, bool, complex)),
        {"data": ["1.0"] * 52, "dtype": h5py.string_dtype()},
        {"data": h5py.Empty("f4")},
    ],
)
def test_a_dataset_that_is_not_what_it_should_be(source: Path, out: Path, create: dict[str, Any]) -> None:
    path = change_weights(source, f"{CELL}/B", **create)
    told = refused(source, out)
    assert told.startswith(f"{path}: dataset {CELL}/B is ")
    assert "expected floats of shape (52,)" in told


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite(source: Path, out: Path, number: float) -> None:
    path = change_weights(source, f"{CELL}/B", data=np.where(np.arange(52) == 37, number, FLOATS))
    assert refused(source, out).startswith(f"{path}: {CELL}/B contains infinite or NaN values.")


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.7, 0.99])
def test_weights_cut_off(source: Path, out: Path, share: float) -> None:
    path = source / "weights.hdf5"
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    assert refused(source, out).startswith(f"{path} cannot be read as HDF5 (")


def link_elsewhere(name: str) -> ChangeWeights:
    def change(file: h5py.File, folder: Path) -> None:
        with h5py.File(folder / "other.hdf5", "w") as other:
            file.copy(name, other, name="there")
        del file[name]
        file[name] = h5py.ExternalLink(str(folder / "other.hdf5"), "/there")

    return change


def link_softly(file: h5py.File, _: Path) -> None:
    file.move(f"{CELL}/B", "elsewhere")
    file[f"{CELL}/B"] = h5py.SoftLink("/elsewhere")


def name_in_other_bytes(file: h5py.File, _: Path) -> None:
    h5py.h5g.create(file.id, b"more\xff")
    h5py.h5d.create(file.id, b"RNN_\xff\n", h5py.h5t.NATIVE_FLOAT, h5py.h5s.create_simple((2,)))


def store_outside(file: h5py.File, folder: Path) -> None:
    (folder / "secret").write_bytes(FLOATS.tobytes())
    del file[f"{CELL}/B"]
    file.create_dataset(f"{CELL}/B", (4 * D,), "f4", external=[(str(folder / "secret"), 0, 16 * D)])


def store_virtually(file: h5py.File, folder: Path) -> None:
    with h5py.File(folder / "secret.hdf5", "w") as other:
        other["B"] = FLOATS
    layout = h5py.VirtualLayout((4 * D,), "f4")
    layout[:] = h5py.VirtualSource(str(folder / "secret.hdf5"), "B", (4 * D,))
    del file[f"{CELL}/B"]
    file.create_virtual_dataset(f"{CELL}/B", layout)


TOO_MANY = " cannot be read as HDF5 (it has more than 10,000 groups"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (link_elsewhere(f"{CELL}/B"), f": dataset {CELL}/B is missing;"),
        (link_elsewhere("RNN_1"), ": dataset RNN_1/RNN/MultiRNNCell/Cell0/LSTMCell/W_0 is missing;"),
        (link_softly, f": dataset {CELL}/B is missing;"),
        (lambda file, _: file.update({f"more/{n}": h5py.SoftLink("/nowhere") for n in range(11_003)}), TOO_MANY),
        (lambda file, _: [file.create_group(f"more/{n % 7}/{n}") for n in range(11_003)], TOO_MANY),
        (name_in_other_bytes, ": RNN_\\xff\\n is not in the model that options.json"),
        (store_outside, f": dataset {CELL}/B is incomplete ("),
        (store_virtually, f": dataset {CELL}/B is incomplete ("),
    ],
)
@pytest.mark.usefixtures("hdf5_in_its_process")
def test_only_plain_datasets_of_the_file_are_read(
    source: Path, out: Path, tmp_path: Path, change: ChangeWeights, told: str
) -> None:
    with h5py.File(source / "weights.hdf5", "r+") as file:
        change(file, tmp_path)
    assert refused(source, out).startswith(f"{source / 'weights.hdf5'}{told}")


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
    assert refused(source, out).startswith(f"{path}: dataset {GATES} is incomplete (")


@pytest.mark.usefixtures("_no_model_is_built")
def test_a_compressed_dataset_of_zeros_that_claims_far_more_than_it_holds(source: Path, out: Path) -> None:
    """Zeros all through: every chunk is there, and takes a few bytes."""
    with changed_json(source / "options.json") as options:
        options["lstm"]["dim"] = 60_013
    zeros = np.zeros((2 * P, 4 * 60_013), "f4")
    path = change_weights(source, GATES, data=zeros, chunks=(2 * P, 60_013), compression="gzip")
    assert path.stat().st_size < 300_000
    assert refused(source, out).startswith(f"{path}: dataset {GATES} is incomplete (")


# The vocabulary


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "the first three lines are []"),
        (b"x" * 1_000_003, "the first three lines are"),
        ("我们\n".encode("gb18030"), "is not UTF-8"),
        (b"<S>\n</S>\n<UNK>\na\nb\na\nc\n", "the token 'a' occurs 2 times"),
        (b"<S>\n</S>\n<UNK>\na\n\nb\nc\n", "a line is empty"),
        (b"<S>\n</S>\n<UNK>\na\n", "n_tokens_vocab is 8"),
        (b"<S> \n</S> \n<UNK> \na \n", "sed -i"),
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
    assert refused(token_source, out).startswith(f"{packed} is damaged or truncated (")
    packed.write_bytes(gzip.compress(content + b"x" * 30_000_000))
    assert refused(token_source, out).startswith(f"{packed} expands to far more than a model needs")


# Archives


def zip_source(folder: Path, change: Callable[[zipfile.ZipFile], object] = lambda archive: None) -> Path:
    path = zip_folder(folder, "model/")
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        change(archive)
    return path


def add(name: str, content: bytes = b"{}", number: int = 1) -> Callable[[zipfile.ZipFile], object]:
    return lambda archive: [archive.writestr(zipfile.ZipInfo(name.format(n)), content) for n in range(number)]


def add_packed(name: str, content: bytes, number: int = 1) -> Callable[[zipfile.ZipFile], object]:
    return lambda archive: [archive.writestr(name.format(n), content) for n in range(number)]


OUTSIDE = ("../options.json", "../../../../../../../../tmp/evil.json", "model/../../evil.txt", "/etc/evil.json")
UNSAFE = "{path} expands to far more than a model needs, or leads out of its folder."


@pytest.mark.parametrize(
    ("change", "told"),
    [
        *((add(name), UNSAFE) for name in (*OUTSIDE, "model\\evil.json", "C:\\evil.json", "model/..")),
        (add_packed("model/{}.hdf5", bytes(11_000_003)), UNSAFE),
        # Each of them is small enough.
        (add_packed("model/{}.hdf5", bytes(2**20), 23), UNSAFE),
        (add_packed("model/{}.hdf5", b"", 1013), UNSAFE),
        (add("other/options.json"), "{path} contains several files named options.json. "),
        (add("x" * 300 + ".json"), "the name is too long"),
    ],
)
def test_an_archive_of_something_else(
    source: Path, out: Path, tmp_path: Path, change: Callable[[zipfile.ZipFile], object], told: str
) -> None:
    path = zip_source(source, change)
    before = {file for file in tmp_path.rglob("*") if out.parent not in file.parents}
    message = refused(path, out)
    assert told.format(path=path) in message
    assert len(message) < 1000
    assert {file for file in tmp_path.rglob("*") if out.parent not in file.parents} == before


@pytest.mark.parametrize(("name", "content"), [("model/film.mp4", bytes(11_000_003)), ("\rnameless", b"nothing")])
def test_what_no_model_consists_of_is_not_even_unpacked(source: Path, out: Path, name: str, content: bytes) -> None:
    """Such as a file without a name, on which Python up to 3.11 fails; found by fuzzing."""
    path = zip_source(source, add_packed(name, content))
    path.write_bytes(path.read_bytes().replace(b"\rnameless", b"\0nameless"))  # a name ends at a null byte
    assert elmo_zh("convert", path, "--output", out).status == 0


def test_an_archive_larger_than_the_disk(source: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, usage = zip_source(source), shutil.disk_usage(source)._replace(free=1009)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    assert "only 1.0 kB is free" in refused(path, out)


@pytest.mark.parametrize("share", [0.5, 0.9, 0.999])
def test_an_archive_cut_off(source: Path, out: Path, share: float) -> None:
    path = zip_source(source)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    assert refused(path, out).startswith(str(path))


# Which bits of a file are turned, from the beginning of its local header, its central header or its packed content.
DAMAGES: dict[str, list[tuple[str, int, bytes]]] = {
    "encrypted": [("local", 6, b"\1"), ("central", 8, b"\1")],
    "unknown method": [("local", 8, b"\x6a"), ("central", 10, b"\x6a")],
    "damaged content": [("content", 0, b"\xff" * 20)],
    "damaged checksum": [("central", 16, b"\1")],
    "another size": [("central", 24, b"\xff")],
    "another name": [("local", 30, b"\1")],
    "not the UTF-8 that it claims": [
        ("local", 7, b"\x08"),
        ("central", 9, b"\x08"),
        ("local", 30, b"\x92"),
        ("central", 46, b"\x92"),
    ],
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_an_archive_with_a_file_that_cannot_be_unpacked(source: Path, out: Path, damage: str) -> None:
    path, name = zip_source(source), b"model/weights.hdf5"
    archive = bytearray(path.read_bytes())
    local, central = archive.index(name) - 30, archive.rindex(name) - 46
    places = {"local": local, "central": central, "content": local + 30 + len(name)}
    for start, offset, bits in DAMAGES[damage]:
        for number, each in enumerate(bits, places[start] + offset):
            archive[number] ^= each
    path.write_bytes(archive)
    assert zipfile.is_zipfile(path)
    assert refused(path, out).startswith(f"{path} cannot be unpacked (")


def test_a_problem_within_an_archive_names_the_archive(source: Path, out: Path) -> None:
    """And not the folder that it was unpacked in, which is gone by then."""
    (source / "options.json").write_text("{}", encoding="utf-8")
    assert str(zip_source(source)) in refused(zip_source(source), out)


# What is no model at all


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"\x1f\x8b\x08\x00", b"text", None])
def test_a_file_that_is_no_archive(tmp_path: Path, out: Path, content: bytes | None) -> None:
    path = tmp_path / "model.zip"
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


@pytest.mark.parametrize("name", ["../../secret", "/etc/passwd", "weights.hdf5/../../secret"])
def test_a_bundle_whose_digests_name_files_elsewhere(source: Path, out: Path, tmp_path: Path, name: str) -> None:
    bundle = tmp_path / "bundle"
    assert elmo_zh("convert", source, "--output", bundle).status == 0
    with changed_json(bundle / "bundle.json") as info:
        info["digests"][name] = "sha256:0"
    assert refused(bundle, out).startswith(f"{bundle / Path(name).name} is missing.")
