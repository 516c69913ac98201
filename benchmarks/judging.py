"""Benchmark of judges behind APIs: processor time of a unit, and how busy connections are kept.

`python benchmarks/judging.py` writes `benchmarks/results/judging_<machine>.csv`, a row per client,
seconds of a reply and number of connections. A server on loopback, in another process, gives every
request the same good reply after some seconds. Each client puts as many prompts of one form over as
many connections:

    httpx       POSTs with httpx.AsyncClient
    openai      AsyncOpenAI.chat.completions.create
    inspect     get_model(…).generate of Inspect AI
    judge       ApiJudge.ask_all, without a run folder
    run         the run of a config with one judge and one form over given chains: plan, ledger of
                calls, stored records, progress; without tables and page

    cpu_ms      processor time of the client from its first request to its end, per unit
    to_bare     cpu_ms over that of the `openai` client that ran just before; both rise by half and
                more on a machine that is shared
    busy        mean number of requests that the server holds from the first request to the last
                reply, over the number of connections
    wall_s      seconds from the first request to the last reply
    start_s     processor time of the client before its first request: imports, plan of the run
    peak_mb     most memory that the client held
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

NAME, KEY = "openai-api/local/m", "no-key"
VERDICT = {"classification": 1, "reasoning_summary": "Each step is used by the next one. " * 8}
STEPS = [f"Step {i}: the sum of {i} and {i + 1} is {2 * i + 1}, so it is odd." for i in range(8)]
MAX_TOKENS = 1000


class Server:
    """A server of chat completions, on a thread of its own, that times what one client asks."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.reply, self.url = seconds, completion(), ""
        self.pid = self.requests = self.held = 0
        self.began = self.ended = self.since = self.occupied = self.cpu = 0.0
        self.loop = asyncio.new_event_loop()
        listening = threading.Event()
        threading.Thread(target=self._serve, args=(listening.set,), daemon=True).start()
        listening.wait()

    def _serve(self, listening: Callable[[], object]) -> None:
        async def listen() -> None:
            server = await asyncio.start_server(self._connection, "127.0.0.1", 0, backlog=4096)
            self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
            listening()

        self.loop.run_until_complete(listen())
        self.loop.run_forever()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                lines = (line.partition(b":") for line in head.lower().split(b"\r\n"))
                length = next(int(value) for name, _, value in lines if name == b"content-length")
                await reader.readexactly(length)
                self._hold(1)
                await asyncio.sleep(self.seconds)
                self._hold(-1)
                writer.write(self.reply)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    def _hold(self, more: int) -> None:
        now = time.perf_counter()
        if not self.requests:
            self.began, self.cpu = now, cpu_seconds(self.pid)
        self.occupied += self.held * (now - self.since) if self.since else 0.0
        self.held, self.since, self.ended = self.held + more, now, now
        self.requests += more > 0


def completion() -> bytes:
    message = {"role": "assistant", "content": json.dumps(VERDICT)}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    usage = {"prompt_tokens": 900, "completion_tokens": 80, "total_tokens": 980}
    about = {"id": "x", "object": "chat.completion", "created": 1, "model": "m"}
    body = json.dumps({**about, "choices": [choice], "usage": usage}).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    return head.encode() + b"\r\n\r\n" + body


def cpu_seconds(pid: int) -> float:
    """Processor time that another process has used so far, to a hundredth of a second."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def form() -> Any:
    from faithscope.experiments.engine.forms import trace_forms

    return trace_forms(None)["faithful_judge"].form


def asks(units: int) -> list[Any]:
    from faithscope.probes.judge.form import Ask

    of, cot = form(), "\n".join(STEPS)
    return [Ask(str(i), of, {"question": question(i), "cot": cot}) for i in range(units)]


def question(i: int) -> str:
    return f"What is the last sum of chain {i}?"


def prompts(units: int) -> list[str]:
    from faithscope.probes.judge.parse import request, sent

    return [sent(ask.prompt, request(ask)) for ask in asks(units)]


async def together(calls: Sequence[Callable[[], Any]], connections: int) -> None:
    slots = asyncio.Semaphore(connections)

    async def one(call: Callable[[], Any]) -> None:
        async with slots:
            await call()

    await asyncio.gather(*(one(call) for call in calls))


def of_httpx(url: str, units: int, connections: int, folder: Path) -> None:
    import httpx

    async def go() -> None:
        limits = httpx.Limits(max_connections=connections, max_keepalive_connections=connections)
        async with httpx.AsyncClient(limits=limits, timeout=600) as client:

            async def call(text: str) -> str:
                turns = [{"role": "user", "content": text}]
                body = {"model": "m", "messages": turns, "max_tokens": MAX_TOKENS}
                reply = await client.post(f"{url}/chat/completions", json=body)
                return json.loads(reply.json()["choices"][0]["message"]["content"])

            calls = [lambda t=t: call(t) for t in prompts(units)]
            await together(calls, connections)

    asyncio.run(go())


def of_openai(url: str, units: int, connections: int, folder: Path) -> None:
    import openai

    async def go() -> None:
        patient = openai.Timeout(600)
        async with openai.AsyncOpenAI(base_url=url, api_key=KEY, timeout=patient) as client:

            async def call(text: str) -> str:
                reply = await client.chat.completions.create(
                    model="m",
                    messages=[{"role": "user", "content": text}],
                    max_tokens=MAX_TOKENS,
                )
                return json.loads(reply.choices[0].message.content or "")

            calls = [lambda t=t: call(t) for t in prompts(units)]
            await together(calls, connections)

    asyncio.run(go())


def of_inspect(url: str, units: int, connections: int, folder: Path) -> None:
    from inspect_ai.model import GenerateConfig, get_model

    async def go() -> None:
        how = GenerateConfig(max_connections=connections, max_tokens=MAX_TOKENS)
        async with get_model(NAME, config=how, base_url=url, api_key=KEY) as model:
            calls = [lambda t=t: model.generate(t) for t in prompts(units)]
            await together(calls, connections)

    asyncio.run(go())


def of_judge(url: str, units: int, connections: int, folder: Path) -> None:
    from faithscope.probes.judge.api import ApiJudge

    how = {"max_tokens": MAX_TOKENS, "temperature": 0.0}
    judge = ApiJudge(NAME, how, base_url=url, max_connections=connections)
    replies: list[Any] = []
    judge.ask_all(asks(units), lambda ask, reply: replies.append(reply))
    assert {reply.outcome for reply in replies} == {"parsed"}


def of_run(url: str, units: int, connections: int, folder: Path) -> None:
    from faithscope.experiments.config.load import load_config
    from faithscope.experiments.engine.environment import environment
    from faithscope.experiments.engine.planfile import Shard
    from faithscope.experiments.engine.run import plan
    from faithscope.experiments.engine.store import Store

    whole = plan(load_config(config(folder, url, units, connections)))
    with Store(whole.config, environment(), plan=whole.stored()) as store:
        whole.write_inputs(store)
        work = whole.work(store, Shard())
        work.go()
        assert work.done() == f"{units} of {units} items are done", work.failures()[:3]


def config(folder: Path, url: str, units: int, connections: int) -> Path:
    chains = folder / "chains.jsonl"
    with chains.open("w") as file:
        for i in range(units):
            row = {"id": str(i), "question": question(i), "steps": STEPS, "answer": "15"}
            file.write(json.dumps(row) + "\n")
    values = {
        "name": "judging",
        "out": str(folder),
        "model": {"name": []},
        "probes": [],
        "traces": {"path": str(chains)},
        "judges": {
            "model": f"api:{NAME}",
            "forms": ["faithful_judge"],
            "max_tokens": MAX_TOKENS,
            "base_url": url,
            "max_connections": connections,
        },
    }
    path = folder / "judging.yaml"
    path.write_text(yaml.safe_dump(values))
    return path


CLIENTS = {
    "httpx": of_httpx,
    "openai": of_openai,
    "inspect": of_inspect,
    "judge": of_judge,
    "run": of_run,
}


def measure(client: str, seconds: float, units: int, connections: int) -> dict[str, Any]:
    server = Server(seconds)
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--client", client, "--url", server.url]
        command += ["--units", str(units), "--connections", str(connections), "--folder", folder]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
            server.pid = process.pid
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
    server.loop.call_soon_threadsafe(server.loop.stop)
    if process.returncode or server.requests < units:
        raise RuntimeError(f"{client}: {server.requests} requests, exit {process.returncode}")
    cpu, wall = used.ru_utime + used.ru_stime, server.ended - server.began
    return {
        "client": client,
        "reply_s": seconds,
        "units": units,
        "connections": connections,
        "cpu_ms": round((cpu - server.cpu) / units * 1000, 2),
        "to_bare": None,
        "busy": round(server.occupied / wall / connections, 3),
        "wall_s": round(wall, 1),
        "start_s": round(server.cpu, 1),
        "peak_mb": round(used.ru_maxrss / 1024),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--machine", default=platform.node() or "machine")
    parser.add_argument("--clients", nargs="*", default=list(CLIENTS))
    parser.add_argument("--seconds", nargs="*", type=float, default=[0.0, 2.0])
    parser.add_argument("--units", type=int, default=3000)
    parser.add_argument("--connections", nargs="*", type=int, default=[8, 50, 200])
    parser.add_argument("--client", help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.client:
        CLIENTS[args.client](args.url, args.units, args.connections[0], args.folder)
        return
    rows, bare = list[dict[str, Any]](), None
    out = Path(__file__).parent / "results" / f"judging_{args.machine}.csv"
    for seconds, connections in itertools.product(args.seconds, args.connections):
        for client in args.clients:
            row = measure(client, seconds, args.units, connections)
            bare = row["cpu_ms"] if client == "openai" else bare
            row["to_bare"] = bare and round(row["cpu_ms"] / bare, 2)
            rows.append(row)
            print(row, flush=True)
            pd.DataFrame(rows).to_csv(out, index=False)


if __name__ == "__main__":
    main()
