"""Which stage is running: a moving line on a terminal, plain lines elsewhere; both on standard error."""

from __future__ import annotations

import sys
import time
from types import TracebackType

from rich.console import Console
from rich.status import Status


class Progress:
    """A context in which `stage(name)` says that a stage begins; `timings` holds the seconds of each."""

    def __init__(self) -> None:
        self.timings: dict[str, float] = {}
        self._current: tuple[str, float] | None = None
        self._console = Console(file=sys.stderr)
        self._status: Status | None = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._finish("[green]✓[/green]" if kind is None else "[red]✗[/red]")
        if self._status is not None:
            self._status.stop()

    def stage(self, name: str) -> None:
        """A stage begins, the one before it is over."""
        self._finish("[green]✓[/green]")
        self._current = (name, time.perf_counter())
        if not self._console.is_terminal:
            self._console.print(f"{name} …", highlight=False)
        elif self._status is None:
            self._status = self._console.status(f"{name} …")
            self._status.start()
        else:
            self._status.update(f"{name} …")

    def table(self) -> str:
        """The seconds of each stage that is over, in order, and their sum."""
        rows = [*self.timings.items(), ("total", sum(self.timings.values()))]
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:{width}} {seconds:8.2f} s" for name, seconds in rows)

    def _finish(self, sign: str) -> None:
        if self._current is None:
            return
        name, start = self._current
        self.timings[name] = self.timings.get(name, 0.0) + time.perf_counter() - start
        self._current = None
        if self._console.is_terminal:
            self._console.print(f"{sign} {name} {self.timings[name]:.2f} s", highlight=False)
