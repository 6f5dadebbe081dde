"""The files of another program's model, recognised by content; sizes are checked before anything is unpacked."""

import gzip
import lzma
import shutil
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from elmo_zh.errors import BundleError, ElmoZhError
from elmo_zh.hdf5.foreign_file import ForeignFile
from elmo_zh.language import _
from elmo_zh.run.disk_space import require_disk_space
from elmo_zh.run.files import make_folder, remove

# Suffixes of the files of a model; nothing else is unpacked from an archive.
_WANTED = (".json", ".hdf5", ".h5", ".txt", ".data", ".gz", ".dic", ".pkl")
# Weights hardly compress at all, word lists to a third; far more is a malicious archive.
_MOST_COMPRESSION = 50
_COPY_BYTES = 1 << 20
# All files together may exceed _MOST_COMPRESSION times the archive by this much, since small ones compress better.
_ALWAYS_ALLOWED_BYTES = 1 << 24
_MOST_FILES = 1000
# Exceptions for a damaged, encrypted or unusually compressed archive; OSError is left to problems of the disk.
_ARCHIVE_ERRORS = (
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, NotImplementedError, RuntimeError, ValueError, EOFError,
)  # fmt: skip


@contextmanager
def opened_source(source: Path, unpacked: Path) -> Iterator[Path]:
    """Yield the folder of a model's files; an archive is temporarily unpacked to `unpacked`."""
    if source.is_dir():
        yield source
        return
    if not source.is_file() or not zipfile.is_zipfile(source):
        message = _("{path} is neither a folder nor a zip archive. Give the folder or zip archive of a model.")
        raise BundleError(message.format(path=source))
    remove(unpacked)
    make_folder(unpacked)
    try:
        _unpack(source, unpacked)
        yield unpacked
    except ElmoZhError as error:
        # The folder will have been removed when the message is read.
        raise type(error)(*(message.replace(str(unpacked), str(source)) for message in error.messages)) from None
    finally:
        remove(unpacked)


def _unpack(source: Path, folder: Path) -> None:
    try:
        with zipfile.ZipFile(source) as archive:
            entries = [entry for entry in archive.infolist() if _is_wanted(source, entry)]
            needed = sum(entry.file_size for entry in entries)
            # Files may share their packed bytes, so the archive's size is the measure.
            allowed = _ALWAYS_ALLOWED_BYTES + _MOST_COMPRESSION * source.stat().st_size
            if needed > allowed or len(entries) > _MOST_FILES:
                raise _unsafe(source)
            require_disk_space(folder / source.name, needed)
            for entry in entries:
                path = folder / PurePosixPath(entry.filename).name
                if path.exists():
                    message = _("{path} contains several files named {name}. Unpack it, and give the right folder.")
                    raise BundleError(message.format(path=source, name=path.name))
                # zipfile never reads more of an entry than the size that it claims.
                with archive.open(entry) as packed, path.open("wb") as unpacked:
                    shutil.copyfileobj(packed, unpacked)
    except _ARCHIVE_ERRORS as error:
        message = _("{path} cannot be unpacked ({error}). Download it again, or unpack it yourself.")
        raise BundleError(message.format(path=source, error=error)) from None


def _is_wanted(source: Path, entry: zipfile.ZipInfo) -> bool:
    path = PurePosixPath(entry.filename)
    if ".." in path.parts or path.is_absolute() or "\\" in entry.filename:
        raise _unsafe(source)
    # macOS puts a file of its own beside each file, with the same suffix.
    is_of_macos = "__MACOSX" in path.parts or path.name.startswith("._")
    if path.suffix not in _WANTED or is_of_macos or entry.filename.endswith("/"):
        return False
    if entry.file_size > _COPY_BYTES and entry.file_size > _MOST_COMPRESSION * entry.compress_size:
        raise _unsafe(source)
    return True


def _unsafe(path: Path) -> BundleError:
    message = _(
        "{path} expands to far more than a model needs, or leads out of its folder. It is unsafe; do not use it."
    )
    return BundleError(message.format(path=path))


def require_sane_gzip(path: Path) -> None:
    """Raise BundleError if a .gz file expands beyond any word list's size; damage is reported when the file is read."""
    if path.suffix != ".gz":
        return
    allowed = _COPY_BYTES + _MOST_COMPRESSION * path.stat().st_size
    with gzip.open(path) as file, suppress(EOFError, zlib.error, gzip.BadGzipFile):
        while block := file.read(_COPY_BYTES):
            allowed -= len(block)
            if allowed < 0:
                raise _unsafe(path)


@dataclass(frozen=True, kw_only=True)
class ChosenFiles:
    """Files that the user named; the others are found by searching."""

    options: Path | None = None
    weights: Path | None = None
    vocab: Path | None = None
    token_embeddings: Path | None = None

    def by_option(self) -> dict[str, Path]:
        """Return the named files by their command-line options."""
        given = {
            "--options": self.options,
            "--weights": self.weights,
            "--vocab": self.vocab,
            "--embedding": self.token_embeddings,
        }
        return {name: path for name, path in given.items() if path is not None}


def find_options(folder: Path) -> Path:
    """Return the only file named options.json or, without one, the only *options.json; raise BundleError otherwise."""
    return _only(folder, _named(folder, "options.json", "*options.json"), "options")


def find_weights(folder: Path) -> Path:
    """Return the only HDF5 file that contains LSTM cells; raise BundleError unless there is exactly one."""
    files = sorted(path for path in folder.iterdir() if path.suffix in (".hdf5", ".h5") and path.is_file())
    weights = [path for path in files if ForeignFile.open(path).has_group("RNN_0")]
    if not weights and (folder / "checkpoint").is_file():
        message = _(
            "{path} is a TensorFlow checkpoint. Write its weights as HDF5 with bilm-tf's bin/dump_weights.py, and give"
            " that file: --weights FILE"
        )
        raise BundleError(message.format(path=folder))
    return _only(folder, weights, "weights")


def first_named(folder: Path, *patterns: str) -> Path | None:
    """Return the first file that matches a pattern, trying the patterns in order, or None."""
    return next(iter(_named(folder, *patterns)), None)


def _named(folder: Path, *patterns: str) -> list[Path]:
    matches = (sorted(path for path in folder.glob(pattern) if path.is_file()) for pattern in patterns)
    return next(filter(None, matches), [])


def _only(folder: Path, files: list[Path], what: str) -> Path:
    if len(files) != 1:
        message = _(
            "{path}: {number} files match, so it is not clear which one contains the model's {what}. Specify the file"
            " with --{what} FILE; if it is in an archive, unpack the archive first."
        )
        raise BundleError(message.format(path=folder, number=len(files), what=what))
    return files[0]
