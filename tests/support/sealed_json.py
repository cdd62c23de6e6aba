"""Writes JSON files of results as somebody would who also mends their seal."""

import json

from flmarket_sim.storage.sealed_files import SEAL, sealed


def write_sealed(path, content):
    path.write_text(json.dumps(sealed(content)))


def without_hashes(run):
    """Makes a run one of an earlier version, which had hashes neither of files nor of run.json."""
    info = json.loads((run / "run.json").read_text())
    del info["files"], info["frames"], info[SEAL]
    (run / "run.json").write_text(json.dumps(info))
