"""run.json: what a run says about itself, checked when it is read.

Known keys have their types. Keys that a later version adds are let through. The last key is a hash
of all the others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, NoReturn

import pydantic

from flmarket_sim.errors import InputError, shortened
from flmarket_sim.storage.sealed_files import check_seal
from flmarket_sim.storage.untrusted_files import parsed_json

NAME = "run.json"
REMEMBERED = 100  # run.json files of a process
FILES = "files"  # the key with the hashes of all files but kept models, which `models` has
FRAMES = "frames"  # hashes of event files without the content of pages, which has checksums
AGAIN = (
    "Run the scenario again into another directory: the same seed gives the same bytes. "
    "`flmarket verify` lists everything that is damaged"
)
_checked: dict[bytes, dict[str, Any]] = {}  # texts that this process has found right, by hash
Count = Annotated[int, pydantic.Field(ge=0, lt=2**62)]
Hash = Annotated[str, pydantic.Field(pattern=r"^[0-9a-f]{64}$")]


class _Known(pydantic.BaseModel):
    """Keys with their types; other keys are let through."""

    model_config = pydantic.ConfigDict(extra="allow", strict=True)


class _Named(_Known):
    name: str = ""


class _Owners(_Known):
    count: Count = 0
    behaviours: list[dict[str, Any]] = []
    cheats: list[dict[str, Any]] = []


class _Market(_Known):
    levels: Count = 0


class _Scenario(_Known):
    name: str = ""
    description: str = ""
    rounds: Count = 0
    buyers: list[_Named] = []
    owners: _Owners = _Owners()
    market: _Market = _Market()
    model: _Named = _Named()
    log: dict[str, Any] = {}


class _Kind(_Known):
    rows: Count = 0
    sha256: Hash = "0" * 64


class _Log(_Known):
    events: Count = 0
    sha256: Hash = "0" * 64
    kinds: dict[str, _Kind] = {}


class _Info(_Known):
    schema_: Annotated[int, pydantic.Field(alias="schema")] = 1
    scenario: _Scenario = _Scenario()
    scenario_sha256: str = ""
    seed: int | None = None
    repeatable: bool = True
    versions: dict[str, str] = {}
    data_files: dict[str, str] = {}
    plugins: dict[str, dict[str, Any]] = {}
    outcome: str = ""
    error: str = ""
    log: _Log = _Log()
    files: dict[str, Hash] = {}
    frames: dict[str, Hash] = {}
    models: dict[str, dict[str, Hash]] = {}
    notes: list[str] = []
    warnings: list[str] = []
    yardsticks: dict[str, dict[str, float | None]] = {}
    wall_seconds: float = 0.0
    view: str = ""


class RunInfo(dict[str, Any]):
    """The content of run.json, or a table in it. A key that is not there is an error for people."""

    def __init__(self, content: Mapping[str, Any], path: Path) -> None:
        super().__init__({key: _copied(value, path) for key, value in content.items()})
        self.path = path

    def __missing__(self, key: str) -> NoReturn:
        raise InputError(f"{self.path} does not describe a run: it has no {key!r}")


def identity(info: Mapping[str, Any]) -> str:
    """Which run this is: other files of a run say with it that they belong to this one."""
    return f"{info['scenario_sha256']} {info.get('seed')}" if "scenario_sha256" in info else ""


def _copied(value: Any, path: Path) -> Any:
    if isinstance(value, dict):
        return RunInfo(value, path)
    return [_copied(one, path) for one in value] if isinstance(value, list) else value


def read_info(run: Path) -> RunInfo:
    """The content of run.json; refuses one that is damaged. A missing file is FileNotFoundError."""
    path = run / NAME
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error}") from None
    digest = hashlib.sha256(text).digest()
    if digest not in _checked:
        content = parsed_json(path, text)
        _check(path, content)
        if len(_checked) >= REMEMBERED:
            _checked.clear()
        _checked[digest] = content
    return RunInfo(_checked[digest], path)


def _check(path: Path, content: dict[str, Any]) -> None:
    check_seal(path, content, AGAIN, needed=FILES in content)
    try:
        _Info.model_validate(content)
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise InputError(
            f"{path} is damaged: {shortened(place)!r} is wrong ({shortened(first['msg'])}). {AGAIN}"
        ) from None


def is_whole(info: Mapping[str, Any]) -> bool:
    """Whether everything in the directory is final: a finished run, or a view of one."""
    return info.get("outcome") == "finished" or "view" in info
