"""Readers take a file or refuse it in a sentence: small samples of `python -m tests.fuzz`, and what it once found."""

import os
import pickle
import struct
import subprocess
import sys
import time

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import flmarket_sim as fm
from flmarket_sim.errors import FlmarketError, InputError, ScenarioError
from flmarket_sim.scenario.scenario_file import load_scenario, parse_scenario
from flmarket_sim.scenario.toml_lines import key_lines
from flmarket_sim.storage.untrusted_files import read_parquet
from flmarket_sim.sweep.sweep_plan import parse_sweep
from tests.support.paths import ROOT
from tests.support.patience import PATIENCE

from .__main__ import READERS
from .campaign import generator, judge

SAMPLE = {
    "scenario": 100,
    "sweep": 60,
    "safetensors": 200,
    "pt": 200,
    "log": 60,
    "models": 60,
    "report": 5,
    "sweep-folder": 30,
    "probe": 20,
    "unfinished": 100,
}


@pytest.mark.parametrize("name", READERS)
@pytest.mark.filterwarnings("ignore")
def test_damaged_and_hostile_files_are_taken_or_refused(name, tmp_path):
    reader = READERS[name](tmp_path)
    outcomes = {judge(reader, reader.make(generator(1, index))) for index in range(SAMPLE[name])}
    assert outcomes - {None}  # some are refused: the damage is real


@given(st.text(max_size=300) | st.binary(max_size=300).map(lambda b: b.decode("latin-1")))
def test_any_text_is_a_scenario_or_is_refused(text):
    try:
        parse_scenario(text)
    except FlmarketError:
        pass


@given(st.binary(max_size=400))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_are_weights_or_are_refused(tmp_path, data):
    for suffix in (".pt", ".safetensors"):
        (tmp_path / f"w{suffix}").write_bytes(data)
        with pytest.raises(InputError):
            fm.auctions.create("dm-regretnet", weights=str(tmp_path / f"w{suffix}"))


@pytest.mark.parametrize(
    "text",
    [
        "x = " + "[" * 40_000,
        "a." * 20_000 + "b = 1",
        "x = { " + '"=".' * 20_000 + "b = 1 }",
        "a = " + "{a = " * 200 + "1" + "}" * 200,
        "seed = 0x" + "f" * 100_000,
        "rate = 0x" + "f" * 100_000 + "\n[owners]\nrate = 0x" + "f" * 9000,
        'description = """\n[' + " " * 100_000 + 'x\n"""\nrounds = 0',
        'auction.name = "' + "x" * 100_000 + '"',
        "\n".join(f"k{i} = 1" for i in range(20_000)),
    ],
    ids=["lists", "keys", "quoted", "tables", "hexadecimal", "twice", "spaces", "name", "many"],
)
def test_a_file_without_end_is_refused_soon_and_shortly(text):
    began = time.process_time()  # the clock on the wall counts what other processes do
    with pytest.raises(ScenarioError) as told:
        parse_scenario(text)
    assert len(str(told.value)) < 20_000 and time.process_time() - began < 10


def test_a_file_that_never_ends_is_refused():
    with pytest.raises(ScenarioError, match="more than 1,000,000 bytes"):
        load_scenario("/dev/zero")


@pytest.mark.parametrize("seeds", [10**9, 2**62, 2**63 - 1])
def test_a_sweep_of_more_runs_than_can_be_is_refused_before_it_is_planned(seeds):
    with pytest.raises(ScenarioError, match=r"runs; more than 1,000,000 are not one sweep|above"):
        parse_sweep(f"[sweep]\nseeds = {seeds}")


def test_many_values_on_an_axis_are_compared_in_one_pass():
    values = ", ".join(map(str, [*range(1, 60_000), 1]))
    with pytest.raises(ScenarioError, match="has 1 more than once"):
        parse_sweep(f"[sweep.grid]\nrounds = [{values}]")


def test_lines_of_keys_are_found_as_before():
    lines = key_lines('a = 1\n  [ b.c ] # x\n"d.e" = 2\n[[f]]\ng = 3\n[[ f ]]\n[f.h]\ni = 4')
    assert lines == {
        ("a",): 1, ("b", "c"): 2, ("b", "c", "d.e"): 3, ("f",): 4, ("f", 0): 4, ("f", 0, "g"): 5, ("f", 1): 6,
        ("f", 1, "h"): 7, ("f", 1, "h", "i"): 8,
    }  # fmt: skip


class Attack:
    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return (os.mkdir, (self.path,))


def test_no_code_from_a_checkpoint_runs(tmp_path):
    proof = tmp_path / "it ran"
    (tmp_path / "plain.pt").write_bytes(pickle.dumps(Attack(proof)))
    torch.save({"arch": Attack(proof), "state_dict": {}}, tmp_path / "zipped.pt")
    torch.save(
        {"state_dict": Attack(proof)}, tmp_path / "old.pt", _use_new_zipfile_serialization=False
    )
    for name in ("plain.pt", "zipped.pt", "old.pt"):
        with pytest.raises(InputError, match="is refused"):
            fm.auctions.create("regretnet", weights=str(tmp_path / name))
    assert not proof.exists()


def test_a_checkpoint_that_is_a_bare_tensor_is_refused(tmp_path):
    torch.save(torch.zeros(3), tmp_path / "w.pt")
    with pytest.raises(InputError, match="not one of the authors' checkpoints"):
        fm.auctions.create("regretnet", weights=str(tmp_path / "w.pt"))


def test_a_header_of_huge_shapes_costs_nothing(tmp_path):
    header = b'{"__metadata__":{"flmarket":"{\\"network\\":\\"menu\\",\\"n\\":0,\\"levels\\":8,\\"hidden\\":1000000000,'
    header += b'\\"mechanism\\":\\"dm-regretnet\\",\\"deterministic\\":true}"},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
    (tmp_path / "w.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(4))
    with pytest.raises(InputError, match="more weights than the file"):
        fm.auctions.create("dm-regretnet", weights=str(tmp_path / "w.safetensors"))


@pytest.mark.parametrize(
    ("kind", "name", "why"),
    [
        ("auction", "os:system", "not a class"),
        ("auction", "subprocess:Popen", "no name"),
        ("study", "threading:Thread", "no tasks and no measure"),
        ("study", "multiprocessing:Process", "is not"),
        ("auction", "tests.fuzz.leaves:X", "cannot be imported: SystemExit"),
        ("aggregation", "builtins:eval", "not a class"),
    ],
)
def test_a_class_that_is_no_plug_in_is_not_made(kind, name, why):
    with pytest.raises(ScenarioError, match=why):
        parse_scenario(f'[{kind}]\nname = "{name}"')


def test_a_model_that_is_no_module_is_not_made(tmp_path):
    proof = tmp_path / "it ran"
    text = f'rounds = 1\n[model]\nname = "subprocess:Popen"\nargs = ["touch", "{proof}"]'
    with pytest.raises(InputError):
        fm.run(parse_scenario(text), tmp_path / "run")
    assert not proof.exists()


def test_a_bomb_of_rows_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"a": pa.array([0] * 100_000)}), tmp_path / "bomb.parquet")
    monkeypatch.setattr("flmarket_sim.storage.untrusted_files._memory", lambda: 500_000)
    assert (tmp_path / "bomb.parquet").stat().st_size < 2000
    with pytest.raises(InputError, match="GB of memory"):
        read_parquet(tmp_path / "bomb.parquet")


def test_of_two_processes_one_gets_the_directory(tmp_path):
    code = (
        "import sys, time, pathlib\nfrom flmarket_sim.storage.result_folders import claim\nfrom flmarket_sim.errors import InputError\n"
        "print('ready', flush=True)\nsys.stdin.readline()\n"
        "try:\n    claim(pathlib.Path(sys.argv[1]), 'run'); print('mine', flush=True)\n"
        "except InputError as error:\n    print(error, flush=True)\nsys.stdin.readline()\n"
    )
    for place in (tmp_path / "new", tmp_path):
        racers = [
            subprocess.Popen(
                [sys.executable, "-c", code, str(place)], cwd=ROOT, stdin=-1, stdout=-1, text=True
            )
            for _ in range(2)
        ]
        assert [racer.stdout.readline() for racer in racers] == ["ready\n"] * 2
        for racer in racers:
            racer.stdin.write("\n")
            racer.stdin.flush()
        told = [racer.stdout.readline() for racer in racers]
        for racer in racers:
            racer.communicate("\n", timeout=PATIENCE)
        assert told.count("mine\n") == 1 and all(
            "taken by another" in line for line in told if line != "mine\n"
        ), told
        (tmp_path / "new").rmdir() if place.name == "new" else None


@pytest.mark.parametrize(
    "place",
    ["owners = {{families = [{}]}}", "data = {{name = 'synthetic', records = [{}]}}", "seed = {}"],
)
def test_a_whole_number_that_python_does_not_print_is_refused(place):
    giant = "0x1" + "0" * 8000
    with pytest.raises(ScenarioError, match="bits"):
        parse_scenario(place.format(giant))
    with pytest.raises(ScenarioError, match="bits"):
        parse_scenario("", overrides=[f"seed={giant}"])
