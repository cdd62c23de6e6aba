"""The client's app knows its owner by the settings of her node."""

from flmarket_sim.flower.client import client_app, content_of
from flmarket_sim.flower.library import flower
from flmarket_sim.flower.messages import Hello
from flmarket_sim.flower.owner import Owner
from tests.support.loopback_grid import LoopbackGrid


def test_an_owner_who_connects_again_is_not_made_again(tmp_path):
    made = []

    def owner(context):
        made.append(context.node_config["name"])
        return Owner(made[-1], [[0.0], [1.0]], [0, 1], tmp_path / made[-1])

    grid = LoopbackGrid(client_app(owner), [{"name": "ann"}, {"name": "bob"}, {"name": "ann"}])
    for node in (1, 2, 3, 1):
        hello = content_of(Hello(run="r"))
        grid.push_messages([flower().Message(hello, dst_node_id=node, message_type=Hello.type)])
    assert made == ["ann", "bob"]
