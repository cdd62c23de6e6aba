"""Files of data sets that come inside a package of the package index: fetched, never executed.

pip says which indexes there are (its own configuration: hosts, certificates, proxies), and the
archive is downloaded as it stands. Its SHA-256 is checked before it is opened. One member of it is
read into memory, by its exact name and up to its known size; nothing is installed, built, imported
or written under a name from the archive.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from flmarket_sim.errors import DataError, shortened

CHUNK = 2**16
_latest: dict[str, bytes] = {}  # the last archive by its hash: data sets have several files


@dataclass(frozen=True)
class PackageFile:
    """A file of a data set that is a member of a package's archive.

    name, sha256, size      the file as text: its name on disk, its hash, its number of bytes
    package, version        the package
    archive, archive_sha256, archive_size  the wheel or source archive of that version
    member                  the path of the file within the archive; ".gz" is unpacked
    """

    name: str
    sha256: str
    size: int
    package: str
    version: str
    archive: str
    archive_sha256: str
    archive_size: int
    member: str

    def content(self, dataset: str, base: str | None = None) -> bytes:
        """The text of the file, from the package index or from the folder or address `base`."""
        if self.archive_sha256 not in _latest:
            chunks = index_chunks(dataset, self) if base is None else base_chunks(base, self)
            content = _checked(dataset, self, chunks)
            _latest.clear()
            _latest[self.archive_sha256] = content
        return member(self, _latest[self.archive_sha256])


def _checked(dataset: str, file: PackageFile, chunks: Iterator[bytes]) -> bytes:
    """The archive, if it has the known size and hash; the download stops when it is too long."""
    content = bytearray()
    try:
        for chunk in chunks:
            content += chunk
            if len(content) > file.archive_size:
                raise DataError(
                    f"{file.archive} is longer than the {file.archive_size:,} bytes that we know; "
                    "nothing was stored"
                )
    except OSError as error:
        raise DataError(
            f"data set {dataset!r}: {file.archive} could not be fetched: {shortened(str(error))}"
        ) from None
    digest = hashlib.sha256(content).hexdigest()
    if digest != file.archive_sha256:
        raise DataError(
            f"{file.archive} has SHA-256 {digest}, expected {file.archive_sha256}; it was not "
            "opened, and nothing was stored"
        )
    return bytes(content)


def member(file: PackageFile, archive: bytes) -> bytes:
    """The member of an archive as text, which has at most the known size."""
    try:
        raw = _zip_member(file, archive) if _is_zip(file) else _tar_member(file, archive)
        if file.member.endswith(".gz"):
            with gzip.GzipFile(fileobj=io.BytesIO(raw)) as unpacked:
                raw = unpacked.read(file.size + 1)
    except (OSError, EOFError, zlib.error, zipfile.BadZipFile, tarfile.TarError) as error:
        raise DataError(f"{file.archive} cannot be unpacked: {error}") from None
    if len(raw) > file.size:
        raise _too_large(file)
    return raw


def _is_zip(file: PackageFile) -> bool:
    return file.archive.endswith((".whl", ".zip"))


def _limit(file: PackageFile) -> int:
    """The largest member that is read; what is compressed may be a little larger than its text."""
    return file.size + (1024 if file.member.endswith(".gz") else 0)


def _zip_member(file: PackageFile, archive: bytes) -> bytes:
    with zipfile.ZipFile(io.BytesIO(archive)) as packed:
        try:
            info = packed.getinfo(file.member)
        except KeyError:
            raise _absent(file) from None
        if info.file_size > _limit(file):
            raise _too_large(file)
        with packed.open(info) as unpacked:
            return unpacked.read(_limit(file) + 1)


def _tar_member(file: PackageFile, archive: bytes) -> bytes:
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as packed:
        for info in packed:
            if info.name != file.member:
                continue
            if info.size > _limit(file):
                raise _too_large(file)
            unpacked = packed.extractfile(info) if info.isreg() else None
            if unpacked is None:
                raise DataError(f"{file.member} in {file.archive} is not a plain file")
            return unpacked.read(_limit(file) + 1)
    raise _absent(file)


def _absent(file: PackageFile) -> DataError:
    return DataError(f"{file.archive} does not have {file.member}")


def _too_large(file: PackageFile) -> DataError:
    return DataError(
        f"{file.member} in {file.archive} is larger than the {file.size:,} bytes that we know"
    )


def base_chunks(base: str, file: PackageFile) -> Iterator[bytes]:
    """The archive from a folder, or from an address up to its last slash."""
    if base.startswith(("https://", "http://")):
        import urllib.request

        with urllib.request.urlopen(f"{base.rstrip('/')}/{file.archive}", timeout=60) as answer:
            while chunk := answer.read(CHUNK):
                yield chunk
        return
    path = Path(base) / file.archive
    if not path.is_file():
        raise DataError(f"{path} does not exist; `from` names an address or a folder with it")
    with path.open("rb") as archive:
        while chunk := archive.read(CHUNK):
            yield chunk


def index_chunks(dataset: str, file: PackageFile) -> Iterator[bytes]:
    """The archive from the package indexes of pip's configuration."""
    advice = (
        f"fetch {file.archive} of the package {file.package} {file.version} by hand and run "
        f"`flmarket data fetch {dataset} --from FOLDER`"
    )
    try:
        session, url = _find(file)
    except ImportError:
        raise DataError(
            f"data set {dataset!r} comes inside a package of the package index, which pip finds, "
            f"and pip is not here. Run 'python -m ensurepip', or {advice}"
        ) from None
    except Exception as error:  # pip's inner parts may change with its version
        raise DataError(
            f"data set {dataset!r}: this version of pip could not search its package index "
            f"({type(error).__name__}: {shortened(str(error))}); {advice}"
        ) from error
    if url is None:
        raise DataError(
            f"data set {dataset!r}: none of pip's package indexes has {file.archive}; {advice}"
        )
    answer = session.get(url, headers={"Accept-Encoding": "identity"}, stream=True)
    try:
        answer.raise_for_status()
        yield from answer.iter_content(CHUNK)
    finally:
        answer.close()


def _find(file: PackageFile) -> tuple[Any, str | None]:
    """A session of pip, and the address of the archive on the first index that has it."""
    collector = import_module("pip._internal.index.collector")
    link = import_module("pip._internal.models.link").Link
    command = import_module("pip._internal.commands").create_command("download")
    options, _ = command.parse_args(["unused"])
    session = command._build_session(options)
    pages = collector.LinkCollector.create(session, options)
    for index in pages.search_scope.get_index_urls_locations(file.package):
        page = pages.fetch_response(link(index))
        for candidate in collector.parse_links(page) if page else ():
            if candidate.filename == file.archive:
                return session, candidate.url_without_fragment
    return session, None
