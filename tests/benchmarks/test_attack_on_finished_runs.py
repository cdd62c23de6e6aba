"""Sixty damages to finished results: each is refused by name, or changes nothing that is read."""

from benchmarks.attack import damage, specimens

SPECIMENS = ["learning", "sweep", "study", "record-price"]
SLOW = ("report", "view")  # `python -m benchmarks.attack damage` has them


def test_no_damage_changes_what_is_read(tmp_path):
    root, scratch = tmp_path / "specimens", tmp_path / "scratch"
    scratch.mkdir()
    specimens.make_all(root, SPECIMENS)
    trial = damage.DamageTrials(root, scratch, seed=0, without=SLOW)
    bad = [
        (index, judged.specimen, judged.damage, judged.files, verdict)
        for index in range(60)
        for judged in [trial(index)]
        for verdict in judged.verdicts
        if verdict.verdict in damage.BAD
    ]
    assert not bad
