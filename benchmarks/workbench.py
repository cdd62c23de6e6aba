"""The workbench: first paint, a live run beside an unwatched one, many runs, a large run.

`python -m benchmarks.workbench [--quick]`. The first paint and the opened run are those of a real
browser (Chromium); without one these rows are left out. What a watched run costs is a ratio within
one run: it is watched for some seconds, then not, and so on.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import flmarket_sim as fm
from flmarket_sim.scenario.scenario_file import build_scenario

COMMAND = [sys.executable, "-m", "flmarket_sim.cli"]
RUNS = 1_000
LARGE = {
    "name": "a million events",
    "data": {"name": "synthetic", "records": 100_000},
    "owners": {"count": 2_000},
    "market": {"bidders": 100},
    "auction": {"name": "all-in"},
    "aggregation": {"name": "opt-aggr", "error": "coordinate"},
    "model": {"name": "none"},
}
WATCHED_ROUNDS, LARGE_ROUNDS, REPEATS = 6_000, 1_600, 5
WINDOW = 4.0  # seconds
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync",
    "--window-size=1280,1400",  # figures are drawn once they are in view
)  # fmt: skip


@contextlib.contextmanager
def server(folder: Path) -> Iterator[tuple[str, int]]:
    """A workbench of a folder: its address, and the number of its process."""
    command = [*COMMAND, "workbench", str(folder), "--no-browser", "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    printed = ""
    while not (found := re.search(r"http://\S+", printed)):
        line = process.stdout.readline()
        if not line:
            sys.exit("the workbench did not start")
        printed += line
    try:
        yield found[0], process.pid
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


def client(address: str) -> urllib.request.OpenerDirector:
    """A client that has the token as a cookie."""
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    opener.open(address).read()
    return opener


def get(opener: urllib.request.OpenerDirector, address: str, path: str) -> Any:
    with opener.open(address.partition("?")[0].rstrip("/") + path) as answer:
        return json.loads(answer.read())


@contextlib.contextmanager
def browser() -> Iterator[Any]:
    """Chromium, or None where it is not installed."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    try:
        from selenium import webdriver
    except ImportError:
        chromium = None
    if chromium is None or driver is None:
        yield None
        return
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (*FLAGS, f"--user-data-dir={tempfile.mkdtemp()}"):
        options.add_argument(flag)
    opened = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    try:
        yield opened
    finally:
        opened.quit()


def many_runs(folder: Path, count: int) -> dict[str, float]:
    """A folder of copies of one small run: the first list, all totals, and the list once more."""
    small = fm.run("quickstart", folder / "run-0000", rounds=5).path
    for number in range(1, count):
        shutil.copytree(small, folder / f"run-{number:04d}")
    with server(folder) as (address, _):
        opener, times = client(address), []
        began = time.perf_counter()
        while True:
            asked = time.perf_counter()
            listed = get(opener, address, "/api/folder")
            times.append(time.perf_counter() - asked)
            assert len(listed["entries"]) == count
            if not listed["missing"]:
                break
        whole = time.perf_counter() - began
        asked = time.perf_counter()
        get(opener, address, "/api/folder")
        return {"first": times[0], "totals": whole, "again": time.perf_counter() - asked}


def simulate(out: str, rounds: int) -> None:
    """Runs the scenario and prints wall and processor time after every round; its own process."""
    times: list[tuple[float, float]] = []

    def note(done: int, total: int) -> None:
        times.append((time.perf_counter(), time.process_time()))

    fm.run(build_scenario(LARGE | {"rounds": rounds}), out, progress=note)
    print(json.dumps(times))


def watched(folder: Path, rounds: int) -> dict[str, Any]:
    """One run that is watched every other WINDOW seconds: seconds a round with and without.

    Both sides are parts of the same run, and neighbours in time are compared, since the load of a
    shared machine drifts.
    """
    command = [sys.executable, "-m", "benchmarks.workbench", "simulate"]
    with server(folder) as (address, process):
        opener = client(address)
        live = f"{address.partition('?')[0]}api/live?name=run"
        with tempfile.TemporaryFile("w+") as printed:  # a pipe would fill up, and stop the run
            run = subprocess.Popen([*command, str(folder / "run"), str(rounds)], stdout=printed)
            switches, news, busy = _watch(run, folder, opener, live, process)
            printed.seek(0)
            times = json.load(printed)
    share = busy / (WINDOW * sum(on for _, on in switches))
    return ratios(times, switches) | {"news": news, "share": share}


def _watch(
    run: subprocess.Popen[Any],
    folder: Path,
    opener: urllib.request.OpenerDirector,
    live: str,
    process: int,
) -> tuple[list[tuple[float, bool]], int, float]:
    """Watches a run every other window: when, how many news came, and the server's work."""
    news, switches, busy = 0, list[tuple[float, bool]](), 0.0
    while not list((folder / "run").glob("events/journal-*")):
        time.sleep(0.01)
    on = False
    while run.poll() is None:
        on = not on
        switches.append((time.perf_counter(), on))
        end = time.perf_counter() + WINDOW
        if on:
            before = processor_seconds(process)
            with opener.open(live) as stream:
                while time.perf_counter() < end and (line := stream.readline()):
                    news += line.startswith(b"data: ")
            busy += processor_seconds(process) - before
        while time.perf_counter() < end and run.poll() is None:
            time.sleep(0.01)
    return switches, news, busy


def processor_seconds(process: int) -> float:
    """What a process has used so far; 0 where the system has no /proc."""
    stat = Path(f"/proc/{process}/stat")
    if not stat.exists():
        return 0.0
    fields = stat.read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def ratios(times: list[list[float]], switches: list[tuple[float, bool]]) -> dict[str, Any]:
    """Seconds a round of watched windows over those of the windows beside them."""
    speeds: list[tuple[bool, float, float]] = []
    for (begin, on), (end, _) in itertools.pairwise(switches):
        inside = [pair for pair in times if begin + 0.2 < pair[0] < end]
        if len(inside) > 10:
            wall, spent = (inside[-1][k] - inside[0][k] for k in (0, 1))
            speeds.append((on, wall / (len(inside) - 1), spent / (len(inside) - 1)))
    found: dict[str, list[float]] = {"wall": [], "processor": []}
    for before, this, after in zip(speeds, speeds[1:], speeds[2:], strict=False):
        for place, name in ((1, "wall"), (2, "processor")):
            ratio = this[place] / ((before[place] + after[place]) / 2)
            found[name].append(ratio if this[0] else 1 / ratio)
    ordered = sorted(found["wall"])
    quarter = len(ordered) // 4
    return {
        "windows": len(ordered),
        "wall": statistics.median(ordered),
        "spread": (ordered[quarter], ordered[-1 - quarter]),
        "processor": statistics.median(found["processor"]),
    }


def large_run(folder: Path, rounds: int, chromium: Any) -> dict[str, Any]:
    """A run of a million events: until its numbers and figures by round are on the screen."""
    run = fm.run(build_scenario(LARGE | {"rounds": rounds}), folder / "large")
    found: dict[str, Any] = {"events": run.info["log"]["events"]}
    with server(folder) as (address, _):
        opener = client(address)
        asked = time.perf_counter()
        with opener.open(f"{address.partition('?')[0]}api/live?name=large") as stream:
            stream.readline()
        found["numbers"] = time.perf_counter() - asked
        asked = time.perf_counter()
        get(opener, address, "/api/page?of=large")
        found["report"] = time.perf_counter() - asked
    with server(folder) as (address, _):  # a fresh one: nothing is in its memory
        if chromium is None:
            return found
        chromium.get(address)
        found["paint"] = _seconds(chromium, "first-contentful-paint")
        wait(chromium, "typeof Plotly === 'object'")
        asked = time.perf_counter()
        chromium.execute_script("location.hash = '#/result/large'")
        wait(chromium, "document.querySelector('#chart-money .main-svg')")
        found["opened"] = time.perf_counter() - asked
    return found


def _seconds(chromium: Any, name: str) -> float:
    script = (
        "const e = performance.getEntriesByName(arguments[0]); return e.length && e[0].startTime"
    )
    while not (found := chromium.execute_script(script, name)):
        time.sleep(0.02)
    return float(found) / 1000


def wait(chromium: Any, condition: str) -> None:
    end = time.monotonic() + 60
    while not chromium.execute_script(f"return Boolean({condition})"):
        if time.monotonic() > end:
            sys.exit(f"it never happened: {condition}")
        time.sleep(0.02)


def paints(folder: Path, chromium: Any, repeats: int) -> list[float]:
    """First contentful paints of a folder, each with an empty cache, in seconds."""
    found = []
    with server(folder) as (address, _):
        for _ in range(repeats):
            chromium.execute_cdp_cmd("Network.clearBrowserCache", {})
            chromium.get(address)
            found.append(_seconds(chromium, "first-contentful-paint"))
    return found


def main() -> None:
    if sys.argv[1:2] == ["simulate"]:
        simulate(sys.argv[2], int(sys.argv[3]))
        return
    quick = "--quick" in sys.argv
    folder = Path(tempfile.mkdtemp())
    count = 100 if quick else RUNS
    rounds, repeats = (100, 2) if quick else (LARGE_ROUNDS, REPEATS)
    try:
        for name in ("many", "large", "watched"):
            (folder / name).mkdir()
        listed = many_runs(folder / "many", count)
        with browser() as chromium:
            opened = large_run(folder / "large", rounds, chromium)
            painted = [] if chromium is None else paints(folder / "many", chromium, repeats)
        live = watched(folder / "watched", 500 if quick else WATCHED_ROUNDS)
    finally:
        shutil.rmtree(folder)
    low, high = live["spread"]
    print(f"## Workbench, {os.cpu_count()} cores\n\n| what | measured |\n|---|---|")
    if painted:
        median, most = statistics.median(painted), max(painted)
        print(f"| first paint, {count:,} runs in the folder | {median:.2f} s (most {most:.2f} s) |")
    print(f"| list of {count:,} runs, read for the first time | {listed['first']:.2f} s |")
    print(f"| the same with the totals of all | {listed['totals']:.2f} s |")
    print(f"| the same once more | {listed['again']:.2f} s |")
    events = f"{opened['events']:,} events"
    print(f"| run of {events}: its numbers and rounds | {opened['numbers']:.2f} s |")
    if "opened" in opened:
        print(f"| the same in a browser, until its figures are drawn | {opened['opened']:.2f} s |")
    print(f"| all figures and tables of its report | {opened['report']:.2f} s |")
    print(
        f"| a watched run over the same run unwatched, wall time of a round (median of "
        f"{live['windows']} windows, half of them between) | {live['wall']:.3f} "
        f"({low:.3f} and {high:.3f}) |"
    )
    print(f"| the same, processor time of the run | {live['processor']:.3f} |")
    share = f"{live['share']:.1%}"
    print(f"| what the server uses of a core meanwhile, opened anew each window | {share} |")


if __name__ == "__main__":
    main()
