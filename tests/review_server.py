"""The command ``review`` as a process of its own, for tests that kill it."""

import os
import re
import signal
import subprocess
import sys

from laplaceconfidence.records import AuditRun


class Server:
    """A running review server."""

    def __init__(self, run: AuditRun, port: int = 0) -> None:
        command = [sys.executable, "-m", "laplaceconfidence", "review", str(run.folder), "--no-browser"]
        self.process = subprocess.Popen(
            [*command, "--port", str(port), "--reviewer", "ann"],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "COLUMNS": "300"},
        )
        assert self.process.stdout is not None
        found = next(m for line in self.process.stdout if (m := re.search(r"http://[\d.]+:(\d+)/", line)))
        self.url, self.port = found[0], int(found[1])

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(10)
