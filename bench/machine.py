"""The machine that rows are measured on: its description, and whether other processes used it during a run."""

import os
import platform
import subprocess

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
# Kernel ticks are coarse: this many foreign ticks or fewer count as none, whatever the run's length.
TICKS_OF_NOISE = 2
FOREIGN_SHARE_ALLOWED = 0.03


def cpus():
    """Numbers of the CPUs that this process may use."""
    return sorted(os.sched_getaffinity(0))


def describe():
    """The description of the machine that is printed and recorded with the figures."""
    return {"cpu": _cpu_name(), "cpus": len(cpus()), "system": platform.system() + " " + platform.release()}


def _cpu_name():
    """Name, family and model. The name is not enough: hypervisors give many CPUs the same one."""
    fields = {}
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as lines:
            for line in lines:
                key, _, value = line.partition(":")
                fields.setdefault(key.strip(), value.strip())
    except OSError:
        pass
    name = fields.get("model name") or fields.get("Hardware") or platform.machine()
    return f"{name}, family {fields['cpu family']}, model {fields['model']}" if {"cpu family", "model"} <= fields.keys() else name


def busy_ticks():
    """Ticks since boot that all CPUs together were not idle, stolen time included; None if unknown."""
    try:
        with open("/proc/stat", encoding="ascii") as lines:
            fields = [int(field) for field in lines.readline().split()[1:]]
    except (OSError, ValueError):
        return None
    user, nice, system, _idle, _wait, irq, softirq, steal = (fields + [0] * 8)[:8]
    return user + nice + system + irq + softirq + steal


def foreign_share(busy_before, busy_after, own_seconds, wall_seconds):
    """Share of the machine's CPU time that other processes used during a run; 0 if it is within the noise."""
    if busy_before is None or busy_after is None or wall_seconds <= 0:
        return 0.0
    foreign = busy_after - busy_before - own_seconds * TICKS_PER_SECOND
    if foreign <= TICKS_OF_NOISE:
        return 0.0
    return foreign / (wall_seconds * TICKS_PER_SECOND * (os.cpu_count() or 1))


def is_disturbed(share):
    return share > FOREIGN_SHARE_ALLOWED


def core_distance_ns(probe):
    """Current round trip between two cores, from the probe program; None if there is one core or no probe."""
    try:
        text = subprocess.run([probe], capture_output=True, text=True, timeout=60, check=True).stdout
        return int(text) or None
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
