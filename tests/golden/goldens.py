"""Golden outputs of the commands that need no lab: made here, compared by tests/unit/test_golden_commands.py.

`commands/values/` has the output for machines: plans, trials, scripts. It must not change. `commands/text/` has the
output for people. If wording was changed on purpose, run regenerate.py and read the difference.
"""

from __future__ import annotations

import ast
import difflib
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
COMMANDS = HERE / "commands"
LINKED = ("samovar", "templates", "analysis", "tests")
COPIED = ("experiments", "hosts", "docs", "config.yaml", "fabfile.py")
ELSEWHERE = (
    ("tplink-buffer", "example-linux"),
    ("all-freebsd", "example-freebsd"),
    ("all-freebsd", "example-freebsd-11"),
)
"""Experiments that are also planned for real machines, which no test connects to."""
ALL_TRAFFIC = "all-traffic"
"""The experiment in commands/experiments/ for a lab; the experiments there use recipes that no shipped experiment uses."""
WORDS = ("title", "source", "description", "warnings")
"""Keys of a plan whose values are texts for people."""
OF_THIS_MACHINE = ("campaign", "refused", "cannot_run", "not_asked", "possible")
"""Keys of `fab plan --json` that depend on the machine or on earlier campaigns."""
MOST_LINES = 40
SCRIPTS = "-scripts.txt"
PROGRAMS = "**/program/*.*"
"""The pattern of the files below templates/ with programs that scripts contain."""
MOST_TRIALS, MANY_HOSTS = 6, 8
"""The number of trials whose scripts are rendered: only two for MANY_HOSTS hosts or more, since rendering takes long."""
SHOWN_PHASES = ("set", "expected state", "offer", "arm", "traffic", "stop", "finish", "reboot")
"""Phases whose scripts are stored as text for one trial; for all other phases and trials, digests are stored."""

Answer = Any


@dataclass(frozen=True)
class Case:
    """An experiment with a profile, or on another testbed than its own."""

    experiment: str
    profile: str = ""
    testbed: str = ""

    @property
    def name(self) -> str:
        """The name of the files of the case, without suffix."""
        profile = f"-{self.profile}" if self.profile else ""
        return f"{self.experiment}{profile}" + (f"-at-{self.testbed}" if self.testbed else "")

    @property
    def options(self) -> list[str]:
        """Return the options of `fab plan` and `fab explain`."""
        profile = ["--profile", self.profile] if self.profile else []
        return profile + (["--testbed", self.testbed] if self.testbed else [])


def cases() -> list[Case]:
    """Return every shipped experiment without a profile and with each of its profiles, then ALL_TRAFFIC and ELSEWHERE."""
    found = []
    for path in sorted((ROOT / "experiments").glob("*.yaml")):
        tree = yaml.safe_load(path.read_text())
        found += [Case(path.stem, profile) for profile in ("", *tree.get("profiles", {}))]
    return [
        *found,
        Case(ALL_TRAFFIC),
        *(Case(experiment, testbed=testbed) for experiment, testbed in ELSEWHERE),
    ]


def make_checkout(folder: Path) -> Path:
    """Make a checkout without results and without a running lab."""
    for name in LINKED:
        (folder / name).symlink_to(ROOT / name)
    for name in COPIED:
        source = ROOT / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, folder / name)
    for path in (COMMANDS / "experiments").glob("*.yaml"):
        shutil.copy(path, folder / "experiments")
    return folder


def environment() -> dict[str, str]:
    """Return an environment in which all commands have the same output on every machine."""
    own = {key: os.environ[key] for key in ("PATH", "R_LIBS", "HOME") if key in os.environ}
    return {**own, "LC_ALL": "C.UTF-8", "COLUMNS": "120", "TZ": "UTC", "PYTHONDONTWRITEBYTECODE": "1"}


def ask(checkout: Path, requests: Sequence[Sequence[str]]) -> list[Answer]:
    """Send requests to program.py, which describes them, and return its answers."""
    done = subprocess.run(
        [sys.executable, HERE / "program.py", checkout],
        input=json.dumps(requests),
        cwd=checkout,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"program.py failed: {done.stderr}")
    answers: list[Answer] = json.loads(done.stdout)
    return answers


def make_goldens(folder: Path) -> dict[str, str]:
    """Return the text of every golden file by its path below commands/; `folder` must be empty, and becomes a checkout."""
    checkout = make_checkout(folder)
    planned = cases()
    plans = ask(checkout, [request for case in planned for request in plan_requests(case)])
    each = [plans[start : start + 2] for start in range(0, len(plans), 2)]
    files: dict[str, str] = {}
    further: list[list[list[str]]] = []
    for case, (_, written) in zip(planned, each, strict=True):
        further.append(trial_requests(case, trials_of(written), hosts_of(written)))
    extra = [*program_requests(), *mistake_requests()]
    answers = iter(ask(checkout, [request for requests in further for request in requests] + extra))
    for case, (printed, written), requests in zip(planned, each, further, strict=True):
        pairs = [(request, next(answers)) for request in requests]
        files |= dict(files_of(case, printed, written, pairs))
    drop_repeated_scripts(files)
    files["text/program.txt"] = listing(checkout) + transcript(
        [(request, next(answers)) for request in program_requests()]
    )
    files["text/mistakes.txt"] = transcript([(request, next(answers)) for request in mistake_requests()])
    return files


def plan_requests(case: Case) -> list[list[str]]:
    """Return the requests for a plan as a command prints it, and as a campaign stores it."""
    written = ["plan", case.experiment, case.profile, case.testbed]
    if case.testbed:  # `fab plan` would try to connect to the testbed
        return [["fab", "explain", case.experiment, "cc", *case.options], written]
    return [["fab", "plan", case.experiment, "--json", *case.options], written]


def trials_of(written: str) -> list[str]:
    """Return the ids of a plan's trials, in order."""
    return [row[0] for row in json.loads(written)["trials"]]


def hosts_of(written: str) -> int:
    """Return the number of hosts of a plan's first treatment."""
    return sum(name.startswith("hosts.") for name in json.loads(written)["treatments"][0]["resolved"])


def trial_requests(case: Case, ids: Sequence[str], hosts: int) -> list[list[str]]:
    """Return the requests for texts and scripts of a planned experiment."""
    options, plan = case.options, ["fab", "plan", case.experiment]
    chosen = sample(ids, MOST_TRIALS if hosts < MANY_HOSTS else 2)
    scripts = [["scripts", case.experiment, case.profile, case.testbed, one] for one in chosen]
    if case.testbed:
        return [[*plan, "--trial", one, "--json", *options] for one in (ids[0], ids[-1])] + scripts
    explain = ["fab", "explain", case.experiment]
    texts = [[*plan, *options]]
    if not case.profile:
        keys = ("duration", "cc", "path.rate", "path.buffer", "traffic")
        texts += [[*explain, key] for key in keys]
        texts += [[*explain, "path.rate", "--trial", ids[0]], [*plan, "--trial", ids[-1]], [*plan, "--csv"]]
    return texts + scripts


def sample(ids: Sequence[str], most: int) -> list[str]:
    """Choose trials at even distances, the first and the last included."""
    count = min(most, len(ids))
    return [ids[round(n * (len(ids) - 1) / max(1, count - 1))] for n in range(count)]


def files_of(
    case: Case, printed: Answer, written: str, pairs: Sequence[tuple[list[str], Answer]]
) -> Iterator[tuple[str, str]]:
    """Yield the golden files of one case."""
    commands = [(request, answer) for request, answer in pairs if request[0] == "fab"]
    scripts = {request[-1]: answer for request, answer in pairs if request[0] == "scripts"}
    texts = [(request, answer) for request, answer in commands if not {"--csv", "--json"} & set(request)]
    values: dict[str, Any] = {"plan.json": digest(without_words(json.loads(written)))}
    values |= {request[-1]: digest(answer["stdout"]) for request, answer in commands if "--csv" in request}
    if case.testbed:
        full = [json.loads(answer["stdout"]) for request, answer in commands if "--json" in request]
        values |= {"ids": trials_of(written), "full": {trial["id"]: trial for trial in full}}
        texts = [(["fab", "explain", case.experiment, "cc", *case.options], printed)]
    else:
        values |= plan_values(json.loads(printed["stdout"]), (0,) if case.profile else (0, -1))
    values["scripts"] = {trial: script_digests(hosts) for trial, hosts in scripts.items()}
    yield f"values/{case.name}.json", json.dumps(values, indent=1, ensure_ascii=False) + "\n"
    raw = f"plan.json: sha256 {hashlib.sha256(written.encode()).hexdigest()}\n\n"
    yield f"text/{case.name}.txt", raw + transcript(texts)
    if not case.profile:
        trial, hosts = next(iter(scripts.items()))
        full = values["full"][trial]["resolved"]["hosts"]
        first = {full[host]["role"]: host for host in reversed(hosts)}
        shown = {host: hosts[host] for host in hosts if host in first.values()}
        yield f"text/{case.name}{SCRIPTS}", script_text(trial, shown)


def plan_values(plan: Mapping[str, Any], full: Sequence[int]) -> dict[str, Any]:
    """Return the values in the output of `fab plan --json`: some trials in full, and a digest of every trial."""
    trials = plan["trials"]
    rest = {key: value for key, value in plan.items() if key not in ("trials", *WORDS, *OF_THIS_MACHINE)}
    return {
        "plan": without_words(rest),
        "trials": {trial["id"]: digest(trial) for trial in trials},
        "full": {trials[index]["id"]: trials[index] for index in full},
    }


def without_words(plan: Mapping[str, Any]) -> dict[str, Any]:
    """Return a plan without the keys whose values are texts for people."""
    parts = [{key: value for key, value in part.items() if key not in WORDS} for part in plan["parts"]]
    return {**{key: value for key, value in plan.items() if key not in WORDS}, "parts": parts}


def drop_repeated_scripts(files: dict[str, str]) -> None:
    """Drop the script texts of experiments whose recipes are the same as those of an earlier experiment."""
    seen: set[str] = set()
    for name in [name for name in files if name.endswith(SCRIPTS)]:
        values = json.loads(files[name.replace("text/", "values/").replace(SCRIPTS, ".json")])
        recipes = digest(recipes_of(next(iter(values["full"].values()))["resolved"]))
        if recipes in seen:
            del files[name]
        seen.add(recipes)


def recipes_of(resolved: Mapping[str, Any]) -> list[str]:
    """List the recipes of a trial, with the systems of its hosts."""
    path = resolved["path"] or {}
    found = {f"aqm {way['aqm']}" for way in (path.get("down"), path.get("up")) if way}
    found |= {f"generator {flow['generator']}" for flow in resolved["flows"]}
    found |= {f"logger {logger['logger']}" for logger in resolved["loggers"]}
    for host in resolved["hosts"].values():
        found |= {f"setting {setting}" for setting in host["settings"]} | {f"{host['os']} {host['release']}"}
        found |= {
            f"setting {key}" for key in ("cc", "rwnd_bytes", "mtu_bytes", "txd") if host[key] is not None
        }
    return sorted(found)


def script_digests(hosts: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Return a digest of all scripts of each host, without their comments."""
    return {
        host: digest({phase: without_comments(text) for phase, text in phases.items()})
        for host, phases in hosts.items()
    }


def without_comments(script: str) -> str:
    """Return a script without blank lines and comment lines; embedded programs become digests."""
    for quoted, path in embedded_programs().items():
        if quoted in script:
            script = script.replace(quoted, f"<program {code_digest(path)}>")
    return comment_free(script)


def comment_free(script: str) -> str:
    """Return the lines of a shell script that are neither blank nor a comment."""
    return "\n".join(
        line for line in script.splitlines() if line.strip() and not line.lstrip().startswith("#")
    )


def script_text(trial: str, hosts: Mapping[str, Mapping[str, str]]) -> str:
    """Return the scripts of a trial as one text, in which the lines that begin all scripts of a host occur once."""
    blocks = [f"trial {trial}\n"]
    seen: dict[str, str] = {}
    for host, phases in hosts.items():
        scripts = {phase: text.splitlines() for phase, text in phases.items() if phase in SHOWN_PHASES}
        shared = common(lines for phase, lines in scripts.items() if lines[:1] == scripts["set"][:1])
        bodies = {"shared beginning": shared} | {
            phase: lines[len(shared) :] if lines[: len(shared)] == shared else lines
            for phase, lines in scripts.items()
        }
        for phase, lines in bodies.items():
            text = "".join(f"{line}\n" for line in lines)
            for quoted, path in embedded_programs().items():
                text = text.replace(quoted, f"<program {path.name}>")
            earlier = seen.setdefault(text, f"{host}, {phase}")
            same = earlier != f"{host}, {phase}"
            blocks.append(f"==== {host}, {phase}\n" + (f"as {earlier}\n" if same else text))
    return "\n".join(blocks)


@cache
def embedded_programs() -> Mapping[str, Path]:
    """Return the files of the programs that scripts contain, by the text of the program as quoted in a script."""
    paths = sorted((ROOT / "templates").glob(PROGRAMS))
    return {shlex.quote(path.read_text().strip() + "\n")[1:-2]: path for path in paths}


@cache
def code_digest(program: Path) -> str:
    """Return a digest of a program without its comments and docstrings."""
    if program.suffix != ".py":
        return digest(comment_free(program.read_text()))
    tree = ast.parse(program.read_text())
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef)
            and ast.get_docstring(node) is not None
        ):
            node.body = node.body[1:]
    return digest(ast.dump(tree))


def common(texts: Iterator[list[str]]) -> list[str]:
    """Return the lines with which all texts begin."""
    shared: list[str] = []
    for lines in zip(*texts, strict=False):
        if len(set(lines)) > 1:
            break
        shared.append(lines[0])
    return shared


def difference(expected: str, found: str) -> str:
    """Return the first lines in which an output differs from its golden file, as diff -u writes them."""
    lines = difflib.unified_diff(expected.splitlines(), found.splitlines(), "golden", "now", n=1, lineterm="")
    return "\n".join(islice(lines, MOST_LINES))


def digest(value: object) -> str:
    """Return the first 16 digits of a SHA-256 of a text, or of a value as JSON."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def program_requests() -> list[list[str]]:
    """Return the commands that do not belong to a single shipped experiment."""
    tree = yaml.safe_load((COMMANDS / "commands.yaml").read_text())
    return [["fab", *command.split()] for command in tree["commands"]]


def mistake_requests() -> list[list[str]]:
    """Return the commands that are refused, each after the edits that cause the refusal."""
    tree = yaml.safe_load((COMMANDS / "commands.yaml").read_text())
    requests: list[list[str]] = []
    for mistake in tree["mistakes"]:
        edits = [
            (name, *change) for name, changes in mistake.get("edit", {}).items() for change in changes.items()
        ]
        requests += [["edit", *edit] for edit in edits]
        requests += [["fab", *mistake["command"].split()]]
        requests += [["undo"]] if edits else []
    return requests


def listing(checkout: Path) -> str:
    """Return the output of `fab -l`, which program.py cannot print."""
    fab = Path(sys.executable).with_name("fab")
    done = subprocess.run(
        [fab, "-l"], cwd=checkout, env=environment(), capture_output=True, text=True, check=True
    )
    return f"$ fab -l\n{done.stdout}{done.stderr}\n"


def transcript(pairs: Sequence[tuple[list[str], Answer]]) -> str:
    """Return commands and their output as a terminal shows them."""
    lines = []
    for (kind, *arguments), answer in pairs:
        if kind == "edit":
            name, old, new = arguments
            lines.append(f"# {name}: {old!r} -> {new!r}" if old else f"# {name}: new file\n{new}")
        elif kind == "fab":
            code = f"[exit {answer['code']}]\n" if answer["code"] else ""
            error = "".join(f"! {line}\n" for line in answer["stderr"].splitlines())
            lines.append(f"$ fab {' '.join(arguments)}\n{answer['stdout']}{error}{code}")
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "DATE TIME", "\n".join(lines))
    return re.sub(r"[ \t]+\n", "\n", text)
