"""The review page as a web application."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse
from fastapi.staticfiles import StaticFiles
from jinja2 import Environment, PackageLoader, select_autoescape
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from laplaceconfidence.arrays import IntArray
from laplaceconfidence.auditing.statement import EVIDENCE_ALONE
from laplaceconfidence.data.picture_encoding import EncodedPicture
from laplaceconfidence.exceptions import InvalidInputError, RunFolderError
from laplaceconfidence.records.thumbnails import Thumbnails
from laplaceconfidence.review.decisions import subject_of
from laplaceconfidence.review.describe import Describer
from laplaceconfidence.review.guard import Access, Guard
from laplaceconfidence.review.picture_prefetcher import PicturePrefetcher
from laplaceconfidence.review.queues import QueueFilter, QueueName, Show
from laplaceconfidence.review.session import ReviewSession
from laplaceconfidence.review.store_errors import (
    BusyStoreError,
    DiskFullError,
    StaleDecisionError,
    StoreGoneError,
)

TILES_ON_A_PAGE = 50
TILES_IN_A_PREVIEW = 24
MOST_PAIRS = 500
PICTURES_AHEAD = 3
SIZES = {"tile": 160, "large": 640}  # pixels of the longer side
_HERE = Path(__file__).parent

RowAndVersion = Annotated[list[int], Field(min_length=2, max_length=2)]
Who = Annotated[str, Field(min_length=1, max_length=80)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class QueueRequest(_Strict):
    """Which samples the reviewer is looking at."""

    view: QueueName = "worst"
    given: int | None = None
    suggested: int | None = None
    search: Annotated[str, Field(max_length=500)] = ""
    show: Show = "undecided"

    def filter(self) -> QueueFilter:
        """Return the filter of the queue.

        Returns
        -------
        QueueFilter
        """
        return QueueFilter(self.view, self.given, self.suggested, self.search, self.show)


class DecisionRequest(_Strict):
    """A verdict on one sample; ``version`` is that of the decision that the reviewer saw."""

    row: int
    verdict: str
    label: int | None = None
    version: int
    who: Who
    queue: QueueRequest = QueueRequest()


class ManyRequest(_Strict):
    """The same verdict on several samples of the grid, each with the version that the reviewer saw."""

    rows: Annotated[list[RowAndVersion], Field(min_length=1, max_length=TILES_ON_A_PAGE)]
    verdict: str
    who: Who
    queue: QueueRequest = QueueRequest()


class UndoRequest(_Strict):
    """Undo the last step of a reviewer."""

    who: Who
    queue: QueueRequest = QueueRequest()


class CopiesRequest(_Strict):
    """A verdict on all copies of a set, which ``fingerprint`` identifies; ``kept`` is for "keep-one" only."""

    row: int
    verdict: str
    kept: int | None = None
    fingerprint: str
    who: Who
    queue: QueueRequest = QueueRequest(view="copies")


class BulkRequest(_Strict):
    """Accept all suggestions of a preview, which ``fingerprint`` identifies."""

    given: int
    suggested: int
    min_probability: float = Field(ge=0, le=1)
    fingerprint: str
    who: Who


def create_app(session: ReviewSession, access: Access, *, reviewer: str) -> Guard:
    """Build the web application: the page, its API, and the access checks in front of them.

    Parameters
    ----------
    session : ReviewSession
        The review.
    access : Access
        Where the page is served, and its token.
    reviewer : str
        Name of the reviewer that the page suggests.

    Returns
    -------
    Guard
        An ASGI application.
    """
    app = FastAPI(title="LaplaceConfidence review", docs_url=None, redoc_url=None, openapi_url=None)
    samples = session.samples
    thumbnails = Thumbnails(samples)
    describer = Describer(session, thumbnails)
    prefetcher = PicturePrefetcher(lambda row: thumbnails.of(row, SIZES["large"]))
    not_shown = thumbnails.not_shown()
    templates = Environment(
        loader=PackageLoader("laplaceconfidence.review"), autoescape=select_autoescape(default=True)
    )
    app.mount("/static", StaticFiles(directory=_HERE / "static"))
    _report_errors(app, describer, session)

    def prefetch(rows: IntArray) -> None:
        if thumbnails.are_pictures:
            prefetcher.prefetch(rows[:PICTURES_AHEAD].tolist())

    views = _views(session)

    # Load tables and pictures before the first request, so that the reviewer does not wait for them.
    prefetch(session.queues.rows_of[views[0][0]])
    describer.sample(0, None)

    def shown(filter: QueueFilter, row: int | None) -> dict[str, Any]:
        """A sample with its position in the queue, and how far the review is."""
        progress = session.progress()
        rows = session.queues.rows(filter, session.is_decided(filter.view))
        described = None
        if row is not None and filter.view == "copies":
            described = describer.copies(row)
            row = described["row"]
        elif row is not None:
            described = describer.sample(row, progress.calibration, subject_of(filter.view))
        position = None
        if row is not None and len(at := (rows == row).nonzero()[0]):
            position = int(at[0]) + 1
        prefetch(rows[position or 0 :])
        return {
            "sample": described,
            "position": position,
            "n_in_queue": len(rows),
            "progress": describer.progress(progress),
        }

    def next_row(filter: QueueFilter, after: int | None, direction: int = 1) -> int | None:
        return session.queues.step(filter, session.is_decided(filter.view), after, direction)

    @app.get("/")
    def page() -> HTMLResponse:
        record = samples.run.record
        html = templates.get_template("page.html").render(
            folder=samples.run.folder.absolute().name,
            statement=record.statement,
            evidence_alone=EVIDENCE_ALONE if record.suggests_by_evidence_alone else None,
            views=views,
        )
        return HTMLResponse(html, headers={"Cache-Control": "no-store"})

    @app.get("/api/setup")
    def setup() -> dict[str, Any]:
        return {
            "classes": list(samples.class_names),
            "reviewer": reviewer,
            "n_lost_pictures": not_shown.n_lost,
            "n_outside_pictures": not_shown.n_outside,
        }

    @app.post("/api/next")
    def following(
        queue: QueueRequest, after: int | None = None, direction: Annotated[int, Query(ge=-1, le=1)] = 1
    ) -> dict[str, Any]:
        filter = queue.filter()
        return shown(filter, next_row(filter, after, direction))

    @app.post("/api/sample/{row}")
    def sample(row: int, queue: QueueRequest) -> dict[str, Any]:
        return shown(queue.filter(), session.check_row(row))

    @app.get("/api/text/{row}")
    def text(row: int, start: Annotated[int, Query(ge=0)] = 0) -> dict[str, Any]:
        return {"text": describer.text_from(session.check_row(row), start)}

    @app.post("/api/grid")
    def grid(queue: QueueRequest, page: Annotated[int, Query(ge=0)] = 0) -> dict[str, Any]:
        filter = queue.filter()
        rows = session.queues.rows(filter, session.is_decided(filter.view))
        part = rows[page * TILES_ON_A_PAGE : (page + 1) * TILES_ON_A_PAGE]
        return {
            "tiles": [describer.tile(int(row), subject=subject_of(filter.view)) for row in part],
            "n_in_queue": len(rows),
            "n_pages": -(-len(rows) // TILES_ON_A_PAGE),
            "progress": describer.progress(session.progress()),
        }

    @app.get("/api/pairs")
    def pairs(view: QueueName = "worst") -> list[dict[str, Any]]:
        return [
            {"given": given, "suggested": suggested, "n": n, "n_left": left}
            for given, suggested, n, left in session.queues.pairs(view, session.is_decided(view), MOST_PAIRS)
        ]

    @app.post("/api/decisions")
    def decide(request: DecisionRequest) -> dict[str, Any]:
        session.decide(
            request.row,
            request.verdict,
            label=request.label,
            expected_version=request.version,
            who=request.who,
            queue=request.queue.view,
        )
        filter = request.queue.filter()
        stored = describer.tile(request.row, subject=subject_of(filter.view))
        return {"stored": stored, **shown(filter, next_row(filter, request.row))}

    @app.post("/api/decisions/many")
    def decide_many(request: ManyRequest) -> dict[str, Any]:
        rows = [(row, version) for row, version in request.rows]
        made = session.decide_many(rows, request.verdict, who=request.who, queue=request.queue.view)
        return {
            "stored": [describer.tile(decision.row, subject=decision.subject) for decision in made],
            "progress": describer.progress(session.progress()),
        }

    @app.post("/api/copies")
    def decide_copies(request: CopiesRequest) -> dict[str, Any]:
        made = session.decide_copies(
            request.row,
            request.verdict,
            kept=request.kept,
            fingerprint=request.fingerprint,
            who=request.who,
        )
        filter = request.queue.filter()
        first = made[0].row  # stands for all of them in the queue
        return {"n_stored": len(made), **shown(filter, next_row(filter, first))}

    @app.post("/api/undo")
    def undo(request: UndoRequest) -> dict[str, Any]:
        undone, filter = session.undo(who=request.who), request.queue.filter()
        subject = undone[0].subject if undone else None
        is_one = len(undone) == 1 or subject == "copies"
        row = undone[0].row if is_one and subject == subject_of(filter.view) else None
        return {"n_undone": len(undone), "subject": subject, **shown(filter, row)}

    @app.get("/api/bulk")
    def preview(
        given: int, suggested: int, min_probability: Annotated[float, Query(ge=0, le=1)]
    ) -> dict[str, Any]:
        bulk = session.bulk(given, suggested, min_probability)
        surest = session.bulk(given, suggested, 0).rows[:1]
        return {
            "n": len(bulk.rows),
            "surest": float(samples.probability[surest[0]]) if len(surest) else None,
            "fingerprint": bulk.fingerprint,
            "tiles": [describer.tile(int(row)) for row in bulk.rows[:TILES_IN_A_PREVIEW]],
        }

    @app.post("/api/bulk")
    def accept(request: BulkRequest) -> JSONResponse:
        bulk = session.bulk(request.given, request.suggested, request.min_probability)
        if bulk.fingerprint != request.fingerprint:
            message = "Some of these samples were decided in the meantime. Nothing was stored: check again."
            return JSONResponse({"message": message}, status_code=409)
        made = session.accept_bulk(bulk, who=request.who)
        return JSONResponse({"n_stored": len(made), "progress": describer.progress(session.progress())})

    @app.get("/picture/{size}/{row}")
    def picture(size: str, row: int) -> Response:
        found = thumbnails.of(session.check_row(row), SIZES[size]) if size in SIZES else None
        return _picture_response(found)

    @app.get("/test_picture/{size}/{row}")
    def test_picture(size: str, row: int) -> Response:
        found = thumbnails.of_test_sample(session.check_row(row), SIZES[size]) if size in SIZES else None
        return _picture_response(found)

    return Guard(app, access)


def _views(session: ReviewSession) -> list[tuple[QueueName, str]]:
    """The queues that have samples, with their names on the page, the recommended one first."""
    rows_of = session.queues.rows_of
    names: dict[QueueName, str] = {
        "worst": "Suspects",
        "ranked": "By rank",
        "disputed": "Disputed",
        "random": "Random sample",
        "uncertain": "Uncertain",
        "unlabeled": "Unlabeled",
        "outliers": "Outliers",
        "copies": "Copies",
        "leaks": "Leaks",
        "images": "Odd images",
        "empty": "Empty texts",
        "missing": "Missing values",
        "groups": "Worst groups",
        "rare": "Rare classes",
        "order": "Row order",
    }
    order = list(names)
    if len(rows_of["ranked"]) == len(rows_of["worst"]):
        order.remove("ranked")  # all of them are flagged
    if len(rows_of["disputed"]):  # the consensus is least certain there
        order.insert(0, order.pop(order.index("disputed")))
    if session.samples.run.record.statement.verifying is not None:
        order.insert(0, order.pop(order.index("random")))
    return [(name, names[name]) for name in order if name == "random" or len(rows_of[name])]


def _picture_response(picture: EncodedPicture | None) -> Response:
    if picture is None:
        return Response(status_code=404)
    headers = {"Cache-Control": "private, max-age=3600"}
    return Response(picture.content, media_type=picture.media_type, headers=headers)


def _report_errors(app: FastAPI, describer: Describer, session: ReviewSession) -> None:
    """Turn our own errors into responses that the page can show."""

    def response(status: int) -> Callable[[Request, Exception], JSONResponse]:
        return lambda _, error: JSONResponse({"message": str(error)}, status_code=status)

    def stale(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, StaleDecisionError)
        sample = describer.sample(error.current.row, session.progress().calibration)
        return JSONResponse({"message": str(error), "sample": sample}, status_code=409)

    def invalid(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)
        # The values are left out: not everything that JSON can express can be encoded again.
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        text = f"The request is not valid: {where}: {first['msg']}."
        return JSONResponse({"message": text.encode("utf-8", "replace").decode()}, status_code=422)

    def refused(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HTTPException)
        text = "The request is not valid JSON." if error.status_code == 400 else error.detail
        return JSONResponse({"message": text}, status_code=error.status_code, headers=error.headers)

    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, refused)
    app.add_exception_handler(InvalidInputError, response(422))
    app.add_exception_handler(BusyStoreError, response(503))
    app.add_exception_handler(DiskFullError, response(507))
    app.add_exception_handler(StoreGoneError, response(410))
    app.add_exception_handler(RunFolderError, response(500))
    app.add_exception_handler(StaleDecisionError, stale)
