"""What the notebooks claim, as code that runs in their kernels after the last cell."""

CLAIMS = {
    "1_first_look": """
assert lost == 0 and (gradients > 0).all()
assert won[0] > 0.99 and 0.4 < won[2] < 0.6
assert all(deal["paid"] >= deal["cost"] * (1 - 1e-9) for deal in deals)
assert (
    surplus > 0.4 and share["cost of the privacy sold"] > 0.5 and share["kept by the buyer"] < 0.02
)
assert paid_out.any() and np.allclose(spent[paid_out], budget[paid_out])
assert (spent[paid_out] > cost[paid_out]).all()
assert 0.15 < tenth["privacy"] < 0.25 and abs(tenth["money"] - tenth["privacy"]) < 0.05
assert 30 < sold.mean() < 32 and sold.mean() > 7 * 4 and sold.max() > 15 * 4
assert accuracy[-1] > 0.8
""",
    "2_comparing_mechanisms": """
for factor in (0.3, 1.0):
    assert (
        at["pay-as-bid", factor]["difference_high"]
        < 0
        < at["posted-price", factor]["difference_low"]
    )
    share = at["proportional-share", factor]
    assert share["difference_low"] < 0 < share["difference_high"]
    assert money[factor]["seen in pairs"] and not money[factor]["seen without"]
    assert money[factor]["difference"] < 0
least, most = at["proportional-share", 0.3], at["proportional-share", 1.0]
assert most["difference_high"] < 0.01 * most["baseline_mean"]
assert least["difference_high"] > 0.2 * least["baseline_mean"]
assert money[0.3]["times more seeds"] > 10 and money[1.0]["times more seeds"] > 100
far = [
    row
    for row in widths
    if row["auction"] in ("posted-price", "pay-as-bid") and row["column"] == "mean_error_bound"
]
assert all(row["seen without"] and row["times more seeds"] < 10 for row in far)
assert all(row["seen in pairs"] and row["difference"] > 0 for row in of_rules) and not any(
    row["seen without"] for row in of_rules
)
assert all(
    row["difference"] < 1e-4 * row["baseline_mean"]
    for row in rules
    if row["column"] == "mean_error_bound"
)
assert all(row["difference"] == 0 for row in rules if row["column"] == "spent")
""",
    "3_strategic_behaviour": """
assert np.isclose(lying - honest, found.gain[k, i], rtol=1e-6)
assert gain["pay-as-bid"]["share_who_gain"] > 0.9 and gain["pay-as-bid"]["false_values"] > 0.9
for name in ("all-in", "all-in-critical"):
    assert 1 / 3 < gain[name]["share_who_gain"] < 1 / 2 and gain[name]["false_privacy_budget"] > 0.8
    assert rest[name]["rest"] == 10 and rest[name]["error_ratio"] < 1.25
assert gain["posted-price"]["gain_over_cost_high"] < gain["all-in-critical"]["gain_over_cost_low"]
assert rest["posted-price"]["liars"] < 0.1
assert rest["pay-as-bid"]["rest"] == 0 and rest["pay-as-bid"]["error_ratio"] > 2
truthful = min(AUCTIONS, key=lambda name: rest[name]["error_truth"])
lied_to = min(AUCTIONS, key=lambda name: rest[name]["bound_of_data_end"])
assert truthful == "pay-as-bid" and lied_to.startswith("all-in")
assert rest["pay-as-bid"]["bound_of_data_end"] == max(
    row["bound_of_data_end"] for row in study.rows
)
""",
    "4_privacy_ledgers": """
assert all(row["missing in the log"] < 1e-12 for row in rows)
one_sale = 2.0  # no owner has a larger privacy budget
assert np.median(end["no limit"]) > 5 * one_sale and end["no limit"].max() > 20 * one_sale
assert (composed > plain).all() and max(map(len, losses)) < ones
assert all(end[name].max() <= limit * (1 + 1e-9) for name, limit in LIMITS.items())
assert (end["6 for life"] > 5.94).all() and (end["12 for life"] > 11.88).mean() > 0.5
assert errors["no limit"].max() < 1.5 * errors["no limit"].min()
assert errors["12 for life"][-1] > 5 * errors["12 for life"][0] and not np.isfinite(
    errors["6 for life"][-1]
)
assert dry["6 for life"]["invalid_in_the_last_20"] > 0.5
assert 0 < rows[0]["of it unpaid"] < 0.1
""",
    "5_anatomy_of_the_error_bound": """
for deliveries_of_factor in by_factor.values():
    parts_of_bound = deliveries_of_factor["variance"] + deliveries_of_factor["squared_bias"]
    assert np.allclose(parts_of_bound, deliveries_of_factor["error_bound"])
assert parts[0]["error bound"] > 10 * parts[-1]["error bound"] and true[0.1] > 5 * true[2.0]
assert share[0.4] > 0.5 and share[2.0] < 0.2 and max(share, key=share.get) not in (0.1, 2.0)
assert all(abs(np.mean(actual[name] / expected[name]) - 1) < 0.02 for name in shown)
paper = [found["true_error"] / found["error_bound"] for found in by_factor.values()]
assert of["Laplace, coordinate"]["true / bound"] > 100 and all(
    (found > 100).all() for found in paper
)
for name, found in (at_one | {"quickstart": quick}).items():
    assert (expected_error(found) < found["vector_bound"]).all()
    if name != "Laplace, coordinate":
        assert 0.9 < of[name]["expected / bound"] < 1
        assert abs(of[name]["true / bound"] - 1) < 0.03
        assert found["squared_bias"].sum() < 0.03 * found["error_bound"].sum()
assert all(row["share of the bias bound reached"] < 0.1 for row in far)
assert min(rule, key=lambda name: rule[name]["coordinate_bound"]) == "opt-aggr, coordinate"
assert min(rule, key=lambda name: rule[name]["vector_bound"]) == "opt-aggr, vector"
least = rule["var-opt"]["true_error"]
assert abs(rule["opt-aggr, vector"]["true_error"] / least - 1) < 0.001
assert 1.01 < rule["opt-aggr, coordinate"]["true_error"] / least < 1.05
assert rule["convl-aggr"]["true_error"] > 1.5 * least
weaker = of["PrivUnit, vector"]["true squared bias"] / of["Laplace, vector"]["true squared bias"]
assert weaker > 200
assert 0.2 < coordinate["rounds where it is too small"] < 0.8 and coordinate["off at most"] > 0.2
assert abs(coordinate["with the true records"] / coordinate["bound as reported"] - 1) < 0.05
assert vector["off at most"] < 0.01
""",
    "6_who_cheats": """
first = {row["after the sale"]: row for row in free}
for name in ("nothing-but-noise", "public-direction"):
    assert first[name]["cost_share"] == 0 and first[name]["privacy_lost"] == 0
    for loss in LOSSES:
        assert accused["variance", loss, name] == accused["consistency", loss, name] == 0
for loss in LOSSES:
    messages, share = (
        numbers["peer-cosine", loss, "nothing-but-noise"] for numbers in (sold, accused)
    )
    error = (0.05 * 0.95 / messages) ** 0.5  # of a coin that falls on one side in twenty
    assert messages == {0.5: 217, 8.0: 145}[loss] and 0.05 - 2 * error < share <= 0.05
    assert accused["variance", loss, "more-noise"] == 1
    assert 0.85 < accused["consistency", loss, "stale"] < 0.9
noise = [kept[check, "nothing-but-noise"] for check in CHECKS]
assert noise[0] == noise[1] and 0.9 < noise[2] / noise[0] < 1
assert kept["variance", "more-noise"] < 0 < kept["consistency", "more-noise"]
assert 0.05 < kept["consistency", "stale"] / kept["variance", "stale"] < 0.15
flips = [accused["peer-cosine", loss, "sign-flip"] for loss in LOSSES]
assert 0.2 < flips[1] < 0.3 and flips[0] < 0.1
assert all(
    accused[check, loss, name] < 0.1
    for check in CHECKS
    for loss in LOSSES
    for name in ("public-direction", "fewer-records")
)
""",
}
