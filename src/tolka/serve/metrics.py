"""Counts of a server, as Prometheus reads them (text exposition format 0.0.4)."""

from collections import Counter
from collections.abc import Mapping

_SECONDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)  # upper bounds of the histogram


class Metrics:
    """Counts requests, and the seconds that they took; `texts` and `characters` were translated."""

    def __init__(self) -> None:
        self.texts = self.characters = self.reloads = 0
        self._requests = Counter[tuple[str, int]]()
        self._slower = Counter[float]()  # requests, by the bounds that they took no longer than
        self._seconds = 0.0

    def count(self, path: str, status: int, seconds: float) -> None:
        """Count a request. path: of its route. status: of the answer."""
        self._requests[path, status] += 1
        self._seconds += seconds
        self._slower.update(bound for bound in _SECONDS if seconds <= bound)

    def exposition(self, gauges: Mapping[str, float]) -> str:
        """Return the text of /metrics. gauges: name -> value, of what goes up and down."""
        total = self._requests.total()
        name = "tolka_request_seconds"
        lines = [
            "# TYPE tolka_requests_total counter",
            *(f'tolka_requests_total{{path="{p}",status="{s}"}} {n}' for (p, s), n in sorted(self._requests.items())),
            f"# TYPE {name} histogram",
            *(f'{name}_bucket{{le="{bound}"}} {self._slower[bound]}' for bound in _SECONDS),
            f'{name}_bucket{{le="+Inf"}} {total}',
            f"{name}_sum {self._seconds:.6f}",
            f"{name}_count {total}",
        ]
        for key in ("texts", "characters", "reloads"):
            lines += [f"# TYPE tolka_{key}_total counter", f"tolka_{key}_total {getattr(self, key)}"]
        for key, value in gauges.items():
            lines += [f"# TYPE {key} gauge", f"{key} {value}"]
        return "\n".join(lines) + "\n"
