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
    if not source.exists():
        raise BundleError(f"{source} does not exist. Give the folder or zip archive that contains the model's files.")
    if not source.is_file() or not zipfile.is_zipfile(source):
        raise BundleError(
            f"{source} is neither a folder nor a zip archive. Give the folder or zip archive that contains the model's"
            " files."
        )
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
            chosen = [entry for entry in archive.infolist() if _is_wanted(source, entry)]
            needed, free = sum(entry.file_size for entry in chosen), shutil.disk_usage(folder).free
            # Files may share their packed bytes, so the archive's size is the measure.
            allowed = _ALWAYS_ALLOWED_BYTES + _MOST_COMPRESSION * source.stat().st_size
            if needed > allowed or len(chosen) > _MOST_FILES:
                raise BundleError(
                    f"{source} would expand from {source.stat().st_size:,} to {needed:,} bytes in {len(chosen):,}"
                    " files, far more than any model needs. It is unsafe; do not use it."
                )
            if needed > free:
                raise BundleError(
                    f"{source} unpacks to {needed:,} bytes; only {free:,} are free in {folder.parent}. Free some space."
                )
            for entry in chosen:
                _unpack_file(archive, entry, folder / PurePosixPath(entry.filename).name, source)
    except _ARCHIVE_ERRORS as error:
        raise BundleError(f"{source} cannot be unpacked ({error}). Download it again, or unpack it yourself.") from None


def _is_wanted(source: Path, entry: zipfile.ZipInfo) -> bool:
    path = PurePosixPath(entry.filename)
    if ".." in path.parts or path.is_absolute() or "\\" in entry.filename:
        raise BundleError(
            f"{source} is unsafe; do not use it. A path in it leads out of the archive: {entry.filename!r}"
        )
    # macOS puts a file of its own beside each file, with the same suffix.
    is_of_macos = "__MACOSX" in path.parts or path.name.startswith("._")
    if path.suffix not in _WANTED or is_of_macos or entry.filename.endswith("/"):
        return False
    if entry.file_size > _COPY_BYTES and entry.file_size > _MOST_COMPRESSION * entry.compress_size:
        raise BundleError(
            f"{source}: {entry.filename} would expand from {entry.compress_size:,} to {entry.file_size:,} bytes, far"
            " more than any model needs. It is unsafe; do not use it."
        )
    return True


def _unpack_file(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, path: Path, source: Path) -> None:
    if path.exists():
        raise BundleError(f"{source} contains several files named {path.name}. Unpack it, and give the right folder.")
    # zipfile never reads more of an entry than the size that it claims.
    with archive.open(entry) as packed, path.open("wb") as unpacked:
        shutil.copyfileobj(packed, unpacked)


def require_sane_gzip(path: Path) -> None:
    """Raise BundleError if a .gz file expands beyond any word list's size; damage is reported when the file is read."""
    if path.suffix != ".gz":
        return
    allowed = _COPY_BYTES + _MOST_COMPRESSION * path.stat().st_size
    with gzip.open(path) as file, suppress(EOFError, zlib.error, gzip.BadGzipFile):
        while block := file.read(_COPY_BYTES):
            allowed -= len(block)
            if allowed < 0:
                raise BundleError(
                    f"{path} would expand to more than {_MOST_COMPRESSION} times its size, far more than any word list"
                    " needs. It is unsafe; do not use it."
                )


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
    return _only(folder, [path for path in files if ForeignFile.open(path).has_group("RNN_0")], "weights")


def first_named(folder: Path, *patterns: str) -> Path | None:
    """Return the first file that matches a pattern, trying the patterns in order, or None."""
    return next(iter(_named(folder, *patterns)), None)


def _named(folder: Path, *patterns: str) -> list[Path]:
    for pattern in patterns:
        if found := sorted(path for path in folder.glob(pattern) if path.is_file()):
            return found
    return []


def _only(folder: Path, found: list[Path], what: str) -> Path:
    if len(found) != 1:
        names = f"{len(found)} files match: {', '.join(path.name for path in found)}" if found else "no file matches"
        raise BundleError(
            f"{folder}: cannot tell which file contains the model's {what} ({names}). Specify the file with"
            f" --{what} FILE; if it is in an archive, unpack the archive first."
        )
    return found[0]
