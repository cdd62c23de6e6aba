"""A Grid of Flower in this process: a ClientApp answers a message when the broker looks for it."""

from collections.abc import Callable
from itertools import count

from flmarket_sim.flower.library import flower


class KilledError(BaseException):
    """The end of some work in its middle, as far as this process goes on: what the work does when
    anything fails is done. `forked.py` ends a process for good."""


def fail() -> None:
    raise KilledError


def know_the_task() -> None:
    """Messages of Flower are made in a task, which its own processes have."""
    identity = flower("flwr.supercore.task_identity").TaskIdentity
    identity.run_id, identity.task_id, identity.node_id = 1, 1, 1


class LoopbackGrid:
    """Nodes 1 to n with settings of their own.

    `lost(node, message)` says which messages never arrive, `held(node, message)` which replies wait
    until `held` says otherwise. Nodes in `offline` are not connected.

    `kill_at` ends the broker by `kill`: at that push or look for replies, before or after it has
    had its effect (looks at who is connected go by the clock and do not count), or before it sends
    the first message of that type.
    """

    def __init__(self, app, settings, lost=None, held=None, kill_at=None, kill=fail):
        self.app, self.settings = app, dict(enumerate(settings, 1))
        self.lost = lost or (lambda node, message: False)
        self.held: Callable = held or (lambda node, message: False)
        self.kill_at, self.kill, self.calls, self.names = kill_at, kill, 0, count(1)
        self.offline: set[int] = set()
        self.replies: dict[str, tuple[int, object]] = {}
        self.sent: list[tuple[int, str]] = []  # node and type of every message
        know_the_task()

    def _call(self):
        self.calls += 1
        if self.calls == self.kill_at:
            self.kill()

    def get_node_ids(self):
        return [node for node in self.settings if node not in self.offline]

    def push_messages(self, messages):
        self._call()
        if self.kill_at in {message.metadata.message_type for message in messages}:
            self.kill()
        names = []
        for message in messages:
            name = f"message-{next(self.names)}"
            message.metadata.__dict__["_message_id"] = name
            node = message.metadata.dst_node_id
            self.sent.append((node, message.metadata.message_type))
            names.append(name)
            if not self.lost(node, message):
                self.replies[name] = (node, self._answer(node, message))
        self._call()
        return names

    def _answer(self, node, message):
        app = flower()
        context = app.Context(
            run_id=1,
            node_id=node,
            node_config=self.settings[node],
            state=app.RecordDict(),
            run_config={},
        )
        try:
            return self.app(message, context)
        except Exception:
            return app.Message(app.Error(code=2, reason=""), reply_to=message)

    def pull_messages(self, names):
        self._call()
        found = []
        for name in list(names):
            if name in self.replies and not self.held(*self.replies[name]):
                found.append(self.replies.pop(name)[1])
        self._call()
        return found
