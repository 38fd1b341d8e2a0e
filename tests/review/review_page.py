from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from starlette.testclient import TestClient

from laplaceconfidence.review.guard import Access
from laplaceconfidence.review.session import ReviewSession

PORT = 8421
HOST = f"127.0.0.1:{PORT}"
QUEUE = {"view": "worst", "given": None, "suggested": None, "search": "", "show": "undecided"}


@dataclass
class Page:
    """A browser that has opened the review page, as far as tests need one."""

    client: TestClient
    session: ReviewSession
    access: Access

    def next(self, **queue: Any) -> dict[str, Any]:
        return self.client.post("/api/next", json=QUEUE | queue).json()

    def decide(self, sample: dict[str, Any], verdict: str, **more: Any) -> Any:
        body = {"row": sample["row"], "verdict": verdict, "version": sample["version"], "who": "ann"}
        return self.client.post("/api/decisions", json=body | {"queue": QUEUE} | more)

    def undo(self, who: str = "ann") -> Any:
        return self.client.post("/api/undo", json={"who": who, "queue": QUEUE})


OpenPage = Callable[..., Page]
