"""What a lab that is down will offer when it is up, as far as files and the machine's kernel tell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from samovar.lab.kernel import LINKS, KernelNeeds, choose_kernel, machine_lacks
from samovar.lab.usermode import DEBIAN_USER_MODE, UserModeConfig

IN_EVERY_KERNEL = frozenset({"reno", "pfifo", "bfifo", "pfifo_fast"})
"""What is no module: Linux builds it in (net/ipv4/tcp_cong.c, net/sched/sch_fifo.c)."""


def predict_missing(
    wanted: str, needs: KernelNeeds, user_mode: UserModeConfig = DEBIAN_USER_MODE
) -> Mapping[str, str]:
    """Name what of the needs the lab's kernel will lack, each with why; raises LabError as `up` would."""
    if choose_kernel(wanted, needs) == "native":
        return dict.fromkeys(machine_lacks(needs), "the machine's own kernel does not offer it")
    return dict(_without_module(needs, user_mode.modules))


def _without_module(needs: KernelNeeds, modules: Path) -> Iterator[tuple[str, str]]:
    files = {f"tcp_{name}": name for name in sorted(needs.congestion_controls - IN_EVERY_KERNEL)}
    features = sorted(needs.qdiscs - IN_EVERY_KERNEL)
    files |= {name if name in LINKS else f"sch_{name}": name for name in features}
    there = modules_of(modules)
    for module, name in files.items():
        if module not in there:
            yield name, f"no module {module} below {modules}"


def modules_of(folder: Path) -> frozenset[str]:
    """Name the modules that kernels below a folder have: files and what is built in (depmod(8))."""
    listed = [
        line.partition(":")[0]
        for name in ("modules.dep", "modules.builtin")
        for file in folder.glob(f"*/{name}")
        for line in file.read_text(encoding="utf-8").splitlines()
    ]
    return frozenset(Path(one).name.partition(".")[0] for one in listed)
