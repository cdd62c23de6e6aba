"""Weights of learned auctions: our safetensors with metadata, and the authors' .pt files."""

from __future__ import annotations

import argparse
import math
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import nn

from flmarket_sim.auctions.learned.menu_network import MenuNetwork
from flmarket_sim.auctions.learned.mfg_network import MfgNetwork
from flmarket_sim.auctions.learned.paper_network import PaperNetwork
from flmarket_sim.auctions.learned.price_network import PriceNetwork
from flmarket_sim.auctions.learned.price_table import PriceTable
from flmarket_sim.auctions.learned.regime import kappa_of, kappas_of
from flmarket_sim.auctions.learned.weight_names import weights_file
from flmarket_sim.errors import InputError, shortened
from flmarket_sim.storage.atomic_files import write_whole
from flmarket_sim.storage.sealed_tensors import checked_facts, sealed_metadata

FORMAT = "1"


@dataclass
class Learned:
    """A network, how its output is to be read, and where it comes from."""

    network: nn.Module
    mechanism: str
    deterministic: bool
    keeps_zero: bool = True
    facts: dict[str, Any] = field(default_factory=dict)


def load(weights: str | Path, mechanism: str, rule: str) -> Learned:
    """Weights by name (`general`), or from a file: .safetensors of ours or .pt of the authors."""
    path = weights_file(weights, mechanism, rule)
    learned = load_pt(path) if path.suffix == ".pt" else load_safetensors(path)
    if learned.mechanism != mechanism:
        raise InputError(f"{path} has the weights of {learned.mechanism!r}, not of {mechanism!r}")
    return learned


def save(path: Path, learned: Learned) -> None:
    """Writes tensors and metadata; the file appears whole or not at all."""
    network = learned.network
    facts = {
        "format": FORMAT,
        "mechanism": learned.mechanism,
        "network": network.kind,
        "n": network.n,
        "levels": network.levels,
        "hidden": network.hidden,
        "deterministic": learned.deterministic,
    } | learned.facts
    tensors = {name: tensor.contiguous() for name, tensor in network.state_dict().items()}
    metadata = sealed_metadata(facts, _arrays(tensors))
    write_whole(path, lambda fresh: save_file(tensors, fresh, metadata=metadata))


def load_safetensors(path: Path) -> Learned:
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            names = file.keys()
            state = {name: file.get_tensor(name) for name in names}
        facts = checked_facts(metadata, _arrays(state))
        low, high = kappas_of(facts)
        if not all(math.isfinite(k) and k > 0 for k in (kappa_of(facts), low, high)) or low > high:
            raise ValueError("kappas must be finite and positive, the lowest first")
        network = _build(facts, state)
        network.load_state_dict(state)
        return Learned(
            network.eval(), str(facts["mechanism"]), bool(facts["deterministic"]), True, facts
        )
    except (
        SafetensorError,
        OSError,
        KeyError,
        ValueError,
        TypeError,
        RuntimeError,
        OverflowError,
        AttributeError,
    ) as error:
        raise InputError(
            f"{path} does not hold the weights of a learned auction: {shortened(str(error))}"
        ) from None


def _arrays(state: dict[str, torch.Tensor]) -> dict[str, Any]:
    return {name: tensor.detach().numpy() for name, tensor in state.items()}


def load_pt(path: Path) -> Learned:
    """The authors' format: tensors and plain data. Nothing in such a file is executed."""
    try:
        with warnings.catch_warnings(), torch.serialization.safe_globals([argparse.Namespace]):
            warnings.simplefilter(
                "ignore"
            )  # about versions of pickle: what cannot be read is refused below
            content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # a stranger's bytes: torch's reader fails in every way there is
        reason = shortened(str(error).strip().split("\n")[0])
        raise InputError(
            f"{path} is refused: it is not a checkpoint of tensors and plain data only ({reason})"
        ) from None
    try:
        if not isinstance(content, dict):
            raise TypeError(f"it holds a {type(content).__name__}, not a dict")
        arch, state = content["arch"], content["state_dict"]
        n, levels, hidden = (
            int(arch["n_agents"]),
            int(arch["n_items"]),
            int(arch["hidden_layer_size"]),
        )
        deterministic = arch["a_activation"] == "deterministic"
        state = {name.removeprefix("module."): tensor for name, tensor in state.items()}
        _check_tensors(state, hidden, n * levels)
        network = PaperNetwork(n, levels, hidden)
        network.load_state_dict(state)
        label = str(content.get("name", ""))[:200]
    except (
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        RuntimeError,
        OverflowError,
    ) as error:
        raise InputError(
            f"{path} is not one of the authors' checkpoints: {shortened(str(error))}"
        ) from None
    mechanism = "dm-regretnet" if deterministic else "m-regretnet" if levels > 1 else "regretnet"
    facts = {"n": n, "levels": levels, "source": "published by the paper's authors", "name": label}
    return Learned(network.eval(), mechanism, deterministic, keeps_zero=False, facts=facts)


def load_mfg(weights: str) -> MfgNetwork:
    """The published weights of MFG-RegretNet, from a safetensors file of tensors alone."""
    path = weights_file(weights, "mfg-regretnet", "published")
    try:
        with safe_open(path, framework="pt") as file:
            names = file.keys()
            state = {name: file.get_tensor(name) for name in names}
        n, hidden = len(state["payment_head.8.bias"]), len(state["payment_head.0.bias"])
        _check_tensors(state, hidden, 2 * n)
        network = MfgNetwork(n, hidden)
        network.load_state_dict(state)
        return network.eval()
    except (SafetensorError, OSError, LookupError, ValueError, TypeError, RuntimeError) as error:
        raise InputError(
            f"{path} does not hold the weights of MFG-RegretNet: {shortened(str(error))}"
        ) from None


def _check_tensors(state: dict[str, torch.Tensor], hidden: int, outputs: int) -> None:
    """Refuses weights that are not finite, and sizes that do not match the tensors. This happens
    before a network of such sizes is made."""
    if hidden < 1 or outputs < 1:
        raise ValueError(f"a network of {hidden} units and {outputs} levels is none")
    if hidden * max(hidden, outputs) > sum(tensor.numel() for tensor in state.values()):
        raise ValueError(
            f"a network of {hidden} units and {outputs} levels has more weights than the file"
        )
    for name, tensor in state.items():
        if not (tensor.is_floating_point() and bool(torch.isfinite(tensor).all())):
            raise ValueError(f"{name} has weights that are not finite numbers")


def _build(facts: dict[str, Any], state: dict[str, torch.Tensor]) -> nn.Module:
    kind, n, levels, hidden = (
        facts["network"],
        int(facts["n"]),
        int(facts["levels"]),
        int(facts["hidden"]),
    )
    _check_tensors(state, hidden, n * levels if kind == "paper" else levels)
    if kind == "menu-in-turn":
        ahead = bool(facts.get("looks_ahead", True))
        return MenuNetwork(levels, hidden, _positive(facts, "largest_loss"), ahead)
    if kind == "paper":
        return PaperNetwork(n, levels, hidden)
    if kind == "price-table":
        return _price_table(facts, levels)
    if kind == "price":
        typical = (
            _positive(facts, "typical_size"),
            _positive({"typical_price": 1.0} | facts, "typical_price"),
        )
        largest = _positive(facts, "largest_loss")
        secrets = int(facts["secrets"])
        return PriceNetwork(levels, hidden, largest, str(facts["size"]), *typical, secrets)
    raise ValueError(f"unknown network {kind!r}")


def _price_table(facts: dict[str, Any], levels: int) -> PriceTable:
    scales = _positive(facts, "largest_loss"), _positive(facts, "typical_price")
    sells = str(facts["sells"])
    if sells not in ("all", "part"):
        raise ValueError(f"it sells {sells!r} records, neither 'all' nor a 'part'")
    return PriceTable(levels, *scales, sells)


def _positive(facts: dict[str, Any], name: str) -> float:
    number = float(facts[name])
    if not (math.isfinite(number) and number > 0):
        raise ValueError(f"{name} must be finite and positive")
    return number
