"""The valuation families of this process: a code for each, so that arrays can hold them.

The built-in families have the codes 0 to 4 everywhere. Other families get the next free code when
they are first named, so their codes differ from process to process. Whatever leaves the process
carries names: `named_codes` and `codes_of_names` translate.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flmarket_sim.errors import ContractError, InputError, plugin_errors
from flmarket_sim.owners.valuation_family import Floats, ValuationFamily
from flmarket_sim.plugins import registry

Codes = NDArray[np.int8]
NamedCodes = tuple[tuple[str, ...], Codes]  # names, and positions among them

FAMILIES = ("linear", "quadratic", "sqrt", "exponential", "step")
LINEAR, QUADRATIC, SQRT, EXPONENTIAL, STEP = range(len(FAMILIES))
MOST = 127  # codes are 8-bit numbers

_codes: dict[str, int] = {name: code for code, name in enumerate(FAMILIES)}
_families: dict[int, ValuationFamily] = {}


def family_codes(family: ArrayLike) -> Codes:
    """Codes of an array of family names; codes pass through."""
    names = np.asarray(family)
    if names.dtype.kind in "iu":
        if names.size and (names.min() < 0 or names.max() >= len(_codes)):
            raise InputError(f"family codes must lie in 0..{len(_codes) - 1}")
        return names.astype(np.int8)
    codes = np.full(names.shape, -1, np.int8)
    for name in FAMILIES:
        codes[names == name] = _codes[name]
    for name in np.unique(names[codes < 0].astype(str)):
        codes[names == name] = _code(str(name))
    return codes


def family_names(codes: ArrayLike) -> NDArray[np.str_]:
    return np.asarray(np.asarray(list(_codes))[np.asarray(codes)])


def family_of(code: int) -> ValuationFamily:
    """The family of a code."""
    if code not in _families:
        _families[code] = registry.families.create(list(_codes)[code])
    return _families[code]


def present(codes: ArrayLike) -> list[int]:
    """The codes that occur, in ascending order."""
    return [int(code) for code in np.flatnonzero(np.bincount(np.asarray(codes).ravel()))]


def by_family(
    codes: Codes, argument: Floats, evaluate: Callable[[int, ValuationFamily, Floats], Any]
) -> Floats:
    """For each element of the argument the result of its family, in the shape of both together.

    A built-in family evaluates the whole argument, so that results do not depend on who else is
    there to the last bit; a family from elsewhere gets its own elements only.
    """
    chosen: Any = None
    for code in present(codes):
        if code < len(FAMILIES):
            result = _evaluated(code, argument, evaluate)
            chosen = result if chosen is None else np.where(codes == code, result, chosen)
            continue
        mine, all_of_it = np.broadcast_arrays(codes == code, argument)
        found = np.zeros(mine.shape)
        found[mine] = _evaluated(code, all_of_it[mine], evaluate)
        chosen = found if chosen is None else np.where(mine, found, chosen)
    return np.zeros(np.shape(argument)) if chosen is None else np.asarray(chosen)


def _evaluated(
    code: int, argument: Floats, evaluate: Callable[[int, ValuationFamily, Floats], Any]
) -> Floats:
    family = family_of(code)
    with (
        np.errstate(over="ignore", divide="ignore", invalid="ignore"),
        plugin_errors(registry.families.kind, family.name),
    ):
        result = np.asarray(evaluate(code, family, argument), np.float64)
    if result.shape != np.shape(argument):
        raise ContractError(
            f"{registry.families.kind} {family.name!r} must give one number for each of an "
            f"array of shape {np.shape(argument)}, got {result.shape}"
        )
    return result


def named_codes(codes: Codes) -> NamedCodes:
    """Codes as they may leave the process."""
    used = present(codes)
    return tuple(family_names(used).tolist()), np.searchsorted(used, codes).astype(np.int8)


def codes_of_names(named: NamedCodes) -> Codes:
    """The codes of this process for what `named_codes` of another one gave."""
    names, positions = named
    return np.asarray(family_codes(np.array(names, str))[positions])


def positions_among(names: tuple[str, ...], codes: NDArray[Any]) -> NDArray[Any]:
    """The positions of families in a list of names, for files. Codes may be None among objects."""
    place = {_code(name): position for position, name in enumerate(names)}
    lookup = np.array([place.get(code, -1) for code in range(len(_codes))], np.int8)
    if codes.dtype == object:
        given = np.array([code is not None for code in codes], bool)
        found: NDArray[Any] = codes.copy()
        found[given] = positions_among(names, codes[given].astype(np.int8))
        return found
    found = np.asarray(lookup[codes])
    if (found < 0).any():
        raise ContractError(
            f"{family_names(codes[found < 0][0])!r} is a valuation family that the scenario does "
            "not name, neither in owners.families nor as the `family` of a behaviour"
        )
    return found


def _code(name: str) -> int:
    if name not in _codes:
        family = registry.families.create(name)  # refuses what is no family
        if len(_codes) == MOST:
            raise InputError(f"a process can hold {MOST} valuation families; {name!r} is one more")
        _codes[name] = len(_codes)
        _families[_codes[name]] = family
    return _codes[name]
