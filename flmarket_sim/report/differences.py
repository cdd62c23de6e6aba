"""One paragraph on every difference between the paper's results and ours: about method, not about numbers."""

WHY: dict[str, str] = {
    "error-bound": (
        "The paper prints curves without numbers. Its DM-RegretNet is here twice: with weights trained by this "
        "package (which may sell nothing, and were trained against stronger lies), and, where the authors' files are "
        "at hand, with the published ones. Aggregation is by the exact optimum of the paper's Problem 1; the paper's "
        "own code solves a narrower problem. all-in and all-in-critical have the same winners, so their curves are "
        "one."
    ),
    "invalid-gradients": (
        "The published weights drop the level 'sells nothing' before they choose, so that everybody sells something, "
        "at a loss if need be; ours keep it, and may buy nothing where the money is short. Our RegretNet and "
        "M-RegretNet are other instances, trained to another regret, and need not be invalid as often as the paper's."
    ),
    "aggregation": (
        "For the same allocation the exact OptAggr cannot lose. dm-regretnet is the exception to 'the same': it is "
        "trained for each rule apart, so the comparison is of two auctions as well. The saving is smaller than curves "
        "on a linear scale suggest where everybody sells alike."
    ),
    "accuracy": (
        "The paper shows one curve each, without intervals. Ten gradients a round with noise of scale 2L/e on each of "
        "some hundred parameters hide the signal: accuracies of single runs differ by tens of percentage points. What "
        "cannot be told apart with these seeds is called so. Owners accept what they are allocated, as the paper "
        "assumes."
    ),
    "levels": (
        "The paper trains by an augmented Lagrangian against gradient ascent, for 50 epochs of 102,400 profiles, and "
        "does not say how much privacy its instances buy. Ours steers its own estimate of regret to the same small "
        "target for every M, against random structured lies, in 700 steps of 256 profiles; what differs by M is then "
        "what that search does not see, and how much is bought. An instance that buys almost nothing has no regret "
        "and no IR violation, and is not what the paper means: such are in the table, and not in the verdict. The "
        "paper's metric draws lots, and its noise depends on M."
    ),
    "guarantees": (
        "The published metric is a lower bound from a weak attack: the last of 100 plain gradient steps from the "
        "truth, through a choice of levels that carries no gradient; for lotteries it takes the difference of two "
        "draws, which is mostly luck. Weights of RegretNet and M-RegretNet here are other instances than the paper's. "
        "Step size and sample of the paper's runs are not in the paper."
    ),
    "surplus": (
        "The paper does not report it. Welfare has no single number as long as error has no price: its parts are the "
        "buyer's error (figure 1), what she spends, and what owners keep above what their privacy is worth to them."
    ),
}
