"""What users type to name an auction: [LABEL=]NAME[@WEIGHTS][OPTIONS].

    all-in                              a built-in name
    seq-price@general                   a learned auction with its weights
    lottery:Lottery                     module:Class
    path/to/file.py:Lottery             file:Class
    posted-price[price=2]               options of the constructor, in brackets
    all-in[value=precision]             a bare word is a text
    cheap=posted-price[price=1]         a label for tables and legends

Values of options are TOML, or bare words. `parse` reads any text, so that a name in a file from
elsewhere can be shown; `table` refuses options that cannot be read.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator
from os.path import basename, splitext
from typing import Any, NamedTuple

from flmarket_sim.errors import InputError, shown
from flmarket_sim.plugins.plugin_files import FILE_TARGET, texts_in
from flmarket_sim.scenario.problems import DEEPEST
from flmarket_sim.scenario.toml_lines import overlong_key

LABEL = re.compile(r"([^=@:/\\\[\]]*[^=@:/\\\[\]\s])\s*=\s*(?=\S)(.*)", re.DOTALL)
KEY = re.compile(r"\s*([A-Za-z_]\w*)\s*=\s*(.*?)\s*", re.DOTALL)
BARE_WORD = re.compile(r"[^\s\"'\[\]{},=]+")
MOST_BRACKETS = 20  # that may begin the options: a text from elsewhere can have any number
CLOSES = {"[": "]", "{": "}"}


class AuctionName(NamedTuple):
    """An auction as a user names it.

    `weights` is None for an auction's own default, `options_text` what stands in brackets, and
    `given_label` what stands before the first equals sign.
    """

    name: str
    weights: str | None
    options_text: str = ""
    given_label: str = ""

    @classmethod
    def parse(cls, text: str) -> AuctionName:
        match = LABEL.fullmatch(text)
        label, rest = (match[1].strip(), match[2]) if match else ("", text)
        rest, options = _without_brackets(rest)
        file = FILE_TARGET.match(rest)
        begin = file.end() if file else 0  # the folders of a file may have an @ in their names
        at = rest.find("@", begin)
        name, weights = (rest, None) if at < 0 else (rest[:at], rest[at + 1 :])
        return cls(name, weights, options, label)

    @property
    def options(self) -> dict[str, Any]:
        """The options in brackets; raises an InputError if they cannot be read."""
        options: dict[str, Any] = {}
        for part in _parts(self.options_text):
            match = KEY.fullmatch(part)
            if match is None:
                raise InputError(
                    f"auction {self.name!r}: options in brackets are written as "
                    f"[name=value, name=value], got {shown(part.strip())}"
                )
            if match[1] == "name":
                raise InputError(f"auction {self.name!r}: the name stands before the brackets")
            if match[1] in options or (match[1] == "weights" and self.weights is not None):
                raise InputError(f"auction {self.name!r}: option {match[1]!r} is given twice")
            options[match[1]] = self._value(match[1], match[2])
        return options

    @property
    def table(self) -> dict[str, Any]:
        """The [auction] table of a scenario, and the options of `auctions.create`."""
        weights = {} if self.weights is None else {"weights": self.weights}
        return {"name": self.name} | weights | self.options

    @property
    def label(self) -> str:
        """The name for people: files go by their own names, without their folders."""
        if self.given_label:
            return self.given_label
        file = FILE_TARGET.fullmatch(self.name)
        short = re.split(r"[/\\]", self.name)[-1] if file else self.name
        weights = "" if self.weights is None else f"@{splitext(basename(self.weights))[0]}"
        return short + weights + (f"[{self.options_text}]" if self.options_text else "")

    @property
    def option_texts(self) -> list[str]:
        """The texts among the values of options; empty if these cannot be read."""
        try:
            return list(texts_in(self.options))
        except InputError:
            return []

    def _value(self, key: str, raw: str) -> Any:
        try:
            if "\n" not in raw and not overlong_key(raw, DEEPEST):
                return tomllib.loads(f"value = {raw}")["value"]
        except (ValueError, RecursionError):
            pass
        if BARE_WORD.fullmatch(raw):
            return raw
        raise InputError(
            f"auction {self.name!r}: the value of option {key!r} is neither a number, a word nor "
            f"a text in quotes: {shown(raw)}"
        )


def auction_labels(names: Iterable[str]) -> dict[str, str]:
    """A label for each name. Names whose labels are the same are shown as they were typed."""
    labels = {name: AuctionName.parse(name).label for name in names}
    shared = list(labels.values())
    return {name: label if shared.count(label) == 1 else name for name, label in labels.items()}


def _without_brackets(text: str) -> tuple[str, str]:
    """The text before [OPTIONS] at its end, and the options; "" if there are none."""
    if text.endswith("]"):
        places = [place for place, letter in enumerate(text) if letter == "[" and place]
        for place in places[:MOST_BRACKETS]:
            if _closing(text, place) == len(text) - 1:
                return text[:place], text[place + 1 : -1].strip()
    return text, ""


def _closing(text: str, begin: int) -> int | None:
    """Where the bracket at `begin` is closed. Brackets inside quotes do not count."""
    open_brackets: list[str] = []
    for place, letter, quoted in _letters(text[begin:]):
        if quoted:
            continue
        if letter in CLOSES:
            open_brackets.append(CLOSES[letter])
        elif letter in CLOSES.values():
            if not open_brackets or open_brackets.pop() != letter:
                return None
            if not open_brackets:
                return begin + place
    return None


def _parts(text: str) -> Iterator[str]:
    """The parts between commas that stand neither in brackets nor in quotes."""
    depth, begin = 0, 0
    for place, letter, quoted in _letters(text):
        if quoted:
            continue
        depth += (letter in CLOSES) - (letter in CLOSES.values())
        if letter == "," and depth == 0:
            yield text[begin:place]
            begin = place + 1
    if text[begin:].strip() or begin:
        yield text[begin:]


def _letters(text: str) -> Iterator[tuple[int, str, bool]]:
    """Each letter with its place, and whether it stands in quotes, the quotes included."""
    quote, escaped = "", False
    for place, letter in enumerate(text):
        if quote:
            yield place, letter, True
            closes = letter == quote and not escaped
            escaped = letter == "\\" and quote == '"' and not escaped
            quote = "" if closes else quote
        else:
            quote = letter if letter in "\"'" else ""
            yield place, letter, bool(quote)
