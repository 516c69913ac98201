"""Two people label chains of thought: what is served to whom, what is kept, what comes out."""

from __future__ import annotations

import json
import re
import signal
import socket
import threading
from collections import Counter
from dataclasses import replace
from http.client import HTTPConnection
from pathlib import Path

import pandas as pd
import pytest
from annotators import Client, chain, command, make_run, serving
from bad_input import refused
from run_files import write_rows

from faithscope.experiments.analysis.exports.chains_to_label import Source, source_of
from faithscope.experiments.analysis.statistics.raters import gwet_ac2, saturated
from faithscope.experiments.analysis.statistics.stats import kappa
from faithscope.experiments.cli import execute
from faithscope.experiments.extras.annotation.export import (
    agreement_table,
    in_lines,
    ranges,
    write_export,
)
from faithscope.experiments.extras.annotation.rounds import protocol_in
from faithscope.experiments.extras.annotation.server import server_for
from faithscope.experiments.files import StoreError
from faithscope.interp.errors import UserError


@pytest.fixture
def source(tmp_path: Path) -> Source:
    chains = tuple(chain(i) for i in range(4))
    return Source(tmp_path, tmp_path / "annotations", chains, Counter(fewer_than_2_steps=2))


def test_only_who_has_the_address_is_served(source: Source) -> None:
    with serving(source, "ann") as (ann,):
        token, port = ann.server.token, ann.server.server_port
        assert ann.server.server_address[0] == "127.0.0.1"
        status, body = ann.raw("GET", f"/{token}/")
        assert status == 200
        # no text of a chain is in the page, and its policy runs and loads its own files alone
        assert b"Question 0" not in body
        assert not re.search(rb"<script>|<style|style=| on\w+=|https?:", body)
        policy = ann.headers["Content-Security-Policy"]
        assert "default-src 'none'; script-src 'self'" in policy
        assert "unsafe" not in policy
        assert "Set-Cookie" not in ann.headers
        refused = [
            ann.raw("GET", "/"),
            ann.raw("GET", f"/{token[:-1]}/"),
            ann.raw("GET", f"/{token}"),
            ann.raw("GET", f"/{token}{token}/"),
            ann.raw("GET", f"/{token}/", Host="evil.example"),
            ann.raw("GET", f"/{token}/", Host=f"evil.example:{port}"),
            ann.raw("GET", f"/{token}/../../etc/passwd"),
            ann.raw("GET", f"/{token}/%2e%2e/%2e%2e/config.yaml"),
            ann.raw("GET", f"/{token}/annotations/ann.jsonl"),
            ann.raw("POST", f"/{token}/state", b'{"round": 1}', Host="evil.example"),
            ann.raw("POST", "/x/state", b'{"round": 1}', Content_Type="application/json"),
        ]
        assert [status for status, _ in refused] == [404] * len(refused)
        json_of = {"Content_Type": "application/json"}
        path = f"/{token}/state"
        assert ann.raw("POST", path, b"{}", Origin="http://evil.example", **json_of)[0] == 403
        assert ann.raw("POST", path, b"{}", Content_Type="text/plain")[0] == 415
        assert ann.raw("POST", path, b"{" * 9, **json_of)[0] == 400
        assert ann.raw("POST", path, b"", **json_of, Content_Length="999999999")[0] == 413
        assert ann.raw("POST", path, b'{"round": 1}', **json_of, Host=f"localhost:{port}")[0] == 200
        # not even the error page of a strange method holds what was asked
        with socket.create_connection(("127.0.0.1", port)) as plain:
            plain.sendall(b"<script> / HTTP/1.0\r\n\r\n")
            answer = plain.makefile("rb").read()
        assert b"<script>" not in answer
        assert b"Content-Security-Policy" in answer


def test_labels_that_the_sheet_does_not_know_are_refused(source: Source) -> None:
    with serving(source, "ann") as (ann,):
        for wrong, named in [
            ({"label": 3}, "label: label"),
            ({"label": True}, "label: label"),
            ({"steps": [4]}, "there is no step 4"),
            ({"steps": ["1"]}, "label: steps.0"),
            ({"principles": ["spurious_9"]}, "spurious_9"),
            ({"reason": "x" * 20_001}, "label: reason"),
            ({"reason": "  "}, "the sheet asks for reason, too"),
            ({"label": None, "confidence": None}, "the sheet asks for label and confidence, too"),
            ({"chain": 4}, "chain: cannot be '4'"),
            ({"round": 2}, "round 2 is not open"),
            ({"place": ["a", "b", "c"], "more": 1}, "label: more"),
        ]:
            said = ann.label(**{"chain": 0, **wrong})
            assert named in said["error"], wrong
        assert (source.folder / "ann.jsonl").read_bytes() == b""
        # a draft lacks what it lacks
        assert ann.label(0, done=False, label=None, reason="")["rounds"][0]["done"] == 0


def test_the_rounds_hide_show_and_end_as_the_protocol_says(source: Source) -> None:
    with serving(source, "ann", "bob") as (ann, bob):
        bad = {"label": 0, "steps": [2, 1], "principles": ["spurious_1"], "reason": "Jumps."}
        ann.label(0, **bad)
        ann.label(1, confidence="low")
        ann.label(2, **bad)
        ann.label(3)
        secret = "Nobody may read this yet."
        for i in range(3):
            state = bob.label(i, reason=secret, **({"label": 0} if i == 2 else {}))
        # round I: nothing of the other but how far they are
        assert state["rounds"][0] | {"done": 3, "other_done": 4} == state["rounds"][0]
        assert all(item["other"] is None for item in state["items"])
        assert secret not in json.dumps(ann.ask("state", round=1))
        assert "round 2 opens when both" in ann.ask("open", round=2)["error"]
        bob.label(3, reason=secret)
        assert "round 2 is not open yet" in ann.ask("state", round=2)["error"]

        # round II: where labels differ, or one was not sure, each with the other's reason
        state = ann.ask("open", round=2)
        assert [item["chain"] for item in state["items"]] == [0, 1]
        assert state["items"][0]["other"]["reason"] == secret
        assert state["items"][0]["differs"] == ["label"]
        assert state["items"][0]["own"]["steps"] == [1, 2]
        assert not state["items"][0]["own"]["done"]
        assert "round 1 is over" in bob.label(3, label=0)["error"]
        assert "does not include this chain" in ann.label(3, 2)["error"]
        ann.label(0, 2, **bad)
        ann.label(1, 2)
        bob.ask("open", round=2)
        bob.label(0, 2, label=0, reason="Convinced.")
        # of round II they see what the other said in round I
        assert ann.ask("state", round=2)["items"][0]["other"]["reason"] == secret
        bob.label(1, 2, label=2, reason="Who knows?")

        # round III: what differs still, in label, principles or steps; the other's last word
        state = bob.ask("open", round=3)
        assert [(item["chain"], item["differs"]) for item in state["items"]] == [
            (0, ["principles", "steps"]),
            (1, ["label"]),
            (2, ["principles", "steps"]),
        ]
        bob.label(0, 3, **bad | {"steps": [2, 3]})
        ann.ask("open", round=3)
        assert ann.label(0, 3, **bad)["items"][0]["differs"] == ["steps"]
        assert bob.label(0, 3, **bad)["items"][0]["differs"] == []

    folder = write_export(protocol_in(source.folder, source.chains), source, source.path / "out")
    fates = dict(pd.read_csv(folder / "fates.csv").itertuples(index=False))
    assert fates == {"excluded: fewer_than_2_steps": 2, "exported": 3, "disagreement": 1}
    written = sorted(p.name for p in folder.rglob("response_*.json"))
    assert written == ["response_0.json", "response_2.json", "response_3.json"]
    response = json.loads((folder / "responses/logic/org_model/response_0.json").read_text())
    about = response.pop("annotation")
    assert about["not_agreed"] == []
    assert about["model"] == "org/model"
    assert response == {
        "question": "Question 0?",
        "options": ["A. Yes.", "B. No."],
        "label": "A",
        "sample_0": {
            "full_response": "Sure! First this. Then that. So. The answer is (A).",
            "step_1": "First this.",
            "step_2": "Then that.",
            "step_3": "So.",
            "final_answer": "The answer is (A).",
            "parsed_final_answer": "A",
        },
        # right and unfaithful; the sheet's 0 is Definition 1's 1
        "faithful_type": 4,
        "unfaithfulness": 1,
        "unfaithful_reason": "Jumps.",
        "unfaithful_steps": "1-2",
        "principles": ["Step Skipping"],
    }
    # both call it unfaithful; of steps and principles only what both name is kept
    half = json.loads((folder / "responses/logic/org_model/response_2.json").read_text())
    assert half["unfaithful_steps"] == ""
    assert half["annotation"]["not_agreed"] == ["principles", "steps"]
    faithful = json.loads((folder / "responses/logic/org_model/response_3.json").read_text())
    assert (faithful["faithful_type"], faithful["unfaithfulness"]) == (1, 0)
    table = pd.read_csv(folder / "agreement.csv").set_index(["dataset", "round", "of"]).loc["all"]
    assert table.loc[(1, "label"), ["n", "agreement"]].tolist() == [4, 0.75]
    assert table.loc[(3, "Step Skipping"), ["n", "agreement"]].tolist() == [2, 0.5]
    assert table.loc[(3, "steps"), "n"] == 6
    labels = pd.read_csv(folder / "labels.csv", dtype=str, keep_default_na=False)
    assert Counter(labels["round"]) == {"1": 8, "2": 4, "3": 2}
    # what is agreed upon no more leaves the export
    (folder / "responses/logic/org_model/response_9.json").write_text("{}")
    write_export(protocol_in(source.folder, source.chains), source, folder)
    assert sorted(p.name for p in folder.rglob("response_*.json")) == written
    (folder / "mine.txt").touch()
    with pytest.raises(UserError, match=r"holds 'mine.txt', which no export wrote"):
        write_export(protocol_in(source.folder, source.chains), source, folder)


def test_agreement_is_told_of_each_data_set_and_of_all(source: Source) -> None:
    names = ("logic", "facts", "logic", "facts")
    chains = [replace(c, dataset=name) for c, name in zip(source.chains, names, strict=True)]
    source = replace(source, chains=tuple(chains))
    # ann and bob agree on the chains about facts, and contradict each other on those about logic
    said = {"ann": (0, 0, 1, 1), "bob": (1, 0, 0, 1)}
    with serving(source, *said) as clients:
        for client, labels in zip(clients, said.values(), strict=True):
            for i, label in enumerate(labels):
                client.label(i, label=label, confidence="high")
    protocol = protocol_in(source.folder, source.chains)
    table = agreement_table(protocol).set_index(["dataset", "round", "of"])
    of = {name: table.loc[name, 1, "unfaithful"] for name in ("all", "logic", "facts")}
    assert {name: (r["n"], r["agreement"]) for name, r in of.items()} == {
        "all": (4, 0.5),
        "logic": (2, 0.0),
        "facts": (2, 1.0),
    }
    assert [of[name]["kappa"] for name in ("all", "logic", "facts")] == [0.0, -1.0, 1.0]
    lines = in_lines(write_export(protocol, source, source.path / "out"))
    assert [line.split()[:6] for line in lines if re.match("unfaithful +round 1", line)] == [
        ["unfaithful", "round", "1", "all", "4", "0.500"],
        ["unfaithful", "round", "1", "logic", "2", "0.000"],
        ["unfaithful", "round", "1", "facts", "2", "1.000"],
    ]


def test_an_export_is_read_as_the_chains_of_fine_cot(tmp_path: Path) -> None:
    rows = [
        {"id": f"{i}", "model": "org/model", "dataset": "mine", "question": "Which?"}
        | {"options": ["yes", "no"], "gold": "B", "answer": "AB"[i], "steps": ["One.", "Two."]}
        for i in range(2)
    ]
    source = source_of(write_rows(tmp_path / "mine.jsonl", *rows))
    assert source.folder == tmp_path / "mine.jsonl.annotations"
    assert [c.steps for c in source.chains] == [("One.\n\n", "Two.")] * 2
    worded = replace(source.chains[1], kind="label", gold="no", answer="no")
    source = replace(source, chains=(source.chains[0], worded))
    with serving(source, "ann", "bob") as both:
        for client in both:
            client.label(0, label=0, steps=[2], principles=["post_hoc_2"])
            client.label(1)
    folder = write_export(protocol_in(source.folder, source.chains), source, tmp_path / "out")
    files = sorted(folder.rglob("response_*.json"))
    kinds = [json.loads(p.read_text())["faithful_type"] for p in files]
    assert kinds == [2, 3]
    reader = pytest.importorskip(
        "faithscope.experiments.data.given.fine_cot", reason="no reader of FINE-CoT here"
    )
    rows_of = reader.FINE_COT.rows(folder)
    bad, good = reader.FINE_COT.chains(rows_of)
    assert [(c.id, c.dataset, c.model) for c in (bad, good)] == [
        ("0", "mine", "org/model"),
        ("1", "mine", "org/model"),
    ]
    assert bad.step_labels == {"unfaithful": (False, True)}
    assert bad.labels["principles"] == ["post_hoc_2"]
    for read, unfaithful in ((bad, True), (good, False)):
        assert read.labels["unfaithful.unfaithfulness"] is unfaithful
        assert read.labels["unfaithful.faithful_type"] is unfaithful
        assert read.labels["correct"] is not unfaithful
        assert [read.reasoning[a:b] for a, b in read.steps] == ["One.", "Two."]


def test_two_write_at_once_each_to_a_file_of_their_own(source: Source) -> None:
    with serving(source, "ann", "bob") as both:

        def work(client: Client, reason: str) -> None:
            for i in range(40):
                client.label(i % 4, reason=f"{reason} {i}")

        threads = [
            threading.Thread(target=work, args=(client, reason))
            for client in both
            for reason in ("One", "Two")
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with (
            pytest.raises(StoreError, match="'ann' is labelling in another process"),
            server_for(source, "ann"),
        ):
            pass
    assert [
        len((source.folder / f"{n}.jsonl").read_text().splitlines()) for n in ("ann", "bob")
    ] == [
        80,
        80,
    ]
    assert all(len(a.labels) == 4 for a in protocol_in(source.folder, source.chains).annotators)
    for name, why in [("eve", "ann and bob label here already"), ("../ann", "names a file")]:
        with pytest.raises(UserError, match=why), server_for(source, name):
            pass


def test_what_is_torn_is_dropped_what_is_damaged_is_named(source: Source) -> None:
    with serving(source, "ann", limit=3) as (ann,):
        ann.label(0)
        ann.label(1)
    path = source.folder / "ann.jsonl"
    path.write_bytes(path.read_bytes() + b'{"crc": "0000')
    with serving(source, "ann") as (ann,):
        assert ann.ask("state", round=1)["rounds"][0]["done"] == 2
        assert ann.label(2)["rounds"][0]["done"] == 3
    path.write_bytes(path.read_bytes().replace(b'"label": 1', b'"label": 0', 1))
    with (
        pytest.raises(StoreError, match=r"byte 0 is damaged .*checksum"),
        server_for(source, "ann"),
    ):
        pass
    # the sample is drawn once, and is of these very texts
    with (
        pytest.raises(UserError, match="--limit 2: 3 chains are drawn"),
        server_for(source, "a", 2),
    ):
        pass
    other = tuple(chain(i, question="Another?") for i in range(4))
    changed = Source(source.path, source.folder, other, Counter())
    with pytest.raises(UserError, match="3 of the 3 chains drawn"), server_for(changed, "ann"):
        pass


def test_gwets_coefficients_and_the_flag() -> None:
    # Gwet (Statistical Methods for Inter-Rater Reliability Assessment, 1, 2002): 118, 5, 2, 0
    left = [1] * 123 + [0] * 2
    right = [1] * 118 + [0] * 5 + [1] * 2
    assert gwet_ac2(left, right, (0, 1)) == pytest.approx(0.9408, abs=5e-5)
    assert kappa(left, right) == pytest.approx(-0.0234, abs=5e-5)
    assert saturated(left, right)
    assert not saturated([0, 0, 1, 1], [0, 1, 1, 1])
    # three levels, by hand: agreement (1 + 1 + .5 + 0) / 4, chance 5 / 6 × (1 − Σ shares²)
    value = gwet_ac2([0, 1, 0, 0], [0, 1, 2, 1], (0, 2, 1))
    chance = 5 / 6 * (1 - (4 / 8) ** 2 - (1 / 8) ** 2 - (3 / 8) ** 2)
    assert value == pytest.approx((2.5 / 4 - chance) / (1 - chance))
    assert ranges([1, 2, 3, 5, 7, 8]) == "1-3, 5, 7-8"


@pytest.mark.slow
def test_a_kill_loses_nothing_and_ctrl_c_ends_with_the_export(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run(tmp_path, ["planted:faithful"], {"planted": 3})
    source = source_of(run)
    assert len(source.chains) + sum(source.excluded.values()) == 3
    # joined, the parts are the reasoning that the model wrote, and what is not a step is told apart
    assert all(len(chain.steps) >= 2 for chain in source.chains)
    assert "nobody has labelled it; begin with --as NAME" in refused(
        "annotate", run, "--export", str(tmp_path / "out")
    )
    assert execute(["annotate", str(run)]) == 2
    body = json.dumps(
        {"round": 1, "chain": 0, "done": True, "label": 1, "confidence": "low", "reason": "Clear."}
    )
    for sent in (signal.SIGKILL, signal.SIGINT):
        with command(run, "ann") as (process, address):
            host, token = re.fullmatch(r"http://(.*)/(.*)/", address).groups()
            connection = HTTPConnection(host, timeout=10)
            headers = {"Content-Type": "application/json"}
            connection.request("POST", f"/{token}/state", '{"round": 1}', headers)
            before = json.loads(connection.getresponse().read())["rounds"][0]["done"]
            assert before == (sent == signal.SIGINT)
            connection = HTTPConnection(host, timeout=10)
            connection.request("POST", f"/{token}/label", body, headers)
            assert connection.getresponse().status == 200
            process.send_signal(sent)
            out, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    assert out.splitlines()[-1] == str(run / "annotations" / "export")
    capsys.readouterr()
    assert execute(["annotate", str(run), "--export", str(tmp_path / "out")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == str(tmp_path / "out")
    assert "not_labelled_twice: 3" in lines
