"""The link state of switches' interfaces on this machine, which IncAgents report."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping

from p4gen.errors import P4genError
from p4gen.packetio import link_is_up

__all__ = ["LinkMonitor", "link_is_up"]

LOGGER = logging.getLogger("p4gen.manager")
INTERVAL_S = 0.1


class LinkMonitor:
    """A thread that checks the interfaces of all switches every ``interval_s`` seconds.

    ``changed`` is called, in that thread, with a switch's name and its ports whose link has changed, True for up. A
    port counts as up until the first check. When ``changed`` raises an error, it is logged, once until it succeeds for
    that switch, and the change is reported again after the next check.
    """

    def __init__(self, changed: Callable[[str, Mapping[int, bool]], None], interval_s: float = INTERVAL_S) -> None:
        self._changed = changed
        self._interval_s = interval_s
        self._lock = threading.Lock()
        self._switches: dict[str, tuple[Mapping[int, str], dict[int, bool]]] = {}
        self._failed: set[str] = set()
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None

    def watch(self, switch: str, interfaces: Mapping[int, str]) -> None:
        """Watch a switch's interfaces, by port, instead of those given before. All count as up at first."""
        with self._lock:
            self._switches[switch] = (dict(interfaces), dict.fromkeys(interfaces, True))
            if self._thread is None and interfaces:
                self._thread = threading.Thread(target=self._run, name="links", daemon=True)
                self._thread.start()

    def forget(self, switch: str) -> None:
        """Stop watching the interfaces of a switch."""
        with self._lock:
            self._switches.pop(switch, None)

    def close(self) -> None:
        """Stop watching. Waits for a report in progress, unless it is called from there."""
        self._ending.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        while True:
            with self._lock:
                switches = list(self._switches.items())
            for name, (interfaces, known) in switches:
                if self._ending.is_set():
                    return
                self._look(name, interfaces, known)
            if self._ending.wait(self._interval_s):
                return

    def _look(self, name: str, interfaces: Mapping[int, str], known: dict[int, bool]) -> None:
        seen = {port: link_is_up(interface) for port, interface in interfaces.items()}
        news = {port: up for port, up in seen.items() if up is not known[port]}
        if not news:
            return
        if name not in self._failed:
            changes = (f"port {port} ({interfaces[port]}) is {'up' if up else 'down'}" for port, up in news.items())
            LOGGER.info("%s: %s", name, ", ".join(changes))
        try:
            self._changed(name, news)
        except Exception as error:
            if name not in self._failed:
                self._failed.add(name)
                expected = isinstance(error, P4genError)
                LOGGER.warning("%s: its link-state report is refused: %s", name, error, exc_info=not expected)
        else:
            self._failed.discard(name)
            known.update(news)
