"""Two people who decide on the same samples at once, on a server that is killed meanwhile."""

import random
import threading
import time
from collections import Counter

import pytest

from audited_runs import MakeRun
from laplaceconfidence.review.store import DecisionStore, read_decisions
from review_server import Server

pytest.importorskip("fastapi")
httpx = pytest.importorskip("httpx")

ROWS = range(12)  # few, so that they meet


class Reviewer(threading.Thread):
    """Decides on single samples, on many and on whole pairs, as fast as it can, until nobody answers."""

    def __init__(self, url: str, who: str, pair: dict[str, int]) -> None:
        super().__init__()
        self.url, self.who, self.pair = url, who, pair
        self.stored: list[tuple[int, int]] = []  # rows and versions that the server confirmed
        self.n_batches = self.n_refused = 0
        self.unexpected: list[str] = []

    def run(self) -> None:
        rng = random.Random(self.who)
        with httpx.Client(base_url=self.url, timeout=10) as client:
            try:
                client.get("/")
                while True:
                    kind = rng.choice(["one", "one", "many", "pair"])
                    {"one": self.decide_one, "many": self.decide_many, "pair": self.accept}[kind](client, rng)
            except httpx.TransportError:
                return

    def decide_one(self, client: "httpx.Client", rng: random.Random) -> None:
        tile = rng.choice(self.tiles(client))
        body = {"row": tile["row"], "version": tile["version"], "verdict": "keep", "who": self.who}
        if self.was_stored(client.post("/api/decisions", json=body)):
            self.stored.append((tile["row"], tile["version"] + 1))

    def decide_many(self, client: "httpx.Client", rng: random.Random) -> None:
        seen = [(tile["row"], tile["version"]) for tile in rng.sample(self.tiles(client), 3)]
        body = {"rows": seen, "verdict": "none", "who": self.who}
        if self.was_stored(client.post("/api/decisions/many", json=body)):
            self.stored += [(row, version + 1) for row, version in seen]
            self.n_batches += 1

    def accept(self, client: "httpx.Client", rng: random.Random) -> None:
        preview = client.get("/api/bulk", params=self.pair | {"min_probability": 0.2}).json()
        if preview["n"] == 0:
            client.post("/api/undo", json={"who": self.who})
            return
        body = self.pair | {"min_probability": 0.2, "fingerprint": preview["fingerprint"], "who": self.who}
        if self.was_stored(client.post("/api/bulk", json=body)):
            self.stored += [(tile["row"], tile["version"] + 1) for tile in preview["tiles"]]

    def tiles(self, client: "httpx.Client") -> list[dict[str, int]]:
        tiles = client.post("/api/grid", json={"show": "all", "view": "random"}).json()["tiles"]
        return [tile for tile in tiles if tile["row"] in ROWS]

    def was_stored(self, answer: "httpx.Response") -> bool:
        self.n_refused += answer.status_code == 409
        if answer.status_code not in (200, 409):
            self.unexpected.append(answer.text)
        return answer.status_code == 200


def test_everything_confirmed_is_stored_once_and_survives_the_kill(make_run: MakeRun) -> None:
    run = make_run()
    server = Server(run)
    try:
        pairs = httpx.Client(base_url=server.url)
        pairs.get("/")
        first = pairs.get("/api/pairs").json()[0]
        pair = {"given": first["given"], "suggested": first["suggested"]}
        reviewers = [Reviewer(server.url, who, pair) for who in ("ann", "bob")]
        for reviewer in reviewers:
            reviewer.start()
        end = time.monotonic() + 60
        while min(len(reviewer.stored) for reviewer in reviewers) < 30 and time.monotonic() < end:
            time.sleep(0.05)
    finally:
        server.kill()
    for reviewer in reviewers:
        reviewer.join(30)
    assert [reviewer.unexpected for reviewer in reviewers] == [[], []]
    confirmed = [(*decision, reviewer.who) for reviewer in reviewers for decision in reviewer.stored]
    assert max(Counter(decision[:2] for decision in confirmed).values()) == 1  # nothing was overwritten
    store = DecisionStore(run.folder, run.record)
    entries = [(entry["row"], entry["version"], entry["who"]) for entry in store.log()]
    store.close()
    assert set(confirmed) <= set(entries)
    assert max(Counter(entry[:2] for entry in entries).values()) == 1
    latest = {row: version for row, version, _ in entries}
    assert {decision.row: decision.version for decision in read_decisions(run.folder, run.record)} == latest
