"""Models of other programs that are fuzzed: `convert` reads them; what it writes is read once and removed."""

from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

from convert.test_manylangs import write_model as write_manylangs
from drawn_bundles import write_published, zip_folder
from fuzz_folders import Folder

from elmo_zh import ElmoEmbedder
from elmo_zh.bundle import BundleForm
from elmo_zh.convert import Conversion
from elmo_zh.convert.convert_model import convert_model
from elmo_zh.hdf5 import foreign_file
from elmo_zh.run.files import remove
from elmo_zh.run.reporter import SilentReporter

# The HDF5 library loops for ever on some inputs, until a limit ends the reading: here sooner than after a minute.
_SECONDS = 2.0


def published_folder(folder: Path, *, has_characters: bool) -> Folder:
    """Options, weights and vocabulary, as bilm-tf and AllenNLP write them."""
    model = write_published(folder / "model", "character" if has_characters else "token")
    return Folder(model, sorted(model.iterdir()), _converter(model, folder / "converted"))


def manylangs_folder(folder: Path) -> Folder:
    """A model of ELMoForManyLangs: settings, dictionaries, and state dictionaries of torch, in which pickles can be."""
    model = write_manylangs(folder / "model", has_words=True)
    return Folder(model, sorted(model.iterdir()), _converter(model, folder / "converted"))


def archive_folder(folder: Path) -> Folder:
    """A model in an archive, as simple_elmo reads them."""
    archive = zip_folder(write_published(folder / "model", "token"))
    return Folder(folder, [archive], _converter(archive, folder / "converted"))


def _converter(source: Path, output: Path) -> Callable[[], object]:
    def read() -> None:
        try:
            with patch.object(foreign_file, "MOST_SECONDS", _SECONDS):
                convert_model(source, output, Conversion(), BundleForm(), force=True, reporter=SilentReporter())
                ElmoEmbedder.load(output, "cpu").embed_tokens([["我们", "吃"]])
        finally:
            remove(output)

    return read
