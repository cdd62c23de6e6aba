"""Errors in the words of the command line.

A message names a setting as Python does, in backquotes: "name another directory with `out`". Where
the user typed a command, the option of that setting stands in its place: "with --out".
"""

from __future__ import annotations

import re

OPTIONS = {
    "also": "--also",
    "cluster": "--cluster",
    "cluster_option": "--cluster-option",
    "cluster_wait": "--cluster-wait",
    "delta": "--delta",
    "force=True": "--force",
    "from": "--from",
    "mixed=True": "--mixed",
    "option": "--option",
    "out": "--out",
    "override": "--set",
    "port": "--port",
    "resume": "flmarket resume",
    "setting": "--setting",
    "size": "--size",
    "unsafe": "--unsafe",
    "workers": "--workers",
}
SETTING = re.compile(r"`(\w+(?:=True)?)`")


def with_options(message: str) -> str:
    """The message with options in place of the settings that have one."""
    return SETTING.sub(lambda match: OPTIONS.get(match[1], match[0]), message)
