"""Makes hospitals.csv: patients of forty hospitals, all of them invented.

    python examples/hospitals.py > examples/hospitals.csv

Hospitals differ in size and in whom they treat, so a market of them is not IID.
"""

from __future__ import annotations

import numpy as np

HOSPITALS = [f"hospital {number:02}" for number in range(1, 41)]
WARDS = ("emergency", "surgery", "medicine")


def rows(patients: int = 3_000, seed: int = 7) -> list[str]:
    """The lines of the file, the names of the columns first."""
    rng = np.random.default_rng(seed)
    share = rng.lognormal(0.0, 0.6, len(HOSPITALS))
    older = rng.normal(0.0, 6.0, len(HOSPITALS))
    lines = ["hospital,age,ward,pulse,temperature,visits,returned"]
    for place in rng.choice(len(HOSPITALS), patients, p=share / share.sum()).tolist():
        age = int(np.clip(rng.normal(58.0 + older[place], 17.0), 18, 99))
        ward = int(rng.integers(len(WARDS)))
        pulse = int(rng.normal(78.0, 13.0))
        temperature = float(rng.normal(37.2, 0.7))
        visits = int(rng.poisson(1.6))
        score = (age - 58) / 9 + (pulse - 78) / 10 + 1.2 * (temperature - 37.2) + visits - 1.6
        score += 1.5 * (ward == 0) - 0.5
        returned = "yes" if rng.random() < 1 / (1 + np.exp(-score)) else "no"
        lines.append(
            f"{HOSPITALS[place]},{age},{WARDS[ward]},{pulse},{temperature:.1f},{visits},{returned}"
        )
    return lines


if __name__ == "__main__":
    print("\n".join(rows()))
