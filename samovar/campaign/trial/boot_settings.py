"""Settings that last over trials: what takes a reboot is set before a plot and put back after it.

A recipe whose change is `reboot` prints for each KEY that is in force a `planned.KEY`: what it will be after
the next reboot. Where that is as it should be and KEY is not, a reboot is due.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from samovar.campaign.availability import Reboots
from samovar.campaign.context import CampaignContext
from samovar.campaign.host_state import Difference, changed, parse_state, unmet
from samovar.campaign.journal import SavedState
from samovar.errors import TestbedError
from samovar.recipes import TrialScripts

PLANNED = "planned."
State = Mapping[str, str]


class BootSettings:
    """What lasts on the hosts of a campaign; `scripts_of` gives the scripts of a trial by its id."""

    def __init__(
        self, context: CampaignContext, reboots: Reboots, scripts_of: Callable[[str], TrialScripts]
    ) -> None:
        self._context, self._reboots, self._scripts_of = context, reboots, scripts_of
        self._reads: dict[str, list[SavedState]] = {}

    @property
    def hosts(self) -> tuple[str, ...]:
        """Name the hosts where something lasts that is to be put back."""
        return tuple(self._reads)

    def adopt(self, reads: Iterable[SavedState]) -> None:
        """Take over what an earlier controller has set and not put back, oldest first."""
        for read in reads:
            self._reads.setdefault(read.host, []).append(read)

    def forget(self, host: str) -> None:
        """Leave a host as it is that is not used any more: the journal has what is to be put back there."""
        self._reads.pop(host, None)

    def concerns(self, scripts: TrialScripts) -> bool:
        """Tell whether anything lasts before or in a trial."""
        return bool(self._reads) or any(self._takes(scripts, host) for host in scripts.resolved.hosts)

    def prepare(self, scripts: TrialScripts) -> None:
        """Have what a trial wants to last in force on every host, and put back what it does not want.

        Hosts that need a reboot for it are rebooted, once and together. Raises TestbedError.
        """
        takes = [host for host in scripts.resolved.hosts if self._takes(scripts, host)]
        leaves = [host for host in self._reads if host not in takes]
        due = [host for host in takes if self._set(scripts, host)]
        due += [host for host in leaves if self._put_back(host)]
        if not due:
            return
        self._reboots.run(scripts.reboot, due)
        for host in due:
            if host in takes:
                self._check(scripts, host)
            else:
                self._prove(host)

    def restore(self) -> None:
        """Put back all that lasts, with the reboots that it takes. Raises TestbedError."""
        due = [host for host in self.hosts if self._put_back(host)]
        if due:
            self._reboots.run(lambda host: self._scripts_of(self._reads[host][0].id).reboot(host), due)
        for host in due:
            self._prove(host)

    def on_loss(self, host: str) -> str:
        """Give the text that puts back what lasts on a host, for the loss of its controller."""
        reads = reversed(self._reads.get(host, ()))
        return "".join(self._scripts_of(read.id).restore_body(host, read.state, True) for read in reads)

    def _takes(self, scripts: TrialScripts, host: str) -> bool:
        return bool(scripts.settings(host, True))

    def _set(self, scripts: TrialScripts, host: str) -> bool:
        """Set what is to last on a host; return whether a reboot is due."""
        state = self._run(host, "read lasting", scripts.read(host, True))
        wanted = scripts.wanted(host, True)
        if not unmet(wanted, state):
            return False
        if self._reads.get(host):
            self._undo(host)
            state = self._run(host, "read lasting", scripts.read(host, True))
        read = SavedState(scripts.trial.id, host, state, True)
        self._context.note("state-read", id=read.id, host=host, state=dict(state), lasting=True)
        self._reads.setdefault(host, []).append(read)
        state = self._run(host, "set lasting", scripts.set(host, state, True))
        missing = unmet(wanted, state)
        met = {line.partition("=")[0].rstrip("*") for line in wanted} - {
            difference.key for difference in missing
        }
        not_due = [d for d in missing if PLANNED + d.key not in met]
        if not_due:
            raise TestbedError(_words(host, "cannot be set", not_due))
        return bool(missing)

    def _check(self, scripts: TrialScripts, host: str) -> None:
        state = self._run(host, "read lasting", scripts.read(host, True))
        missing = unmet(scripts.wanted(host, True), state)
        if missing:
            raise TestbedError(_words(host, "is not in force after a reboot", missing))

    def _put_back(self, host: str) -> bool:
        """Put back what lasts on a host; return whether it takes a reboot to be in force."""
        after = self._undo(host)
        before = self._before(host)
        differences = changed(before, after)
        not_due = [d for d in differences if before.get(PLANNED + d.key) is None]
        not_due += [d for d in differences if d.key.startswith(PLANNED)]
        if not_due:
            self._fail(host, not_due)
        if not differences:
            self._restored(host)
        return bool(differences)

    def _undo(self, host: str) -> State:
        """Put back what each plot has changed, the newest first; return what is read then."""
        after: dict[str, str] = {}
        for read in reversed(self._reads[host]):
            script = self._scripts_of(read.id).restore_lasting(host, read.state)
            after |= self._run(host, "restore lasting", script)
        return after

    def _before(self, host: str) -> dict[str, str]:
        """Return the state from before the first plot that touched each key."""
        state: dict[str, str] = {}
        for read in reversed(self._reads[host]):
            state |= read.state
        return state

    def _prove(self, host: str) -> None:
        """Compare a host that was rebooted with what it was like before any plot."""
        after: dict[str, str] = {}
        for read in self._reads[host]:
            after |= self._run(host, "read lasting", self._scripts_of(read.id).read(host, True))
        differences = changed(self._before(host), after)
        if differences:
            self._fail(host, differences)
        self._restored(host)

    def _restored(self, host: str) -> None:
        reads = self._reads.pop(host)
        self._context.note("state-restored", id=reads[0].id, host=host, lasting=True)

    def _fail(self, host: str, differences: Sequence[Difference]) -> None:
        words = [str(difference) for difference in differences]
        id_ = self._reads[host][0].id
        self._context.note("restore-failed", id=id_, host=host, differences=words, lasting=True)
        raise TestbedError(_words(host, f"cannot be put back as before trial {id_}", differences))

    def _run(self, host: str, step: str, script: str) -> dict[str, str]:
        session = self._context.sessions[host]
        return parse_state(
            session.run(script, step=step, deadline_s=self._context.policy.step_timeout_s).text
        )


def _words(host: str, what: str, differences: Iterable[Difference]) -> str:
    return f"{host}: what takes a reboot {what}:\n" + "\n".join(map(str, differences))
