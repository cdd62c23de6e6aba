"""The web application: which address answers with what. The checks of security.py are around it."""

from __future__ import annotations

from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from flmarket_sim import auctions
from flmarket_sim.errors import FlmarketError, InputError
from flmarket_sim.plugins import registry
from flmarket_sim.report.html import page_files, plotly_library
from flmarket_sim.scenario.scenario_file import read_toml
from flmarket_sim.scenario.shipped import read_text, scenario_names
from flmarket_sim.workbench import live, playground, questions
from flmarket_sim.workbench.folder_index import FolderIndex
from flmarket_sim.workbench.inside import result_path
from flmarket_sim.workbench.jobs import Jobs
from flmarket_sim.workbench.result_pages import ResultPages
from flmarket_sim.workbench.scenario_check import check_tables, check_text
from flmarket_sim.workbench.scenario_form import plugin_options, scenario_form
from flmarket_sim.workbench.security import Gate

TYPES = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
Data = dict[str, Any]
Answer = Callable[[Data], Any]


def application(folder: Path, token: str, port: int) -> ASGIApp:
    """The workbench of a folder, for the server on this port of this machine."""
    jobs = Jobs(folder)
    index, pages = FolderIndex(folder, jobs), ResultPages(folder)

    async def watch(request: Request) -> Response:
        name = request.query_params.get("name", "")
        try:
            if jobs.job(name) is None:
                result_path(folder, name)
        except InputError as error:
            return _refused(error)
        stream = live.stream(jobs, name)
        return StreamingResponse(stream, media_type="text/event-stream")

    def start(data: Data) -> Data:
        return {"name": jobs.start(_text(data, "what"), _text(data, "text"))}

    def probe(data: Data) -> Data:
        auction, effort = _text(data, "auction"), _text(data, "effort")
        if effort not in ("quick", "standard", "exhaustive"):
            raise InputError("effort must be one of quick, standard, exhaustive")
        profiles, seed = _whole(data, "profiles"), _whole(data, "seed")
        text, budgets = _text(data, "text"), _text(data, "budgets")
        return {"name": jobs.start_probe(text, auction, profiles, effort, budgets, seed)}

    def stop(data: Data) -> Data:
        jobs.stop(_text(data, "name"))
        return {}

    def resume(data: Data) -> Data:
        name = _text(data, "name")
        result_path(folder, name)
        jobs.resume(name)
        return {}

    def ask(data: Data) -> Data:
        return questions.ask(result_path(folder, _text(data, "run")), _text(data, "query"))

    def output(data: Data) -> Data:
        name = _text(data, "name")
        return {"output": jobs.output(name) if jobs.job(name) is not None else ""}

    routes = [
        Route("/", _index),
        Route("/plotly.js", _plotly),
        Route("/report.js", _report_script),
        Route("/static/{name}", _static),
        _get("/api/folder", lambda data: index.entries()),
        _get("/api/scenarios", lambda data: _scenarios()),
        _get("/api/scenario", lambda data: check_text(read_text(_shipped(data)))),
        _get("/api/form", lambda data: scenario_form()),
        _get("/api/options", lambda d: plugin_options(_text(d, "kind"), _text(d, "name"))),
        _get("/api/playground", lambda data: _choices()),
        _get("/api/output", output),
        Route("/api/page", _page(pages)),
        Route("/api/live", watch),
        _post("/api/check", _check),
        _post("/api/start", start),
        _post("/api/probe", probe),
        _post("/api/stop", stop),
        _post("/api/resume", resume),
        _post("/api/sql", ask),
        _post("/api/play", lambda data: playground.play(playground.Setting.of(data))),
        _post("/api/curve", lambda data: playground.curve(playground.Setting.of(data))),
    ]
    return Gate(Starlette(routes=routes), token, port)


def _get(path: str, answer: Answer) -> Route:
    async def endpoint(request: Request) -> Response:
        return await _answered(answer, dict(request.query_params))

    return Route(path, endpoint)


def _post(path: str, answer: Answer) -> Route:
    async def endpoint(request: Request) -> Response:
        try:
            data = await request.json()
        except (ValueError, RecursionError):
            return _refused(InputError("the request is not JSON"))
        except ClientDisconnect:
            return PlainTextResponse("The request is too large.\n", 413)
        if not isinstance(data, dict):
            return _refused(InputError("the request must be an object"))
        return await _answered(answer, data)

    return Route(path, endpoint, methods=["POST"])


def _page(pages: ResultPages) -> Callable[[Request], Any]:
    async def endpoint(request: Request) -> Response:
        names = request.query_params.getlist("of")
        return await _answered(lambda data: pages.page(names), {})

    return endpoint


async def _answered(answer: Answer, data: Data) -> Response:
    """The answer as JSON; an error of the user becomes a sentence."""
    try:
        return JSONResponse(await run_in_threadpool(answer, data))
    except FlmarketError as error:
        return _refused(error)
    except Exception as error:
        sentence = f"{type(error).__name__}: {error}. This error was not foreseen"
        return JSONResponse({"error": sentence}, 500)


def _refused(error: FlmarketError) -> Response:
    return JSONResponse({"error": str(error)}, 400)


def _check(data: Data) -> Data:
    if "tables" in data:
        return check_tables(data["tables"])
    return check_text(_text(data, "text"))


def _scenarios() -> list[Data]:
    """The shipped scenarios: name, description, and what each can be started as."""
    listed = []
    for name in scenario_names():
        tables = read_toml(read_text(name), name)
        starts = ["run", *(what for what in ("sweep", "study") if what in tables)]
        listed.append({"name": name, "about": tables.get("description", ""), "starts": starts})
    return listed


def _choices() -> Data:
    return {
        "scenarios": scenario_names(),
        "auctions": auctions.names(),
        "rules": registry.aggregation.names(),
        "most_owners": playground.MOST_OWNERS,
    }


def _shipped(data: Data) -> str:
    name = _text(data, "name")
    if name not in scenario_names():
        raise InputError(f"no scenario {name!r} comes with flmarket")
    return name


def _text(data: Data, key: str) -> str:
    value = data.get(key)
    if not isinstance(value, str) or not value or "\x00" in value:
        raise InputError(f"the request must have a text {key!r}")
    return value


def _whole(data: Data, key: str) -> int:
    value = data.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**63:
        raise InputError(f"the request must have a whole number {key!r} of at least 0")
    return value


async def _index(request: Request) -> Response:
    """The page; the ids of styles that plotly would add for maps are taken (plotly_library.py)."""
    taken = [f'<template id="{name}"></template>' for name in plotly_library.refused_styles()]
    return Response(
        _file("index.html").replace("@@TAKEN@@", "".join(taken)), media_type=TYPES[".html"]
    )


async def _static(request: Request) -> Response:
    name = request.path_params["name"]
    if name == "report.css":
        return Response(page_files.text("page.css"), media_type=TYPES[".css"])
    known = {file.name for file in resources.files(__package__).joinpath("static").iterdir()}
    kind = TYPES.get(Path(name).suffix)
    if name not in known or kind is None:
        return PlainTextResponse("There is no such file.\n", 404)
    return Response(_file(name), media_type=kind)


async def _report_script(request: Request) -> Response:
    return Response(page_files.figure_script(), media_type=TYPES[".js"])


async def _plotly(request: Request) -> Response:
    script = await run_in_threadpool(plotly_library.script)
    kept = {"cache-control": "private, max-age=86400"}
    return Response(script, media_type=TYPES[".js"], headers=kept)


def _file(name: str) -> str:
    return resources.files(__package__).joinpath("static", name).read_text(encoding="utf-8")
