"""The attack by damage: what it calls silent, refused, a crash, and a trial that is lost."""

import random
from functools import partial

import pytest
from safetensors.numpy import load

from benchmarks.attack import damage, damages, specimens, watched
from benchmarks.attack.damages import Damage
from benchmarks.attack.digests import chain, digest
from flmarket_sim.errors import InputError
from tests.benchmarks import doomed_trials


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("specimens")
    specimens.make_all(root, ["kept models"])
    return root


@pytest.fixture
def judged(root, tmp_path):
    """The verdict on a reader of a run with kept models after a bit of a model has flipped."""
    (specimen,) = specimens.specimens(root)
    subject = tmp_path / "subject"

    def judge(reader, before=None):
        readers = {"models": reader}
        known = {"models": before} if before else damage.baseline(specimen, subject, readers)
        damage.renew(specimen, subject)
        model = next(path for path in damages.files_in(subject) if path.suffix == ".safetensors")
        content = bytearray(model.read_bytes())
        content[-1] ^= 1
        model.write_bytes(content)
        done = Damage("one bit flipped", [model])
        return damage.judge("run", subject, done, known, readers)[0].verdict

    return judge


def unchecked(run):
    """Kept models as a reader sees them who compares nothing with a hash."""
    found = [path for path in damages.files_in(run) if path.suffix == ".safetensors"]
    return [load(path.read_bytes()) for path in found]


def test_a_damage_that_a_reader_names_is_refused(judged):
    assert judged(damage.readers_of("run")["models"]) == damage.REFUSED


def test_a_reader_that_skips_its_checks_changes_silently(judged):
    assert judged(unchecked) == damage.SILENT


def test_a_reader_that_does_not_look_at_the_damage_is_harmless(judged):
    assert judged(lambda run: sorted(path.name for path in run.iterdir())) == damage.HARMLESS


@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        (ValueError("no"), damage.CRASH),
        (InputError("something is wrong"), damage.UNNAMED),
        (MemoryError(), damage.MEMORY),
    ],
)
def test_other_ends_are_bad_too(judged, error, verdict):
    def reader(run):
        raise error

    assert judged(reader, before="something") == verdict
    assert verdict in damage.BAD


def test_a_trial_is_the_same_each_time_and_its_damage_is_real(root, tmp_path):
    heavy = set(damage.readers_of("run")) - {"events", "owners"}
    once, again = (damage.DamageTrials(root, tmp_path, 5, heavy)(3) for _ in range(2))
    assert once[:3] == again[:3] and once.files
    assert [one.verdict for one in once.verdicts] == [one.verdict for one in again.verdicts]


@pytest.mark.parametrize("way", damages.WAYS)
def test_every_way_changes_the_folder(way, tmp_path):
    folder, twin = tmp_path / "whole", tmp_path / "twin"
    for place, seed in ((folder, "a"), (twin, "b")):
        (place / "kind=bid").mkdir(parents=True)
        for name in ("kind=bid/1.parquet", "2.parquet", "tasks.jsonl"):
            (place / name).write_text(f"{seed}{name}\nsecond\n")
    before = {path: path.read_bytes() for path in damages.files_in(folder)}
    done = next(filter(None, (way(folder, twin, random.Random(i)) for i in range(20))))
    assert {path: path.read_bytes() for path in damages.files_in(folder)} != before
    assert done.files


def test_a_log_that_ends_early_is_a_beginning_and_one_with_a_hole_is_not():
    rows = [{"seq": seq, "x": float("nan")} for seq in (1, 2, 3)]

    class Table(list):
        to_pylist = list.copy

    whole = chain({"bid": Table(rows)})
    shorter, holed = chain({"bid": Table(rows[:2])}), chain({"bid": Table(rows[1:])})
    assert damage._compared(whole, False, shorter) == damage.BEGINNING
    assert damage._compared(whole, False, holed) == damage.SILENT
    assert digest([1, [2]]) != digest([[1], 2]) and digest(1) != digest(1.0) != digest("1.0")


@pytest.mark.processes
def test_a_trial_that_kills_its_process_is_lost_alone():
    found = dict(watched.perform(partial(doomed_trials.dying, 1), range(3), workers=1))
    assert found == {0: 0, 1: watched.Lost("its process ended with exit code 7"), 2: 20}


@pytest.mark.processes
def test_a_trial_that_hangs_is_ended():
    found = dict(watched.perform(doomed_trials.hanging, [4], workers=1, seconds=0.1))
    assert found == {4: watched.Lost("it had no answer after 0.1 seconds")}
