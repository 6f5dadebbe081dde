"""Archives and wiki dumps for tests, of the bytes of their members and of the wikitext of their pages."""

import io
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

DUMP_START = (
    '<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/"><siteinfo><sitename>W</sitename></siteinfo>\n'
)
DUMP_END = "</mediawiki>\n"


def zip_of(path: Path, members: Mapping[str, bytes | str], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def tar_of(path: Path, members: Mapping[str, bytes], mode: str = "w", *others: tarfile.TarInfo) -> Path:
    with tarfile.open(path, mode) as archive:
        for info in others:
            archive.addfile(info)
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def wiki_page(title: object, text: str, namespace: int = 0, extra: str = "", model: str = "wikitext") -> str:
    return (
        f"<page>\n<title>{title}</title><ns>{namespace}</ns>{extra}<revision><model>{model}</model>"
        f'<text xml:space="preserve">{text}</text></revision></page>\n'
    )
