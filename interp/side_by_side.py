"""Several jobs on one model side by side: what they ask at the same time runs in one pack.

A job is any function of a model. It goes on until it asks the model something, and waits; once
every job waits, or has ended, all questions are run together, and each job goes on with its own
answers. Decoding gains most: a step of a model of 8 billion parameters takes an accelerator hardly
longer for two hundred sequences than for twenty.

Jobs run on threads of their own, of which one runs at a time, always in the same order: packs do
not depend on how fast anything is.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

from faithscope.interp import answer, generate, read
from faithscope.interp.memory import is_out_of_memory
from faithscope.interp.model import Model

T = TypeVar("T")
Request = answer.Request | read.ReadRequest | generate.GenerateRequest
_ALL: dict[type, Callable[..., list[Any]]] = {
    answer.Request: answer.ask_all,
    read.ReadRequest: read.read_all,
    generate.GenerateRequest: generate.generate_all,
}


def side_by_side(model: Model, jobs: Sequence[Callable[[Model], T]]) -> list[T | Exception]:
    """What each job returned or raised, in order.

    Raises:
        MemoryError, torch.OutOfMemoryError: a pack did not fit into memory; no job has ended.
    """
    if len(jobs) == 1:
        return [_outcome(jobs[0], model)]
    tasks = [_Task(model, job) for job in jobs]
    try:
        for task in tasks:
            task.go_on()
        while waiting := [task for task in tasks if task.request is not None]:
            requests = [task.request for task in waiting if task.request is not None]
            for task, reply in zip(waiting, _replies(model, requests), strict=True):
                task.go_on(reply)
    finally:
        for task in tasks:
            task.abandon()
    return [task.outcome for task in tasks]


def _outcome(job: Callable[[Model], T], model: Model) -> T | Exception:
    try:
        return job(model)
    except Exception as error:
        if is_out_of_memory(error):
            raise
        return error


def _replies(model: Model, requests: Sequence[Request]) -> list[Any]:
    """The answer to each request, or the exception that it alone raises."""
    replies: list[Any] = [None] * len(requests)
    for kind, answers in _ALL.items():
        at = [i for i, request in enumerate(requests) if isinstance(request, kind)]
        try:
            found = answers(model, [requests[i] for i in at])
        except Exception as error:
            if is_out_of_memory(error):
                raise
            # one bad request must not cost the others
            alone = [partial(_alone, answers, requests[i]) for i in at]
            found = [_outcome(job, model) for job in alone]
        for i, reply in zip(at, found, strict=True):
            replies[i] = reply
    return replies


def _alone(answers: Callable[..., list[Any]], request: Request, model: Model) -> Any:
    return answers(model, [request])[0]


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
