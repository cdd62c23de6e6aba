"""A page's plug-in in the page's market: both are written to files and played by the command."""

from tests.support.command_line import flmarket

from .test_docs import blocks


def market_of_page(page, module, lines, folder):
    """Plays the first code of a page, of at most so many lines, in its first scenario, in `run`.

    Returns what the command printed.
    """
    code, scenario = blocks(page, "python")[0], blocks(page, "toml")[0]
    assert len(code.splitlines()) <= lines
    (folder / f"{module}.py").write_text(code)
    (folder / "page.toml").write_text(scenario)
    done = flmarket("run", "page.toml", "--out", "run", cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout
