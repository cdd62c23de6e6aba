"""Every installed package is pinned, every pin has hashes, and every licence was reviewed."""

from importlib import metadata

import pytest
from packaging.tags import Tag

from tests.support.paths import ROOT
from upkeep import licences, lock, pins


def test_every_lock_has_what_the_requirements_pin_and_nothing_else():
    contents = pins.lock_contents()
    assert {path.name for path in ROOT.glob("requirements*.lock")} == set(contents), (
        "run 'make lock'"
    )
    for name, members in contents.items():
        found = pins.locked(ROOT / name)
        assert list(found) == members, f"{name} is not current: run 'make lock'"
        assert all(found.values()), f"{name} has a package without a hash"


def test_everything_that_a_pinned_package_needs_is_pinned():
    assert list(pins.unpinned()) == []


def test_what_is_installed_is_what_is_pinned():
    for name, version in pins.all_pins().items():
        try:
            installed = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue  # of a requirements file that was not asked for
        assert installed.split("+")[0] == version, name


def test_a_need_of_another_platform_counts():
    assert "colorama" not in pins.needs("pytest")  # Windows only
    assert pins.needs("torch") >= {"sympy", "networkx"}


@pytest.mark.parametrize(
    ("text", "why"), [("numpy>=2", "not NAME==VERSION"), ("numpy", "not NAME==VERSION")]
)
def test_a_loose_pin_is_refused(text, why, tmp_path):
    (tmp_path / "requirements.txt").write_text(f"# about\n{text}\n")
    with pytest.raises(SystemExit, match=why):
        pins.pins(tmp_path / "requirements.txt")


@pytest.mark.parametrize(
    ("tag", "ours"),
    [
        (("py3", "none", "any"), True),
        (("cp311", "cp311", "manylinux_2_28_x86_64"), True),
        (("cp312", "cp312", "musllinux_1_2_aarch64"), True),
        (("cp313", "cp313", "macosx_11_0_arm64"), True),
        (("cp39", "abi3", "manylinux_2_17_x86_64"), True),
        (("cp310", "cp310", "manylinux_2_17_x86_64"), False),
        (("cp314", "abi3", "manylinux_2_17_x86_64"), False),
        (("cp311", "cp311", "win_amd64"), False),
        (("cp311", "cp311", "manylinux_2_17_s390x"), False),
        (("py2", "none", "any"), False),
    ],
)
def test_hashes_are_kept_for_the_platforms_that_we_expect(tag, ours):
    assert lock.fits(Tag(*tag)) == ours


def test_a_file_belongs_to_its_own_version_only():
    pin = pins.Pin("torch", "2.13.0")
    assert lock.wanted("torch-2.13.0-cp311-cp311-macosx_11_0_arm64.whl", pin)
    assert lock.wanted("torch-2.13.0+cpu-cp311-cp311-manylinux_2_28_x86_64.whl", pin)
    assert lock.wanted("torch-2.13.0.tar.gz", pin)
    for other in (
        "torch-2.13.1-py3-none-any.whl",
        "torchx-2.13.0-py3-none-any.whl",
        "torch-2.13.0.exe",
        "README",
    ):
        assert not lock.wanted(other, pin)


def test_every_package_is_on_the_page_of_licences_with_one_that_we_accept():
    stated = licences.stated_on_page()
    wanted = {
        pins.Pin(pin.name, pin.version)
        for path in pins.requirement_files()
        for pin in pins.pins(path)
    }
    assert set(stated) == wanted, "run 'make licences'"
    for pin, expression in stated.items():
        assert licences.accepted(expression), f"{pin.name}: {expression}"
        if pin.name not in licences.LOOKED_UP:
            try:
                assert licences.licence(pin.name) == expression, "run 'make licences'"
            except metadata.PackageNotFoundError:
                continue


@pytest.mark.parametrize(
    ("expression", "fine"),
    [
        ("MIT", True),
        ("BSD-3-Clause AND MIT AND Zlib", True),
        ("GPL-3.0-only OR MIT", True),
        ("GPL-3.0-or-later", False),
        ("MIT AND AGPL-3.0-only", False),
        ("not stated", False),
    ],
)
def test_a_licence_that_nobody_has_looked_at_is_refused(expression, fine):
    assert licences.accepted(expression) == fine


def test_no_lock_names_a_place():
    for path in [*ROOT.glob("requirements*"), licences.PAGE]:
        assert (
            "://" not in path.read_text()
            and "--index" not in path.read_text()
            and "--find-links" not in path.read_text()
        )


def test_no_source_package_is_executed_before_its_hash_is_known():
    """pip builds a source package, and so runs it, also where it is only downloaded."""
    lines = (ROOT / "Makefile").read_text().splitlines()
    calls = [line for line in lines if "-m pip " in line or line.startswith("\t$(LOCKED)")]
    assert len(calls) >= 8, "the Makefile calls pip"
    for call in calls:
        checked = "$(LOCKED)" in call or "--require-hashes" in call
        own = call.endswith("--editable .") and "--no-deps" in call
        assert checked or own or "--only-binary :all:" in call, call
