"""Weights: ours come back as they were, the authors' do what they did, and nothing else is read."""

import pickle

import numpy as np
import pytest
import torch

import flmarket_sim as fm
from flmarket_sim.auctions.learned import weight_files
from flmarket_sim.auctions.learned.menu_network import MenuNetwork
from flmarket_sim.auctions.learned.paper_network import PaperNetwork
from flmarket_sim.auctions.learned.weight_files import Learned
from flmarket_sim.errors import InputError
from tests.support.paths import ROOT
from tests.support.profiles import random_profiles

REFERENCE = ROOT.parent / "shared" / "reference"
PUBLISHED = {
    "dm-reg_opt": ("dm-regretnet", 8),
    "dm-reg_convl": ("dm-regretnet", 8),
    "8-reg": ("m-regretnet", 8),
    "reg": ("regretnet", 1),
}


@pytest.fixture(scope="module")
def expected():
    if not REFERENCE.exists():
        pytest.skip("the authors' published weights are not beside this checkout")
    return np.load(REFERENCE / "expected_outcomes.npz")


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_published_weights_do_what_they_did(name, expected):
    mechanism, levels = PUBLISHED[name]
    auction = fm.auctions.create(
        mechanism, weights=str(REFERENCE / "checkpoints" / f"{name}_nslkdd_iid.pt")
    )
    family = np.where(expected["family"] == "exp", "exponential", expected["family"])
    truth = fm.Profiles(family, expected["rate"], expected["privacy_budget"], expected["data_size"])
    chance, payment = auction.expected(truth.bids(levels), expected["budget"])
    assert chance == pytest.approx(expected[f"{name}.allocation"], abs=1e-5)
    share = payment[:, :, 0] / expected["budget"][:, None]
    assert share == pytest.approx(
        expected[f"{name}.payment"] / expected["budget"][:, None], abs=1e-5
    )
    if f"{name}.privacy_loss" in expected:
        outcome = auction.decide(truth.bids(levels), expected["budget"], np.random.default_rng(0))
        assert outcome.privacy_loss == pytest.approx(expected[f"{name}.privacy_loss"], abs=1e-5)
        for rule, key in (("opt-aggr", "opt"), ("convl-aggr", "convl")):
            weights = fm.aggregation.create(rule).weights(outcome.privacy_loss, truth.data_size)
            error = fm.aggregation.error_bound(weights, outcome.privacy_loss, truth.data_size)
            assert error == pytest.approx(expected[f"{name}.error_bound_{key}"], rel=1e-5)


class Evil:
    def __reduce__(self):
        return (print, ("code from the file ran",))


def test_a_checkpoint_with_anything_but_tensors_and_plain_data_is_refused(tmp_path, capsys):
    torch.save({"arch": {}, "state_dict": {}, "args": Evil()}, tmp_path / "evil.pt")
    (tmp_path / "pickle.pt").write_bytes(pickle.dumps(Evil()))
    (tmp_path / "noise.pt").write_bytes(b"\x00\x01\x02 not a checkpoint")
    torch.save({"some": "dict"}, tmp_path / "other.pt")
    (tmp_path / "noise.safetensors").write_bytes(b"\xff" * 100)
    for name in ("evil.pt", "pickle.pt", "noise.pt", "other.pt", "noise.safetensors"):
        with pytest.raises(InputError, match=name):
            fm.auctions.create("dm-regretnet", weights=str(tmp_path / name))
    assert "code from the file ran" not in capsys.readouterr().out


@pytest.mark.parametrize("network", [MenuNetwork(4, hidden=8), PaperNetwork(3, 4, hidden=8)])
def test_saved_weights_come_back_and_decide_alike(tmp_path, network):
    weight_files.save(
        tmp_path / "w.safetensors",
        Learned(network, "dm-regretnet", True, facts={"rule": "opt-aggr", "largest_loss": 2.0}),
    )
    auction = fm.auctions.create("dm-regretnet", weights=str(tmp_path / "w.safetensors"))
    assert auction.learned.facts["rule"] == "opt-aggr"
    for name, tensor in network.state_dict().items():
        assert torch.equal(auction.learned.network.state_dict()[name], tensor)


def test_weights_of_another_mechanism_or_number_of_bidders_are_refused(tmp_path):
    weight_files.save(tmp_path / "w.safetensors", Learned(PaperNetwork(3, 1), "regretnet", False))
    with pytest.raises(InputError, match="weights of 'regretnet', not of 'm-regretnet'"):
        fm.auctions.create("m-regretnet", weights=str(tmp_path / "w.safetensors"))
    auction = fm.auctions.create("regretnet", weights=str(tmp_path / "w.safetensors"))
    bids = random_profiles(np.random.default_rng(0), 2, 5).bids()
    with pytest.raises(InputError, match="trained for 3 bidders, not for 5"):
        auction.decide(bids, np.ones(2), np.random.default_rng(0))


def test_unknown_weights_are_named_with_those_there_are():
    with pytest.raises(InputError, match=r"no weights 'paper-idd'.*general"):
        fm.auctions.create("dm-regretnet", weights="paper-idd")
