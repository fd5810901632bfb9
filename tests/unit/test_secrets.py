"""Secrets are refused in files of a project, and redacted in records of a campaign."""

from __future__ import annotations

from pathlib import Path

import pytest

from samovar.campaign.context import ScriptRecorder
from samovar.errors import DefinitionError, TestbedError
from samovar.experiment import Power
from samovar.experiment.yaml_tree import parse_yaml
from samovar.hosts import Machine, ScriptResult
from samovar.secrets import REDACTED, find_secrets, redacted

KEY = "-----BEGIN OPENSSH " + "PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEA\n-----END OPENSSH " + "PRIVATE KEY-----"
SECRETS = [
    ("description: " + KEY.splitlines()[0], "a private key"),
    ("proxy: http://user:hunter22@proxy.example.org:3128", "a password in a URL"),
    ("cycle: [curl, -H, 'Authorization: Bearer abcdefgh12345', http://pdu/7]", "a credential"),
    ("cycle: [pdu, --password, hunter22, '7']", "a secret argument"),
    ("cycle: pdu --token=hunter22 7", "a secret"),
    ("run: TOKEN=hunter22 upload", "a secret value"),
    ("command: [notify, ghp_0123456789abcdefghij0123456789abcdef]", "a token"),
    ("ssh: {user: root, password: hunter22}", "a password"),
    ("ssh:\n  password: hunter22", "a password"),
    ("ssh: {'user': root, 'password': 'hunter22'}", "a password"),
    ("name: x\n# the password: hunter22", "a password"),
]


@pytest.mark.parametrize(("text", "what"), SECRETS)
def test_a_file_with_a_secret_in_it_is_refused_with_its_place(text: str, what: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        parse_yaml(f"testbed: mine\n{text}\n", "hosts/mine.yaml")
    message = "\n".join(line for _, line in caught.value.lines(200) if "hosts/mine.yaml:" in line)
    assert message.startswith(("hosts/mine.yaml:2:", "hosts/mine.yaml:3:"))
    assert what in message
    assert "remove it; use SSH keys for hosts" in message
    assert "hunter22" not in "\n".join(line for _, line in caught.value.lines(200))


@pytest.mark.parametrize(
    "file", sorted(Path(__file__).parents[2].glob("*/*.yaml")), ids=lambda file: file.name
)
def test_no_yaml_file_of_this_project_is_refused_because_of_a_secret(file: Path) -> None:
    assert list(find_secrets(file.read_text())) == []


@pytest.mark.parametrize(
    "text",
    [
        "ipmi: {address: b, user: c, password_file: ~/.ipmi}",
        "cycle: [pdu, --password-file, /root/pdu, '7']",
        "run: TOKEN=$(cat ~/.token) upload",
        "summary: a token bucket, tc-tbf(8): tokens come at a rate",
        "url: http://example.org:8080/path@2",
        "address: 'fe80::1'",
    ],
)
def test_text_that_mentions_secrets_but_contains_none_is_accepted(text: str) -> None:
    assert list(find_secrets(text)) == []


ENVIRONMENT = {
    "PDU_TOKEN": "canary-token-1",
    "SSH_AUTH_SOCK": "/tmp/ssh-canary/agent.1",
    "PASSWORD": "ab",
    "HOME": "/root",
}


def test_secrets_of_the_environment_are_redacted() -> None:
    text = "said canary-token-1 by /tmp/ssh-canary/agent.1 in /root: ab\n" + KEY
    assert redacted(text, ENVIRONMENT) == f"said {REDACTED} by {REDACTED} in /root: ab\n{REDACTED}"


@pytest.mark.parametrize("text", [text for text, _ in SECRETS])
def test_secrets_that_are_refused_in_files_are_redacted_in_records(text: str) -> None:
    assert REDACTED in redacted(text, {})
    assert "hunter22" not in redacted(text, {})


def test_the_output_around_a_password_stays_readable() -> None:
    text = (
        '{"user": "root", "password": "hunter22", "port": 22}\npassphrase: two words\nPassword:\nsu: failed'
    )
    assert (
        redacted(text, {})
        == f'{{"user": "root", "{REDACTED}, "port": 22}}\n{REDACTED}\n{REDACTED}\nsu: failed'
    )
    for text in ("fs.protected_hardlinks: 1", "(root) NOPASSWD: ALL", "sudo: a password is required"):
        assert redacted(text, {}) == text


def test_the_record_of_a_script_contains_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PDU_TOKEN", "canary-token-1")
    done = ScriptResult(
        "src", "arm", "echo canary-token-1", 1, b"http://u:canary2@p/", KEY.encode(), 0.0, 1.0
    )
    ScriptRecorder(tmp_path)(done)
    records = "".join(file.read_text() for file in tmp_path.iterdir())
    assert "canary" not in records
    assert "b3BlbnNzaC1rZXktdjEA" not in records
    assert records.count(REDACTED) == 3


def test_a_long_text_of_repeated_patterns_of_secrets_can_be_searched() -> None:
    for piece in ("a", "://", "token", "://a:", "-----BEGIN ", "password=", "password: ", " : "):
        text = piece * (200_000 // len(piece))
        assert isinstance(redacted(text, {}), str)


def test_secrets_in_the_output_of_a_power_command_are_redacted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PDU_TOKEN", "canary-token-1")
    cycle = Power.model_validate({"cycle": ["sh", "-c", 'echo "denied to $PDU_TOKEN"; exit 3']})
    with pytest.raises(TestbedError) as caught:
        Machine("src", "192.0.2.1", power=cycle).switch("cycle")
    assert f"exit code 3: denied to {REDACTED}" in str(caught.value)
