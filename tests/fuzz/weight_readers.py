"""Weights of learned auctions, whole and damaged: safetensors of ours, .pt files as the paper's authors write them."""

from __future__ import annotations

import copy
import io
import json
import pickle
import random
import struct
import zipfile
from argparse import Namespace
from pathlib import Path
from typing import Any

import torch

from flmarket_sim.auctions.learned import weight_files
from flmarket_sim.auctions.learned.menu_network import MenuNetwork
from flmarket_sim.auctions.learned.paper_network import PaperNetwork
from flmarket_sim.auctions.learned.price_network import PriceNetwork
from flmarket_sim.auctions.learned.weight_files import Learned

from .mutations import mutate_bytes, mutate_tree

HOSTILE = (
    b"cos\nsystem\n(S'touch /tmp/fuzz-was-here'\ntR.",
    b"cbuiltins\neval\n(S'1/0'\ntR.",
    b"\x80\x02csubprocess\nPopen\nq\x00X\x02\x00\x00\x00idq\x01\x85q\x02Rq\x03.",
    b"ctorch\nload\n(S'/etc/passwd'\ntR.",
    b"cargparse\nNamespace\n)\x81}S'__class__'\ncos\nsystem\nsb.",
)


class SafetensorsReader:
    """Our own files."""

    name = "safetensors"
    suffix = ".safetensors"

    def __init__(self, folder: Path) -> None:
        self.file = folder / f"weights é{self.suffix}"
        facts = {
            "rule": "opt-aggr",
            "largest_loss": 2.0,
            "metrics": {"error": 0.5},
            "scenario": "x",
        }
        price = {
            "largest_loss": 2.0,
            "size": "certified",
            "typical_size": 30.0,
            "typical_price": 1.0,
        }
        self.seeds = []
        for network, mechanism, deterministic, more in (
            (MenuNetwork(2, 4), "dm-regretnet", True, facts),
            (PaperNetwork(2, 2, 4), "m-regretnet", False, facts),
            (PriceNetwork(2, 4, 2.0, "certified", 30.0, 1.0), "seq-price", True, facts | price),
        ):
            weight_files.save(self.file, Learned(network, mechanism, deterministic, facts=more))
            self.seeds.append(self.file.read_bytes())
        self.headers = [
            json.loads(seed[8 : 8 + struct.unpack("<Q", seed[:8])[0]]) for seed in self.seeds
        ]

    def make(self, rng: random.Random) -> bytes:
        place = rng.randrange(len(self.seeds))
        seed = self.seeds[place]
        if rng.random() < 0.4:
            return mutate_bytes(seed, rng, self.seeds)
        header: Any = copy.deepcopy(self.headers[place])
        if rng.random() < 0.5:
            facts = mutate_tree(json.loads(header["__metadata__"]["flmarket"]), rng, self.headers)
            header["__metadata__"]["flmarket"] = _json(facts)
        else:
            header = mutate_tree(header, rng, self.headers)
        text = _json(header).encode("utf-8", "surrogatepass")
        body = seed[8 + struct.unpack("<Q", seed[:8])[0] :]
        if rng.random() < 0.2:
            body = mutate_bytes(body, rng, self.seeds)
        return struct.pack("<Q", len(text)) + text + body

    def read(self, data: bytes) -> None:
        self.file.write_bytes(data)
        learned = weight_files.load_safetensors(self.file)
        json.dumps(learned.facts)


class PtReader:
    """The authors' files: only tensors and plain data are read from them."""

    name = "pt"
    suffix = ".pt"

    def __init__(self, folder: Path) -> None:
        self.file = folder / f"weights é{self.suffix}"
        self.seeds = []
        for levels, activation, zipped in (
            (2, "deterministic", True),
            (2, "softmax", True),
            (1, "softmax", False),
        ):
            content = {
                "name": "a net",
                "arch": {
                    "n_agents": 2,
                    "n_items": levels,
                    "hidden_layer_size": 4,
                    "a_activation": activation,
                },
                "state_dict": {
                    f"module.{k}": v for k, v in PaperNetwork(2, levels, 4).state_dict().items()
                },
                "args": Namespace(seed=1, lr=0.001),
            }
            torch.save(content, self.file, _use_new_zipfile_serialization=zipped)
            self.seeds.append(self.file.read_bytes())
        self.contents = [_members(seed) for seed in self.seeds[:2]]

    def make(self, rng: random.Random) -> bytes:
        kind = rng.random()
        if kind < 0.35:
            return mutate_bytes(rng.choice(self.seeds), rng, self.seeds)
        members = dict(rng.choice(self.contents))
        name = next(name for name in members if name.endswith("data.pkl"))
        if kind < 0.85:
            target = name if rng.random() < 0.8 else rng.choice(list(members))
            members[target] = mutate_bytes(
                members[target], rng, [m[1] for m in members.items()] + list(HOSTILE)
            )
        elif kind < 0.92:
            members[name] = (
                mutate_bytes(rng.choice(HOSTILE), rng, list(HOSTILE))
                if rng.random() < 0.5
                else rng.choice(HOSTILE)
            )
        elif kind < 0.96:
            members[name] = pickle.dumps(
                mutate_tree({"arch": {"n_agents": 2}, "state_dict": {}}, rng, []),
                rng.choice([2, 3, 4]),
            )
        else:
            target = rng.choice(list(members))
            members[target] = bytes(rng.choice([10**5, 10**6]))
        return _zipped(members, rng)

    def read(self, data: bytes) -> None:
        self.file.write_bytes(data)
        json.dumps(weight_files.load_pt(self.file).facts)


def _json(tree: Any) -> str:
    try:
        return json.dumps(tree, default=str)
    except (ValueError, RecursionError):
        return '{"a":' * 5000


def _members(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _zipped(members: dict[str, bytes], rng: random.Random) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(
        made, "w", rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
    ) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return made.getvalue()
