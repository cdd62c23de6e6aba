"""What the numbers of a run depend on beside its scenario and its seed.

These are the versions of libraries, the instructions of the CPU that they use, and the content of
weights and plug-ins. `run.json` and checkpoints have them. A run goes on only with what began it:
otherwise one half of its rounds would be of another mechanism (docs/decisions/0056).
"""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_info

from flmarket_sim.errors import InputError
from flmarket_sim.market.named_files import file_contents
from flmarket_sim.plugins.plugin_files import file_plugins
from flmarket_sim.scenario.model import Scenario

Provenance = dict[str, str]
PROVENANCE, MIXED = "provenance", "mixed"  # keys of run.json
PACKAGES = (
    "flmarket-sim",
    "numpy",
    "scipy",
    "simpy",
    "pyarrow",
    "torch",
    "scikit-learn",
    "cvxpy",
    "clarabel",
    "highspy",
    "osqp",
    "scs",
)
CPU_SETTINGS = (  # variables by which people choose the instructions that libraries use
    "ATEN_CPU_CAPABILITY",
    "MKL_CBWR",
    "MKL_ENABLE_INSTRUCTIONS",
    "ONEDNN_MAX_CPU_ISA",
    "DNNL_MAX_CPU_ISA",
)
SHORT = 12  # characters of a hash in a message


def versions() -> dict[str, str]:
    """The versions of everything that results may depend on."""
    return {name: version_of(name) for name in PACKAGES} | {"python": platform.python_version()}


@cache
def version_of(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def provenance(scenario: Scenario) -> Provenance:
    """The CPU, and the content of every file that the mechanisms of a scenario are made of."""
    named = file_contents(_mechanisms(scenario))
    return cpu() | {f"the content of {name}": digest for name, digest in named.items()}


@cache
def cpu() -> Provenance:
    """What numbers depend on in the CPU, and in how libraries use it.

    torch chooses its instructions by the same features of the CPU as numpy, so it is not imported
    to ask it. The settings say where a user has chosen otherwise.
    """
    config: Any = np.show_config(mode="dicts")
    simd, blas = config["SIMD Extensions"], config["Build Dependencies"]["blas"]
    used = [
        one.get("architecture", "")
        for one in threadpool_info()
        if one["user_api"] == "blas" and "numpy" in Path(one["filepath"]).parent.name
    ]
    settings = [f"{name}={os.environ[name]}" for name in CPU_SETTINGS if os.environ.get(name)]
    return {
        "the kind of CPU": platform.machine(),
        "numpy's SIMD": " ".join([*simd.get("baseline", ()), *simd.get("found", ())]) or "none",
        "numpy's BLAS": " ".join([str(blas["name"]), str(blas["version"]), *used]),
        "the settings of CPU libraries": " ".join(settings) or "none",
    }


def _mechanisms(scenario: Scenario) -> dict[str, Any]:
    """The tables in which a text may name a file of weights or code.

    Data files have hashes of their own in run.json, and a title is no file.
    """
    tables = scenario.as_dict()
    data = tables.get("data")
    others = {
        key: table
        for key, table in tables.items()
        if key not in ("name", "description", "data", "study")
    }
    return others | {"data": data.get("name") if isinstance(data, dict) else None}


def same_versions(path: Path, file: Path, then: Any) -> None:
    """Refuses to continue what other versions began; `file` is where `then` was read."""
    if not isinstance(then, dict):
        raise InputError(
            f"{file} does not name the versions that began it; start again in another directory"
        )
    if other := differences(then, versions()):
        raise InputError(
            f"{path} was begun with {', '.join(other)}, and the rest could differ. Install those "
            "versions to continue, or start again in another directory"
        )


def origin(info: Mapping[str, Any]) -> Provenance:
    """Everything that run.json says about where its numbers come from, for checkpoints."""
    return {**info["versions"], **info.get(PROVENANCE, {})}


def continued(
    path: Path, info: Mapping[str, Any], scenario: Scenario, stored: Provenance, mixed: bool
) -> dict[str, Any]:
    """The entries of run.json for a run that goes on here; `stored` is what its checkpoint says.

    Refuses to go on with other things than began the run. A run that may be `mixed` goes on, and
    its entries say from then on what was changed.
    """
    now = {"versions": versions(), PROVENANCE: provenance(scenario)}
    pairs = [(info.get(key), now[key]) for key in now] + [(stored, origin(now))]
    known = [(then, here) for then, here in pairs if isinstance(then, dict) and then]
    changed = list(dict.fromkeys(text for pair in known for text in differences(*pair)))
    if not changed:
        return now
    if not mixed:
        raise InputError(
            f"{path} was begun with {', '.join(changed)}, so the rest would be of another "
            "mechanism or machine. Bring these back to continue, or start anew: `force=True` "
            "replaces the run. `mixed=True` goes on all the same, and run.json says so"
        )
    mark = (
        f"This run is mixed: it was begun with {', '.join(changed)} and continued with the latter"
    )
    return now | {MIXED: [*info.get(MIXED, ()), mark], "plugins": file_plugins(scenario.as_dict())}


def differences(then: Mapping[str, Any], now: Mapping[str, str]) -> list[str]:
    """Each thing that is not as it was, in words: what it was, and what it is now."""
    return [
        f"{name} {_short(then.get(name, 'unknown'))} (now {_short(now.get(name, 'not there'))})"
        for name in dict.fromkeys([*now, *then])
        if then.get(name) != now.get(name)
    ]


def _short(value: Any) -> str:
    text = str(value)
    return text[:SHORT] if len(text) == 64 and text.isalnum() else text
