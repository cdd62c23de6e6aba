"""The kept models of a run: one safetensors file for each buyer and number of finished rounds.

RUN/models/buyer-0/rounds-00012.safetensors
    parameters  (D,) the first buyer's model after 12 rounds: round 12 of the log begins with it
    gradient    (D,) what was delivered in the last of these rounds, which is round 11 of the log;
                not there before the first round, nor after a round without a gradient
    average     (D,) the mean of her models that was evaluated, where the scenario averages them
                ([model] averaging); not there before the first round

The SHA-256 of every file is in run.json, under `models`. A run that is still going on, or was
killed, has files without hashes.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.errors import InputError, did_you_mean, shortened
from flmarket_sim.eventlog.reader import read_run
from flmarket_sim.storage.atomic_files import write_whole
from flmarket_sim.storage.sealed_tensors import checked_facts, metadata_of, sealed_metadata

Floats = NDArray[np.float64]
FOLDER = "models"
Hashes = dict[str, dict[int, str | None]]  # buyer -> finished rounds -> SHA-256 of the file


@dataclass(frozen=True, eq=False)
class KeptModel:
    """A buyer's model after so many rounds.

    parameters  (D,) as `BuyerModel` takes them: flat, in the model's own order
    gradient    (D,) delivered in the last of these rounds; None if there was none
    average     (D,) the mean of her models so far; None if they are not averaged
    """

    buyer: str
    rounds: int
    parameters: Floats
    gradient: Floats | None
    average: Floats | None = None

    @property
    def evaluated(self) -> Floats:
        """(D,) the parameters that `loss` and `accuracy` of the log are of."""
        return self.parameters if self.average is None else self.average

    def __repr__(self) -> str:
        size = f"{len(self.parameters):,} parameters"
        return f"<KeptModel of {self.buyer} after {self.rounds:,} rounds: {size}>"


def read_model(
    run: str | os.PathLike[str], rounds: int | None = None, buyer: str | None = None
) -> KeptModel:
    """A kept model, by default the last one. A market with several buyers needs the name of one.

    Round r of the log begins with the model after r rounds and ends with the one after r + 1.
    Raises InputError if it was not kept, is lost, or does not have its hash.
    """
    hashes = kept_hashes(run)
    if not hashes:
        view = read_run(run).get("view")
        reason = "[log] models of its scenario decides" if view is None else f"{view} was sent none"
        raise InputError(f"{run} has no kept models: {reason}")
    if buyer is None and len(hashes) > 1:
        raise InputError(f"several buyers have models; choose one of {', '.join(hashes)}")
    chosen = next(iter(hashes)) if buyer is None else buyer
    if chosen not in hashes:
        hint = did_you_mean(chosen, hashes, ".")
        raise InputError(
            f"{run} has no models of a buyer {chosen!r}{hint} It has those of {', '.join(hashes)}"
        )
    kept = sorted(hashes[chosen])
    wanted = kept[-1] if rounds is None else rounds
    if wanted not in hashes[chosen]:
        some = ", ".join(map(str, kept[:10])) + (f", ... {kept[-1]}" if len(kept) > 10 else "")
        raise InputError(
            f"{run} does not have the model of {chosen!r} after {wanted} rounds; it has those "
            f"after {some}"
        )
    path = model_path(run, buyer_names(read_run(run), run).index(chosen), wanted)
    return KeptModel(chosen, wanted, *_read(path, hashes[chosen][wanted]))


def read_models(run: str | os.PathLike[str], buyer: str | None = None) -> Iterator[KeptModel]:
    """The kept models of one buyer, or of all buyers one after the other, in order of rounds."""
    if buyer is not None:
        read_model(run, buyer=buyer)  # refuses a buyer without models
    names = buyer_names(read_run(run), run)
    for name, files in kept_hashes(run).items():
        for rounds, digest in sorted(files.items() if buyer in (None, name) else ()):
            path = model_path(run, names.index(name), rounds)
            yield KeptModel(name, rounds, *_read(path, digest))


def check_models(run: str | os.PathLike[str]) -> list[Callable[[], object]]:
    """For each kept model, what to call to have its file checked."""
    try:
        names, hashes = buyer_names(read_run(run), run), kept_hashes(run)
    except InputError:
        return [lambda: kept_hashes(run)]
    files = [
        (model_path(run, names.index(name), rounds), digest)
        for name, kept in hashes.items()
        for rounds, digest in sorted(kept.items())
    ]
    return [partial(_read, path, digest) for path, digest in files]


def kept_hashes(run: str | os.PathLike[str]) -> Hashes:
    """The hash of every kept model of the buyers who have any, None where there is none yet."""
    info = read_run(run)
    names = buyer_names(info, run)
    going_on = info.get("outcome") != "finished" and "view" not in info
    try:
        stored = info.get("models", {})
        hashes: Hashes = {
            name: (dict(_files(run, index)) if going_on else {})
            | {int(rounds): str(digest) for rounds, digest in stored.get(name, {}).items()}
            for index, name in enumerate(names)
        }
    except (AttributeError, TypeError, ValueError):
        raise InputError(
            f"{Path(run) / 'run.json'} is damaged: 'models' does not name hashes"
        ) from None
    return {name: files for name, files in hashes.items() if files}


def buyer_names(info: dict[str, Any], run: str | os.PathLike[str]) -> list[str]:
    """The names of a run's buyers, in the order of their numbers; `info` is its run.json."""
    try:
        buyers = info["scenario"]["buyers"]
        return [str(buyer["name"]) for buyer in buyers] or ["buyer"]
    except (KeyError, TypeError):
        raise InputError(f"{Path(run) / 'run.json'} does not describe a run") from None


def model_path(run: str | os.PathLike[str], buyer: int, rounds: int) -> Path:
    """The file of the model of the buyer at a position of the scenario's list."""
    return Path(run) / FOLDER / f"buyer-{buyer}" / f"rounds-{rounds:05d}.safetensors"


def encoded(model: KeptModel) -> bytes:
    """The content of a file; the same model gives the same bytes."""
    from safetensors.numpy import save

    tensors = {"parameters": model.parameters, "gradient": model.gradient, "average": model.average}
    facts = {"buyer": model.buyer, "rounds": model.rounds}
    arrays = {
        name: np.ascontiguousarray(tensor, "<f8")
        for name, tensor in tensors.items()
        if tensor is not None
    }
    return bytes(save(arrays, metadata=sealed_metadata(facts, arrays)))


def write_model(path: Path, content: bytes) -> None:
    """Writes a file that appears complete or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, lambda fresh: fresh.write_bytes(content))


def _files(run: str | os.PathLike[str], buyer: int) -> Iterator[tuple[int, None]]:
    """The finished rounds that the names of a buyer's files give."""
    for path in sorted(model_path(run, buyer, 0).parent.glob("rounds-*.safetensors")):
        number = path.stem.removeprefix("rounds-")
        if number.isascii() and number.isdecimal():
            yield int(number), None


def _read(path: Path, digest: str | None) -> tuple[Floats, Floats | None, Floats | None]:
    """Parameters, gradient and average of a file."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"{path} is lost: run.json names it, and it is not there") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error}") from None
    if digest is not None and hashlib.sha256(content).hexdigest() != digest:
        raise InputError(f"{path} is damaged: it does not have the hash that run.json has of it")
    try:
        tensors: dict[str, Any] = load(content)
        checked_facts(metadata_of(content), tensors)
        if unknown := sorted(tensors.keys() - {"parameters", "gradient", "average"}):
            raise ValueError(f"a tensor {unknown[0]!r}")
        parameters = tensors["parameters"]
        gradient, average = tensors.get("gradient"), tensors.get("average")
        for tensor in (one for one in (parameters, gradient, average) if one is not None):
            if tensor.dtype != np.float64 or tensor.shape != (parameters.size,):
                raise ValueError(f"a tensor of {tensor.dtype} {tensor.shape}")
    except (SafetensorError, KeyError, ValueError, TypeError, OverflowError) as error:
        raise InputError(f"{path} does not hold a model: {shortened(str(error))}") from None
    return parameters, gradient, average
