"""atheris looks for inputs that reach new code in a reader, from the same seeds. One process a reader; it stops at the first failure."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from .campaign import SECONDS, generator, judge

SEEDS = 300


def run(reader: Any, inputs: int, seed: int, keep: Path) -> bool:
    """Whether anything failed. libFuzzer ends its process, so it gets one of its own."""
    keep.mkdir(parents=True, exist_ok=True)
    command = [
        sys.executable,
        "-m",
        "tests.fuzz.guided",
        reader.__module__,
        reader.__name__,
        str(inputs),
        str(seed),
        f"{keep}/",
    ]
    return subprocess.run(command).returncode != 0


def main() -> None:
    module, name, inputs, seed, keep = sys.argv[1:]
    import atheris

    with atheris.instrument_imports(include=["flmarket_sim.scenario.scenario_file", "flmarket_sim.scenario.problems", "flmarket_sim.scenario.toml_lines", "flmarket_sim.sweep",
                                             "flmarket_sim.storage.untrusted_files", "flmarket_sim.auctions.learned", "tomllib", "safetensors"]):  # fmt: skip
        made = __import__(module, fromlist=[name])
    with tempfile.TemporaryDirectory() as folder:
        reader = getattr(made, name)(Path(folder))
        corpus = Path(folder) / "corpus"
        corpus.mkdir()
        for index in range(SEEDS):
            (corpus / str(index)).write_bytes(reader.make(generator(int(seed), index)))

        def one(data: bytes) -> None:
            if (
                reader.suffix == ".damage"
                and data.partition(b"\n")[0].decode("latin-1") not in reader.whole
            ):
                return
            judge(reader, data)

        flags = [f"-runs={inputs}", f"-seed={int(seed) + 1}", f"-timeout={SECONDS:.0f}", "-rss_limit_mb=4096", "-max_len=20000", f"-artifact_prefix={keep}", "-print_final_stats=1", "-verbosity=0"]  # fmt: skip
        atheris.Setup([sys.argv[0], *flags, str(corpus)], one)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
