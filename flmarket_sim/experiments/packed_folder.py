"""A directory as bytes, for logs of runs on machines that do not see the sweep's disk."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from flmarket_sim.errors import FlmarketError
from flmarket_sim.storage.atomic_files import disk_error, remove_folder, settle

LARGEST = 2**30  # bytes: the files are in the memory of worker, scheduler and client
Files = dict[str, bytes]


def pack(folder: Path, largest: int = LARGEST) -> Files:
    """The content of every file by its path inside the folder; empty without a folder."""
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    size = sum(path.stat().st_size for path in paths)
    if size > largest:
        raise FlmarketError(
            f"its event log has {size / 2**20:,.1f} MiB, and more than {largest / 2**20:,.1f} MiB "
            "are not sent through a cluster; sweep without keep_events, and `flmarket run` the few "
            "runs whose events you want"
        )
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def unpack(files: Files, folder: Path) -> None:
    """Writes packed files. A folder of that name is replaced when the new one is complete."""
    hidden = folder.with_name(f".{folder.name}.tmp")
    try:
        for old in (hidden, folder):
            remove_folder(old)
        for name, content in files.items():
            parts = PurePosixPath(name).parts
            if ".." in parts or PurePosixPath(name).is_absolute():
                raise FlmarketError(
                    f"a worker sent a file named {name!r}, which is outside of its log"
                )
            path = hidden.joinpath(*parts)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        settle(hidden, folder)
    except OSError as error:
        raise disk_error(folder, error) from error
