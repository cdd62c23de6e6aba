"""The constant guess, balanced accuracy and the model without noise, against slow twins."""

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.metrics import balanced_accuracy_score

from flmarket_sim.learning import noiseless_training
from flmarket_sim.learning.buyer_model import evaluation
from flmarket_sim.learning.constant_guess import constant_guess
from flmarket_sim.learning.dataset import Dataset
from flmarket_sim.learning.learner import Learner
from flmarket_sim.learning.logistic import Logistic
from flmarket_sim.learning.noiseless_training import rows_of_round, train_without_noise
from flmarket_sim.perturbation.domains import in_domain
from flmarket_sim.plugins import registry
from flmarket_sim.randomness import Streams
from flmarket_sim.scenario.model import Learning, Model


@pytest.fixture(scope="module")
def data():
    source = registry.datasets.create(
        "synthetic", records=300, features=5, classes=3, test_records=200
    )
    return source.load(Streams(1))


def plain_gradient(table, x, y):
    """Mean gradient of softmax regression, one record after the other, in float64."""
    total = np.zeros_like(table)
    for record, label in zip(x.astype(float), y, strict=True):
        scores = record @ table[:-1] + table[-1]
        chance = np.exp(scores - scores.max())
        chance /= chance.sum()
        chance[label] -= 1.0
        total += np.outer(np.append(record, 1.0), chance)
    return total / len(y)


def plain_training(data, model, learning, rounds, clip):
    """The latest table of weights, and the plain mean of all of them with the first."""
    x, y = data.train_x, data.train_y
    table = np.zeros((x.shape[1] + 1, len(data.classes)))
    seen = [table]
    for _ in range(rounds):
        local = table
        for _ in range(learning.steps if learning.update == "local" else 1):
            rate = learning.learning_rate if learning.update == "local" else 1.0
            local = local - rate * plain_gradient(local, x, y)
        update = table - local
        length = np.sqrt((update**2).sum())
        update = update * min(1.0, clip / length)
        table = table - model.learning_rate * update
        seen.append(table)
    return table, np.mean(seen[1:], axis=0)


@pytest.mark.parametrize("averaging", [0.0, 1.0])
@pytest.mark.parametrize("update", ["gradient", "local"])
def test_it_is_plain_descent_on_all_records(data, update, averaging):
    learning = Learning(update=update, steps=3, learning_rate=0.5)
    spec = Model(name="logistic", learning_rate=0.7, averaging=averaging)
    learner = Learner("ann", spec, Logistic(5, 3), 6)
    found = train_without_noise(
        learner, learning, data, np.arange(300), lambda g: in_domain(g, "l2", 0.2)
    )
    latest, mean = plain_training(data, spec, learning, 6, 0.2)
    table = mean if averaging else latest
    assert learner.parameters == pytest.approx(latest.ravel(), abs=1e-5)
    predicted = (data.test_x @ table[:-1] + table[-1]).argmax(axis=1)
    assert found.accuracy == pytest.approx((predicted == data.test_y).mean(), abs=0.011)
    assert found.balanced_accuracy == pytest.approx(
        balanced_accuracy_score(data.test_y, predicted), abs=0.011
    )


def test_of_many_records_every_round_uses_some_and_every_record_has_its_turn(monkeypatch):
    monkeypatch.setattr(noiseless_training, "MOST_RECORDS", 4)
    rows = np.arange(10) * 7
    used = [rows_of_round(rows, number).tolist() for number in range(6)]
    assert all(len(part) <= 4 for part in used)
    assert sorted(used[0] + used[1] + used[2]) == rows.tolist() and used[3:] == used[:3]
    monkeypatch.setattr(noiseless_training, "MOST_RECORDS", 10)
    assert rows_of_round(rows, 5).tolist() == rows.tolist()


def labelled(train, test, classes=3):
    x = np.zeros((len(train), 1), np.float32), np.zeros((len(test), 1), np.float32)
    names = tuple(str(c) for c in range(classes))
    return Dataset(x[0], np.array(train), x[1], np.array(test), names)


@pytest.mark.parametrize(
    ("train", "test"),
    [([0, 1, 1, 2], [0, 1, 1, 1, 2]), ([2, 2, 0], [0, 1, 1, 2]), ([1, 1, 0], [0, 2, 0])],
)
def test_the_constant_guess_is_that_of_scikit_learn(train, test):
    data = labelled(train, test)
    dummy = DummyClassifier(strategy="most_frequent").fit(data.train_x, data.train_y)
    predicted = dummy.predict(data.test_x)
    found = constant_guess(data)
    assert found.accuracy == pytest.approx((predicted == data.test_y).mean())
    recalls = [(predicted[data.test_y == c] == c).mean() for c in np.unique(data.test_y)]
    assert found.balanced_accuracy == pytest.approx(np.mean(recalls))


def test_balanced_accuracy_is_that_of_scikit_learn_also_where_a_class_is_not_tested():
    rng = np.random.default_rng(0)
    for classes in (3, 4, 7):
        labels = rng.integers(0, classes - 1, 60)  # the last class has no test records
        predicted = rng.integers(0, classes - 1, 60)
        ours = evaluation(0.0, predicted, labels, classes).balanced_accuracy
        assert ours == pytest.approx(balanced_accuracy_score(labels, predicted))
