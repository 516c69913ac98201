"""Several jobs on one model side by side: what they ask at the same time runs in one pack.

A job is any function of a model. It goes on until it asks the model something, and waits; once
every job waits, or has ended, all questions are run together, and each job goes on with its own
answers. Decoding gains most: a step of a model of 8 billion parameters takes an accelerator hardly
longer for two hundred sequences than for twenty.

Jobs may form two groups, which take turns: while the device runs the packs of one, the jobs of the
other read their answers and plan what they ask next. Jobs run on threads of their own, of which one
runs at a time, always in the same order: packs do not depend on how fast anything is.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

from faithscope.interp import answer, generate, read
from faithscope.interp.memory import is_out_of_memory
from faithscope.interp.model import Model

T = TypeVar("T")
Request = answer.Request | read.ReadRequest | generate.GenerateRequest
_ALL: dict[type, Callable[..., Any]] = {
    answer.Request: answer.asking,
    read.ReadRequest: read.read_all,
    generate.GenerateRequest: generate.generate_all,
}


def side_by_side(
    model: Model,
    jobs: Sequence[Callable[[Model], T]],
    second: int | None = None,
    ended: Callable[[Mapping[int, T | Exception]], None] = lambda outcomes: None,
) -> list[T | Exception]:
    """What each job returned or raised, in order.

    Args:
        second: index of the first job of a second group, whose packs are its own.
        ended: called after each round of questions with what the jobs that it ended returned or
            raised, by their index.

    Raises:
        MemoryError, torch.OutOfMemoryError: a pack did not fit into memory; what `ended` was not
            told has to be done again.
    """
    if len(jobs) == 1:
        outcomes = [_outcome(jobs[0], model)]
        ended({0: outcomes[0]})
        return outcomes
    tasks = [_Task(model, job) for job in jobs]
    index = {task: i for i, task in enumerate(tasks)}
    groups = [_Group(model, of) for of in (tasks[:second], tasks[len(jobs[:second]) :]) if of]
    running: _Group | None = None
    try:
        while running is not None or any(group.goes_on for group in groups):
            for group in groups:
                if running is group:
                    group.finish()
                ended({index[task]: task.outcome for task in group.plan()})
                if running is not None and running is not group:
                    running.finish()
                running = group if group.start() else None
    finally:
        for task in tasks:
            task.abandon()
    return [task.outcome for task in tasks]


class _Group:
    """Jobs that ask together."""

    def __init__(self, model: Model, tasks: Sequence[_Task[Any]]) -> None:
        self._model = model
        self._waiting = list(tasks)
        """The jobs that wait for a reply; at first all, for their turn."""
        self._replies: list[Any] = [None] * len(tasks)
        self._steps: answer.Steps[list[Any]] | None = None

    @property
    def goes_on(self) -> bool:
        return bool(self._waiting)

    def plan(self) -> list[_Task[Any]]:
        """Let every job go on with its reply until all wait for another one, or have ended; returns
        those that have."""
        for task, reply in zip(self._waiting, self._replies, strict=True):
            task.go_on(reply)
        ended = [task for task in self._waiting if task.request is None]
        self._waiting = [task for task in self._waiting if task.request is not None]
        self._replies = []
        return ended

    def start(self) -> bool:
        """Run what the jobs ask, up to where the host would wait; whether they ask anything."""
        if self._waiting:
            requests = [task.request for task in self._waiting if task.request is not None]
            self._steps = _replies(self._model, requests)
            self._advance()
        return bool(self._waiting)

    def finish(self) -> None:
        """Run the rest."""
        while self._steps is not None:
            self._advance()

    def _advance(self) -> None:
        assert self._steps is not None
        try:
            next(self._steps)
        except StopIteration as end:
            self._replies, self._steps = end.value, None


def _outcome(job: Callable[[Model], T], model: Model) -> T | Exception:
    try:
        return job(model)
    except Exception as error:
        if is_out_of_memory(error):
            raise
        return error


def _replies(model: Model, requests: Sequence[Request]) -> answer.Steps[list[Any]]:
    """The answer to each request, or the exception that it alone raises."""
    replies: list[Any] = [None] * len(requests)
    for kind, answers in _ALL.items():
        at = [i for i, request in enumerate(requests) if isinstance(request, kind)]
        try:
            found = answers(model, [requests[i] for i in at])
            if isinstance(found, Generator):
                found = yield from found
        except Exception as error:
            if is_out_of_memory(error):
                raise
            # one bad request must not cost the others
            alone = [partial(_alone, answers, requests[i]) for i in at]
            found = [_outcome(job, model) for job in alone]
        for i, reply in zip(at, found, strict=True):
            replies[i] = reply
    return replies


def _alone(answers: Callable[..., Any], request: Request, model: Model) -> Any:
    found = answers(model, [request])
    return (answer.ended(found) if isinstance(found, Generator) else found)[0]


class _Abandoned(BaseException):
    """Ends a job whose answers will not come."""


class _Task(Generic[T]):
    """One job, on a thread of its own that runs between `go_on` and its next question."""

    def __init__(self, model: Model, job: Callable[[Model], T]) -> None:
        self.request: Request | None = None
        """What the job waits for; None once it has ended."""
        self.outcome: Any = None
        self._fatal: BaseException | None = None
        self._reply: Any = None
        self._turn, self._back = threading.Semaphore(0), threading.Semaphore(0)
        self._thread = threading.Thread(target=self._work, args=(model, job), daemon=True)
        self._thread.start()

    def go_on(self, reply: Any = None) -> None:
        """Let the job run until it asks again or ends; `reply` answers its last question."""
        self.request, self._reply = None, reply
        self._turn.release()
        self._back.acquire()
        if self._fatal is not None:
            raise self._fatal

    def abandon(self) -> None:
        """End the job, if it has not ended."""
        if self._thread.is_alive():
            self._reply = _Abandoned()
            self._turn.release()
            self._thread.join()

    def ask(self, request: Request) -> Any:
        """The answer to a question of the job, once it is this job's turn again."""
        self.request = request
        self._back.release()
        self._turn.acquire()
        if isinstance(self._reply, BaseException):
            raise self._reply
        return self._reply

    def _work(self, model: Model, job: Callable[[Model], T]) -> None:
        self._turn.acquire()
        try:
            if isinstance(self._reply, _Abandoned):
                return
            self.outcome = _outcome(job, _Asking.of(model, self))
        except _Abandoned:
            pass
        except BaseException as error:
            self._fatal = error
        finally:
            self._back.release()


class _Asking(Model):
    """A model whose questions wait for those of other jobs; all else is the model's own."""

    __slots__ = ("task",)
    task: _Task[Any]

    @classmethod
    def of(cls, model: Model, task: _Task[Any]) -> _Asking:
        one = object.__new__(cls)
        one.__dict__ = model.__dict__
        one.task = task
        return one

    def ask(self, *args: Any, **kwargs: Any) -> Any:
        return self.task.ask(answer.Request(*args, **kwargs))

    def run(self, *args: Any, **kwargs: Any) -> Any:
        return self.task.ask(read.ReadRequest(*args, **kwargs))

    def generate(self, *args: Any, **kwargs: Any) -> Any:
        return self.task.ask(generate.GenerateRequest(*args, **kwargs))
