"""Hooks of the site (mkdocs.yml): the same pages are read on GitHub and on the site.

Pages link to files outside docs/, and hold comments with the origin of their numbers. The hooks
give the site a copy of every linked file under `repository/`, change the links to these files, and
leave the comments out.
"""

from __future__ import annotations

import os
import posixpath
import re
from functools import lru_cache
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).parents[1]
DOCS = "docs/"
COPIES = "repository/"
SHOWN = {".py": "python", ".toml": "toml", ".json": "json", "Makefile": "makefile"}
ALWAYS = ("CONTRIBUTING.md", "CHANGELOG.md", "THIRD_PARTY.md", "examples/README.md",
          "analysis/README.md", "benchmarks/results.md", "benchmarks/perturbations.md")  # fmt: skip
LINK = re.compile(r"(\]\()(?!\w+:|#)([^)#\s]+)((?:#[^)\s]*)?\))")
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.DOTALL | re.MULTILINE)
DETAILS = re.compile(r"(?m)^<!-- details -->$")
DEFINED = re.compile(r"(?m)^\| `[\w.]+` \| `(flmarket_sim[\w.]+)` \|")
COMMENT = re.compile(r"^```.*?^```|`[^`\n]*`|<!--.*?-->", re.DOTALL | re.MULTILINE)


def without_comments(text: str) -> str:
    """The page without comments; a line that held nothing else goes too."""
    marked = COMMENT.sub(lambda found: "\0" if found[0].startswith("<!--") else found[0], text)
    return re.sub(r"(?m)^[ \0]*\0[ \0]*\n", "", marked).replace("\0", "")


def with_details(text: str) -> str:
    """The page with what docstrings say about each name of the tables above a mark."""
    parts, described = DETAILS.split(text), set[str]()
    for number, part in enumerate(parts[:-1]):
        fresh = [name for name in DEFINED.findall(part) if name not in described]
        described.update(fresh)
        parts[number] = part + "\n".join(f"::: {name}\n" for name in dict.fromkeys(fresh))
    return "".join(parts)


def outside_code(pattern: re.Pattern[str], change: Any, text: str) -> str:
    """The text with every match outside of code changed."""
    kept: list[str] = []
    hidden = CODE.sub(lambda found: kept.append(found[0]) or f"\0{len(kept) - 1}\0", text)
    return re.sub(r"\0(\d+)\0", lambda place: kept[int(place[1])], pattern.sub(change, hidden))


def links(path: str) -> list[str]:
    """The files of the repository that a page links to, as paths from the top."""
    found: list[str] = []
    text = (ROOT / path).read_text(encoding="utf-8")
    outside_code(LINK, lambda link: found.append(_target(path, link[2])) or "", text)
    return found


def place_on_site(path: str) -> str:
    """Where a file of the repository is on the site."""
    if path.startswith(DOCS):
        return path.removeprefix(DOCS)
    shown = _language(path) is not None
    return f"{COPIES}{path}.md" if shown else f"{COPIES}{path}"


@lru_cache(maxsize=1)
def copies() -> tuple[str, ...]:
    """All files outside docs/ that the pages lead to, directly or through another copy."""
    pages = [str(page.relative_to(ROOT).as_posix()) for page in (ROOT / DOCS).rglob("*.md")]
    waiting, seen = [*pages, *ALWAYS], set(pages)
    while waiting:
        page = waiting.pop()
        seen.add(page)
        if page.endswith(".md"):
            waiting += {target for target in links(page) if (ROOT / target).is_file()} - seen
    return tuple(sorted(path for path in seen if not path.startswith(DOCS)))


def on_config(config: Any) -> Any:
    """Empties what an earlier build has kept: `mkdocs serve` builds again and again."""
    copies.cache_clear()
    return config


def on_files(files: Any, config: Any) -> Any:
    """Adds the copies."""
    for path in copies():
        language = _language(path)
        if language is not None:
            text = (ROOT / path).read_text(encoding="utf-8")
            page = f"# {path}\n\n````{language}\n{text}````\n"
            files.append(File.generated(config, place_on_site(path), content=page))
        else:
            files.append(File.generated(config, place_on_site(path), abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Leaves comments out and changes links, so that they lead to places on the site."""
    uri = page.file.src_uri
    copied = uri.startswith(COPIES)
    if copied and uri.removeprefix(COPIES) not in copies():
        return markdown  # the text of a program
    here = uri.removeprefix(COPIES) if copied else DOCS + uri

    def change(link: re.Match[str]) -> str:
        target = place_on_site(_target(here, link[2]))
        return link[1] + posixpath.relpath(target, posixpath.dirname(uri) or ".") + link[3]

    return outside_code(LINK, change, without_comments(with_details(markdown)))


def _target(page: str, link: str) -> str:
    """The file that a link leads to; a folder means the README in it."""
    target = posixpath.normpath(posixpath.join(posixpath.dirname(page), link))
    readme = f"{target}/README.md"
    return readme if (ROOT / readme).is_file() else target


def _language(path: str) -> str | None:
    name = os.path.basename(path)
    return SHOWN.get(name, SHOWN.get(os.path.splitext(name)[1]))
