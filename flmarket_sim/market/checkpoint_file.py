"""The file of a checkpoint: an uncompressed .npz archive, and after it a hash of the archive.

Nothing in it is unpacked before it is checked: an array has as many bytes as its header says, and
all together are not larger than the file.
"""

from __future__ import annotations

import hashlib
import math
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]
MARK = b"FLMC"
END = len(MARK) + hashlib.sha256().digest_size
KNOWN = re.compile(
    r"facts|ledger \w+|(learner|behaviour|cheat|inspection) \d+ .+|models \d+"
    r"|bill \d+ (names|people|amounts)"
)


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Writes the archive and its hash."""
    with path.open("wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").digest()
    with path.open("ab") as file:
        file.write(MARK + digest)


def read_arrays(path: Path) -> Arrays:
    """All arrays of the file. Raises ValueError, or what zipfile raises, if it is damaged.

    Files of earlier versions have no hash.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(max(0, size - END))
        end = file.read()
        if end.startswith(MARK) and len(end) == END and _hash(file, size - END) != end[-32:]:
            raise ValueError("it does not have its hash")
        with zipfile.ZipFile(file) as archive:
            members = archive.infolist()
            _check_members(members, size)
            return {one.filename.removesuffix(".npy"): _array(archive, one) for one in members}


def _hash(file: IO[bytes], size: int) -> bytes:
    file.seek(0)
    digest = hashlib.sha256()
    while size > 0 and (block := file.read(min(size, 2**20))):
        digest.update(block)
        size -= len(block)
    return digest.digest()


def _check_members(members: list[zipfile.ZipInfo], size: int) -> None:
    names = [one.filename.removesuffix(".npy") for one in members]
    for name in names:
        if not KNOWN.fullmatch(name) or names.count(name) > 1:
            raise ValueError(f"an array {name[:100]!r} that no checkpoint has")
    if any(one.compress_type != zipfile.ZIP_STORED for one in members):
        raise ValueError("arrays that are compressed")
    if sum(one.file_size for one in members) > size:
        raise ValueError("arrays that are larger than the file")


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    """An array whose header says what there is."""
    with archive.open(member) as file:
        version = npy.read_magic(file)
        header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, fortran, dtype = header(file)
        left = member.file_size - file.tell()
        if (
            dtype.hasobject
            or min(shape, default=0) < 0
            or math.prod(shape) * dtype.itemsize != left
        ):
            raise ValueError(f"an array of {dtype} {shape} in {left:,} bytes")
        flat = np.frombuffer(file.read(), dtype).copy()
    return flat.reshape(shape, order="F" if fortran else "C")
