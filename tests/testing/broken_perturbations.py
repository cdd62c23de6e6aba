"""Perturbations that are broken in one way each, for the check that must notice it."""

import numpy as np

from flmarket_sim.perturbation.domains import in_domain, norms
from flmarket_sim.perturbation.gaussian import Gaussian
from flmarket_sim.perturbation.laplace import Laplace
from flmarket_sim.perturbation.priv_unit import BestCap, PrivUnit, best_cap, release_unit


class UnknownDomain(Laplace):
    domain = "l3"


class WrongNorm(Laplace):
    """It says L1 and clips in L2."""

    def prepare(self, gradients, clip=1.0):
        return in_domain(gradients, "l2", clip)


class ForgetsToClip(Laplace):
    def prepare(self, gradients, clip=1.0):
        return gradients.copy()


class ClipsInPlace(Laplace):
    def prepare(self, gradients, clip=1.0):
        gradients[:] = in_domain(gradients, "l1", clip)
        return gradients


class LengthensAll(Laplace):
    """Short gradients get the full length too."""

    def prepare(self, gradients, clip=1.0):
        length = norms(gradients, "l1")
        return gradients * (clip / np.where(length > 0, length, 1.0))[:, None]


class NanAtZero(PrivUnit):
    def __init__(self):
        super().__init__("unit")

    def prepare(self, gradients, clip=1.0):
        return gradients * clip / norms(gradients, "l2")[:, None]


class NotOnTheSphere(PrivUnit):
    def __init__(self):
        super().__init__("unit")

    def prepare(self, gradients, clip=1.0):
        return in_domain(gradients, "l2", clip)


class LetsNanThrough(Laplace):
    """nan is above no threshold."""

    def prepare(self, gradients, clip=1.0):
        length = np.abs(gradients).sum(axis=1)
        return gradients * np.where(length > clip, 0.99 * clip / length, 1.0)[:, None]


class LosesTheLongest(PrivUnit):
    """Divided by a length that is infinite, a gradient is no longer on the sphere."""

    def __init__(self):
        super().__init__("unit")

    def prepare(self, gradients, clip=1.0):
        defined = np.where(np.isfinite(gradients).all(axis=1)[:, None], gradients, 0.0)
        defined[~defined.any(axis=1), 0] = 1.0
        return defined * (clip / norms(defined, "l2"))[:, None]


class ClipsTogether(Laplace):
    """The longest gradient of a batch decides how much all are shortened."""

    def prepare(self, gradients, clip=1.0):
        return gradients * min(1.0, 0.99 * clip / norms(gradients, "l1").max())


class WrongShape(Laplace):
    def release(self, gradients, privacy_loss, rng, clip=1.0):
        return super().release(gradients, privacy_loss, rng, clip)[:, :1]


class SinglePrecision(Laplace):
    def release(self, gradients, privacy_loss, rng, clip=1.0):
        return super().release(gradients, privacy_loss, rng, clip).astype(np.float32)


class ModifiesInput(Laplace):
    def release(self, gradients, privacy_loss, rng, clip=1.0):
        gradients += rng.laplace(size=gradients.shape) * 2 * clip / privacy_loss[:, None]
        return gradients.copy()


class Overflows(Laplace):
    def release(self, gradients, privacy_loss, rng, clip=1.0):
        sent = super().release(gradients, privacy_loss, rng, clip)
        return sent * (np.exp(9 * privacy_loss) / np.exp(9 * privacy_loss))[:, None]


class FailsAtOneCoordinate(Laplace):
    def release(self, gradients, privacy_loss, rng, clip=1.0):
        gradients[:, 1]
        return super().release(gradients, privacy_loss, rng, clip)


class GlobalRandom(Laplace):
    def release(self, gradients, privacy_loss, rng, clip=1.0):
        noise = np.random.laplace(size=gradients.shape)  # noqa: NPY002
        return gradients + noise * 2 * clip / privacy_loss[:, None]


class SeedOfItsOwn(Laplace):
    def release(self, gradients, privacy_loss, rng, clip=1.0):
        return super().release(gradients, privacy_loss, np.random.default_rng(7), clip)


class VarianceIsOneNumber(Laplace):
    def variance(self, privacy_loss, dimension, clip=1.0):
        return float(np.mean(super().variance(privacy_loss, dimension, clip)))


class VarianceRises(Laplace):
    def variance(self, privacy_loss, dimension, clip=1.0):
        return dimension * clip**2 * np.asarray(privacy_loss, float) ** 2


class FiniteAtZero(Laplace):
    def variance(self, privacy_loss, dimension, clip=1.0):
        return super().variance(np.maximum(privacy_loss, 1e-3), dimension, clip)


class ForgetsTheClip(Laplace):
    def variance(self, privacy_loss, dimension, clip=1.0):
        return super().variance(privacy_loss, dimension)


class NoBytes(Laplace):
    def message_bytes(self, dimension, privacy_loss):
        return 0


class DeltaIsNoChance(Gaussian):
    def __init__(self):
        super().__init__()
        self.delta = 0.0


class DeltaForgotten:
    """Gaussian noise for delta = 0.05 that does not say so."""

    name, domain = "delta-forgotten", "l2"

    def __init__(self):
        self._inner = Gaussian(0.05)

    def prepare(self, gradients, clip=1.0):
        return self._inner.prepare(gradients, clip)

    def release(self, gradients, privacy_loss, rng, clip=1.0):
        return self._inner.release(gradients, privacy_loss, rng, clip)

    def variance(self, privacy_loss, dimension, clip=1.0):
        return self._inner.variance(privacy_loss, dimension, clip)


class Biased(Laplace):
    """It shrinks what it sends, which looks better and is not what was promised."""

    def release(self, gradients, privacy_loss, rng, clip=1.0):
        return 0.8 * super().release(gradients, privacy_loss, rng, clip)

    def variance(self, privacy_loss, dimension, clip=1.0):
        return 0.64 * super().variance(privacy_loss, dimension, clip)


class OneCoordinateCounts(Laplace):
    """The paper's reading: the variance of one coordinate."""

    def variance(self, privacy_loss, dimension, clip=1.0):
        return super().variance(privacy_loss, 1, clip)


class TooCautious(Laplace):
    def variance(self, privacy_loss, dimension, clip=1.0):
        return 1.2 * super().variance(privacy_loss, dimension, clip)


class CautiousAndSaysSo(TooCautious):
    variance_is_bound = True


class OneLossForAll(Laplace):
    def release(self, gradients, privacy_loss, rng, clip=1.0):
        return super().release(gradients, np.full_like(privacy_loss, privacy_loss[0]), rng, clip)


class OneNoiseForAll(Laplace):
    def release(self, gradients, privacy_loss, rng, clip=1.0):
        noise = np.tile(rng.laplace(size=gradients[:1].shape), (len(gradients), 1))
        return gradients + noise * 2 * clip / privacy_loss[:, None]


class MixesRows(Laplace):
    def release(self, gradients, privacy_loss, rng, clip=1.0):
        mixed = 0.5 * gradients + 0.5 * gradients.mean(axis=0)
        return super().release(mixed, privacy_loss, rng, clip)


class HalfTheNoise(Laplace):
    def release(self, gradients, privacy_loss, rng, clip=1.0):
        return super().release(gradients, 2 * privacy_loss, rng, clip)

    def variance(self, privacy_loss, dimension, clip=1.0):
        return super().variance(2 * np.asarray(privacy_loss), dimension, clip)


class HalfTheNoiseAndHidesIt(HalfTheNoise):
    """It names a pair at which nothing can be seen."""

    def worst_pair(self, privacy_loss, dimension, clip=1.0):
        pair = super().worst_pair(privacy_loss, dimension, clip)
        return type(pair)(pair.first, pair.first, pair.direction, 0.0)


class ForgetsTheRest(PrivUnit):
    """The cap has the chance exp(e) q, as if points outside it kept their density."""

    def release(self, gradients, privacy_loss, rng, clip=1.0):
        from flmarket_sim.perturbation.priv_unit import with_extra_coordinate

        cap = best_cap(np.asarray(privacy_loss), gradients.shape[1] + 1)
        chance = np.minimum(np.exp(privacy_loss) * cap.mass, 1.0)
        units = with_extra_coordinate(gradients, clip)
        points = release_unit(units, BestCap(cap.height, cap.mass, chance, cap.mean_square), rng)
        return points[:, :-1] * (clip / cap.height)[:, None]


class NoiseOfItsOwnSize(Laplace):
    """Small gradients get little noise, so the noise tells how small they are."""

    def release(self, gradients, privacy_loss, rng, clip=1.0):
        noise = rng.laplace(size=gradients.shape) * norms(gradients, "l1")[:, None]
        return gradients + noise * 2 / privacy_loss[:, None]


class HalfTheSensitivity(Laplace):
    """L / e instead of 2 L / e: as if one gradient were zero."""

    def release(self, gradients, privacy_loss, rng, clip=1.0):
        return super().release(gradients, privacy_loss, rng, 0.5 * clip)


class Fails(Laplace):
    def release(self, gradients, privacy_loss, rng, clip=1.0):
        raise RuntimeError("no")


BROKEN = [  # perturbation, the check that notices, what it says
    (UnknownDomain, "domain", "domain must be one of"),
    (WrongNorm, "domain", "must have a norm"),
    (ForgetsToClip, "domain", "must have a norm"),
    (ClipsInPlace, "domain", "new memory"),
    (LengthensAll, "domain", "must not change a gradient that is in the domain"),
    (NanAtZero, "domain", "prepare must give finite numbers, also of the gradient"),
    (NotOnTheSphere, "domain", "every gradient has the length"),
    (LetsNanThrough, "overflow", "of a gradient that is not finite"),
    (LosesTheLongest, "overflow", "brought to the edge of the domain"),
    (ClipsTogether, "domain", "each gradient by itself"),
    (FailsAtOneCoordinate, "domain", "it failed"),
    (WrongShape, "form", "release must give float64"),
    (SinglePrecision, "form", "release must give float64"),
    (ModifiesInput, "form", "release must leave its argument alone"),
    (Overflows, "form", "finite numbers, also at e = 100"),
    (GlobalRandom, "randomness", "another source of chance"),
    (SeedOfItsOwn, "randomness", "another generator must give another release"),
    (VarianceIsOneNumber, "variance", "in the shape of the losses"),
    (VarianceRises, "variance", "must fall with the privacy loss"),
    (FiniteAtZero, "variance", "must be infinite"),
    (ForgetsTheClip, "variance", "square of clip"),
    (NoBytes, "bytes", "whole number above 0"),
    (DeltaIsNoChance, "promise", "delta must be a chance"),
    (Biased, "moments", "the mean of releases must be the gradient"),
    (OneCoordinateCounts, "moments", "variance must be the largest"),
    (TooCautious, "moments", "must be reached by some gradient"),
    (OneLossForAll, "own loss", "every row has its own privacy loss"),
    (OneNoiseForAll, "rows apart", "independent of that of another"),
    (MixesRows, "rows apart", "gradients of other rows"),
    (HalfTheNoise, "privacy", "e is at least"),
    (HalfTheNoiseAndHidesIt, "privacy", "e is at least"),
    (HalfTheSensitivity, "privacy", "e is at least"),
    (ForgetsTheRest, "privacy", "e is at least"),
    (NoiseOfItsOwnSize, "privacy", "e is at least"),
    (DeltaForgotten, "privacy", "e is at least"),
    (Fails, "form", "it failed .form.: RuntimeError: no"),
]
