"""A pytest plug-in for `make mutants`: which tests reach a function, and which mutants they notice.

pytest imports and collects everything once. With REACH set, the tests are then played, and the
functions that each of them calls are written down with its seconds. With TRIALS set, no test is
played in this process: each mutant gets a copy of it (a fork, some milliseconds), which plays the
tests that reach the function, the quickest first, until one fails. A copy has no caches of earlier
tests, because nothing was played before. Only processor time counts, so a busy machine kills no
mutant.
"""

from __future__ import annotations

import functools
import gc
import importlib
import json
import math
import mmap
import os
import resource
import shutil
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path
from types import FrameType

import pytest
from hypothesis import Phase, settings
from mutmut.mutation.trampoline import set_mutant_under_test
from mutmut.state import state

PACKAGE = "flmarket_sim"
REACH, TRIALS = "MUTANTS_REACH", "MUTANTS_TRIALS"  # variables that name a file to write, to read
SLOW = 1.5  # seconds after which a test is stopped when its functions are written down
LATE = (  # what the package imports late, so that no mutant has to
    *("cvxpy", "torch", "scipy.optimize", "scipy.special", "dp_accounting.pld.common"),
    *("dp_accounting.pld.privacy_loss_distribution", "opendp.prelude", "pyarrow.parquet"),
)
WORTH = 4.0  # seconds of tests that a mutant meets; at least one test
MORE, LEAST, MOST = 5, 10, 30  # a mutant runs for ever after 5 times its tests' processor time,
# but not before 10 seconds (a fixture can take some), and at most after 30
HANGS = 900  # seconds of any time, for a mutant that waits
MEMORY = 4 << 30  # bytes that a mutant may ask for in addition
PLAYED = memoryview(mmap.mmap(-1, 8)).cast("q")  # the test that a copy plays, by number
CLEAN: dict[tuple[pytest.Item, ...], int] = {}  # codes of tests that were played without a mutant
KILLED, SURVIVED, UNTESTED = 1, 0, 33  # the codes of mutmut; a signal has its negative number


def pytest_configure(config: pytest.Config) -> None:
    """A failure is enough, so hypothesis looks for no simpler one."""
    quick = settings(phases=[Phase.explicit, Phase.generate], report_multiple_bugs=False)
    settings.register_profile("mutants", quick)
    settings.load_profile("mutants")


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    import flmarket_sim

    for library in LATE:
        importlib.import_module(library)
    if Path.cwd() not in Path(flmarket_sim.__file__).parents:
        raise pytest.UsageError("the tests would meet the package without mutants")
    if REACH in os.environ:
        set_mutant_under_test("stats")
        session.config.pluginmanager.register(Reach(session, Path(os.environ[REACH])))


def pytest_runtestloop(session: pytest.Session) -> bool | None:
    if TRIALS not in os.environ:
        return None
    forget()
    played(session, Path(os.environ[TRIALS]))
    return True


def forget() -> None:
    """Clears what functions of the package remember."""
    for name in [name for name in sys.modules if name.startswith(PACKAGE)]:
        for one in vars(sys.modules[name]).values():
            if type(one) is functools._lru_cache_wrapper:
                one.cache_clear()


class TooSlowError(BaseException):
    """Ends a test whose functions are being written down."""


class Reach:
    """The functions that each test calls, itself or through a fixture that it shares.

    A slow test is stopped: the functions that it has reached count, and its time is infinite. A
    mutant meets such a test only if no quicker one reaches its function.
    """

    def __init__(self, session: pytest.Session, file: Path) -> None:
        self.file = file
        known = json.loads(file.read_text()) if file.exists() else {}
        self.seconds: dict[str, float] = known.get("seconds", {})
        self.functions: dict[str, list[str]] = known.get("functions", {})
        self.shared: dict[str, set[str]] = defaultdict(set)
        self.slow: set[str] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef
    ) -> Generator[None, object, object]:
        before = set(state()._stats)
        result = yield
        if fixturedef.scope != "function":
            self.shared[fixturedef.argname] |= state()._stats - before
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        forget()
        state()._stats.clear()
        start = time.process_time()
        result = yield
        taken = time.process_time() - start
        self.seconds[item.nodeid] = math.inf if item.nodeid in self.slow else taken
        fixtures = getattr(item, "fixturenames", ())
        reached = state()._stats.union(*(self.shared[name] for name in fixtures))
        self.functions[item.nodeid] = sorted(reached)
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        def stop(_: int, frame: FrameType | None) -> None:
            while frame is not None:
                if "importlib" in frame.f_code.co_filename:  # half a module would stay
                    signal.setitimer(signal.ITIMER_VIRTUAL, SLOW)
                    return
                frame = frame.f_back
            raise TooSlowError

        signal.signal(signal.SIGVTALRM, stop)
        signal.setitimer(signal.ITIMER_VIRTUAL, SLOW)
        try:
            return (yield)
        except TooSlowError:
            self.slow.add(item.nodeid)
            return None
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)

    def pytest_sessionfinish(self) -> None:
        found = {"seconds": self.seconds, "functions": self.functions}
        self.file.write_text(json.dumps(found))


def played(session: pytest.Session, file: Path) -> None:
    """Tries the mutants of a file and appends a line for each: its name, its code and a test."""
    orders = json.loads(file.read_text())
    items = {item.nodeid: item for item in session.items}
    reached: dict[str, list[str]] = defaultdict(list)
    for test, functions in orders["functions"].items():
        if test in items:
            for function in functions:
                reached[function].append(test)
    folder = session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
    end = time.monotonic() + 60 * orders["minutes"]
    gc.freeze()
    with open(orders["verdicts"], "a", encoding="utf-8") as verdicts:
        for count, mutant in enumerate(orders["mutants"], 1):
            if time.monotonic() > end:
                break
            tests = worthwhile(reached[mutant.rpartition("__mutmut_")[0]], orders["seconds"])
            known = sum(orders["seconds"][test] for test in tests)
            limit = round(min(max(MORE * known, LEAST), MOST))
            code = verdict(mutant, [items[test] for test in tests], limit) if tests else UNTESTED
            verdicts.write(json.dumps([mutant, code]) + "\n")
            verdicts.flush()
            for left in folder.iterdir():
                shutil.rmtree(left, ignore_errors=True)
            print(f"\r{count:,} of {len(orders['mutants']):,} mutants", end="", file=sys.__stderr__)
    print(file=sys.__stderr__)


def worthwhile(tests: list[str], seconds: dict[str, float]) -> list[str]:
    """Tests that take WORTH seconds together, and at least one.

    The quickest come first, and second cases of a parametrised test after the first case of every
    other: cases of one test notice about the same.
    """
    cases: dict[str, int] = defaultdict(int)
    ranked = []
    for test in sorted(tests, key=lambda test: (seconds[test], test)):
        function = test.partition("[")[0]
        ranked.append((cases[function], seconds[test], test))
        cases[function] += 1
    chosen, total = [], 0.0
    for _, taken, test in sorted(ranked):
        if not chosen or total + taken <= WORTH:
            chosen.append(test)
            total += taken
    return chosen


def verdict(mutant: str, items: list[pytest.Item], limit: int) -> int:
    """The exit code of the tests against the mutant.

    A failure counts only if the same tests, in the same order, pass without the mutant.
    """
    code = trial(mutant, items, limit)
    if code != KILLED:
        return code
    until = tuple(items[: PLAYED[0] + 1])
    if until not in CLEAN:
        CLEAN[until] = trial("", list(until), MOST)
        if CLEAN[until] != SURVIVED:
            print(f"\nfails without a mutant: {until[-1].nodeid}", file=sys.__stderr__)
    return KILLED if CLEAN[until] == SURVIVED else SURVIVED


def trial(mutant: str, items: list[pytest.Item], limit: int) -> int:
    """The exit code of a copy of this process that plays the tests against the mutant, for at most
    so many seconds of processor time."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    code = KILLED
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (limit + 1, limit + 2))
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        space = pages * resource.getpagesize() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (space, space))
        signal.alarm(HANGS)
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
        set_mutant_under_test(mutant)
        items[0].config.pluginmanager.register(FirstFailure())
        for number, item in enumerate(items):
            PLAYED[0] = number
            following = items[number + 1] if number + 1 < len(items) else None
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        code = SURVIVED
    finally:
        os._exit(code)


class FirstFailure:
    """Ends the copy at the first exception that a test or a fixture lets out."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Generator[None, object, object]:
        try:
            return (yield)
        except pytest.skip.Exception:
            raise
        except BaseException:
            os._exit(KILLED)

    pytest_runtest_setup = pytest_runtest_call

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            os._exit(KILLED)
