"""How a profile of torch's is shown: operations by their own time."""

from torch.profiler import profile

SHOWN = 25


def show(found: profile, count: int, unit: str) -> None:
    """Share, calls, and milliseconds a unit, of which there were `count`."""
    events = sorted(found.key_averages(), key=lambda event: -event.self_cpu_time_total)
    total = sum(event.self_cpu_time_total for event in events)
    print(f"{total / 1e6:.2f} s in operations")
    print(f"{'operation':<58} {'share':>6} {'calls':>7} {'ms ' + unit:>16}")
    for event in events[:SHOWN]:
        share, each = event.self_cpu_time_total / total, event.self_cpu_time_total / count / 1000
        print(f"{event.key[:58]:<58} {share:6.1%} {event.count:>7} {each:16.2f}")
