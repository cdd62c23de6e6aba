"""The form of a scenario, made from the JSON Schema of scenario files.

A form is a list of sections with fields. A field knows its place in the scenario ("owners.rate"),
what can be entered, its default, and what it means. Where a field names a plug-in, the form has the
names of that kind; options of a plug-in are read from its constructor when it is chosen.
"""

from __future__ import annotations

from typing import Any

from flmarket_sim.errors import InputError
from flmarket_sim.plugins import registry
from flmarket_sim.plugins.options import options_model
from flmarket_sim.scenario.scenario_file import json_schema

PLUGINS = {  # place in a scenario: kind of plug-in
    "data": "dataset",
    "owners.partition": "partition",
    "market.delay": "delay",
    "auction": "auction",
    "aggregation": "aggregation",
    "robust": "robust",
    "contribution": "contribution",
    "check": "check",
    "perturbation": "perturbation",
    "model": "model",
    "model.optimizer": "optimizer",
    "model.schedule": "schedule",
    "study": "study",
}
LISTS = {"owners.families": "family"}
IN_TEXT = ("buyers", "sweep", "owners.behaviours", "owners.cheats")  # lists of tables: as TOML
ORDER = (
    "", "owners", "market", "budget", "auction", "aggregation", "robust", "data", "model",
    "learning", "perturbation", "privacy", "check", "contribution", "log", "study",
)  # fmt: skip
ABOUT = {  # what a section is for, where the schema says only what kind of table it is
    "": "What the experiment is called, and how long it lasts.",
    "auction": "How bids and money become sales and payments.",
    "data": "The records that owners have and that models learn.",
    "perturbation": "How a gradient is made private before it leaves its owner.",
    "robust": "How messages and their weights become one gradient, also where some are false.",
    "study": "The question that `flmarket study` asks of this market, and its options.",
}
Field = dict[str, Any]


def scenario_form() -> dict[str, Any]:
    """The sections of the form, in the order of reading, and the names of all plug-ins."""
    schema = json_schema()
    found: dict[str, list[Field]] = {"": []}
    about = dict(ABOUT)
    for key, described in schema["properties"].items():
        if key in IN_TEXT:
            continue
        target = _resolved(schema, described)
        if key in PLUGINS or "properties" in target:
            found[key] = _table(schema, key, target, described)
            about.setdefault(key, _first(target.get("description", "")))
        else:
            found[""].append(_field(key, described, target))
    sections = [
        {"path": path, "title": path or "scenario", "about": about[path], "fields": found[path]}
        for path in (*ORDER, *(path for path in found if path not in ORDER))
        if path in found
    ]
    kinds = {kind: registry.KINDS[kind].names() for kind in (*PLUGINS.values(), *LISTS.values())}
    return {"sections": sections, "plugins": kinds}


def plugin_options(kind: str, name: str) -> list[Field]:
    """The options of a plug-in as fields, from the signature of its constructor."""
    known = registry.KINDS.get(kind)
    if known is None:
        raise InputError(f"there is no kind of plug-in {kind!r}")
    model = options_model(known.get(name), known.facts)
    try:
        schema = model.model_json_schema()
    except Exception:  # an annotation without a schema: the option is still there by name
        return [_loose(key, field) for key, field in model.model_fields.items()]
    fields = schema.get("properties", {})
    return [
        _field(key, described, _resolved(schema, described)) for key, described in fields.items()
    ]


def _table(schema: Any, path: str, target: Any, described: Any) -> list[Field]:
    """The fields of a table; a table within it is a field of its own."""
    fields: list[Field] = []
    if path in PLUGINS:
        default = described.get("default") or {}
        name = default.get("name") if isinstance(default, dict) else None
        fields.append(
            {"path": path, "label": path.rpartition(".")[2], "kind": "plugin", "default": name,
             "plugin": PLUGINS[path], "about": described.get("description", "")}
        )  # fmt: skip
    for key, inner in target.get("properties", {}).items():
        place = f"{path}.{key}"
        if place in IN_TEXT or (key == "name" and path in PLUGINS):
            continue
        resolved = _resolved(schema, inner)
        if place in PLUGINS:
            fields += _table(schema, place, {}, inner)
        else:
            fields.append(_field(place, inner, resolved))
    return fields


def _field(path: str, described: Any, target: Any) -> Field:
    choices = target.get("enum")
    field: Field = {
        "path": path,
        "label": path.rpartition(".")[2].replace("_", " "),
        "kind": _kind(path, described, target),
        "default": described.get("default"),
        "about": described.get("description", ""),
    }
    if choices is not None:
        field["choices"] = choices
    if path in LISTS:
        field["plugin"] = LISTS[path]
    for ours, theirs in (("least", "minimum"), ("above", "exclusiveMinimum"), ("most", "maximum")):
        if theirs in target:
            field[ours] = target[theirs]
    return field


def _kind(path: str, described: Any, target: Any) -> str:
    """number, integer, text, yes-no, choice, range, names, or value (TOML)."""
    if path in LISTS:
        return "names"
    if "enum" in target:
        return "choice"
    options = [one for one in described.get("anyOf", ()) if one.get("type") != "null"]
    if {one.get("type") for one in options} == {"number", "array"}:
        return "range"
    plain = {"number": "number", "integer": "integer", "string": "text", "boolean": "yes-no"}
    return plain.get(str(target.get("type")), "value")


def _resolved(schema: Any, described: Any) -> Any:
    """The schema behind references, without "or null" and without "or a name"."""
    if "$ref" in described:
        return _resolved(schema, schema["$defs"][described["$ref"].rpartition("/")[2]])
    if "anyOf" in described:
        options = [one for one in described["anyOf"] if one.get("type") != "null"]
        tables = [one for one in options if "properties" in one or "$ref" in one]
        return _resolved(schema, (tables or options)[0])
    return described


def _loose(key: str, field: Any) -> Field:
    plain = isinstance(field.default, bool | int | float | str)
    default = field.default if plain else None
    return {"path": key, "label": key.replace("_", " "), "kind": "value", "default": default,
            "about": ""}  # fmt: skip


def _first(text: str) -> str:
    return text.partition("\n\n")[0].replace("\n", " ")
