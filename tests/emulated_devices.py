"""Four devices in the CPU's memory that may be mixed no more than those of CUDA.

`emulated:0` to `emulated:3` are devices of PyTorch's own kind for backends from elsewhere
(PrivateUse1), so tensors, parameters, storages, hooks and copies on them are PyTorch's, and so
are its checks of devices where it has them in common for all backends; `emulated_devices.cpp`
has the rest. It is compiled once, in about 20 seconds, and kept where PyTorch keeps extensions.
"""

from __future__ import annotations

import gc
import shutil
import types
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
import torch
from filelock import FileLock
from torch.utils import cpp_extension

NAME = "emulated"
COUNT = 4


def require() -> None:
    """Make the devices known to this process; without a C++ compiler the test is skipped."""
    if hasattr(torch, NAME):
        return
    if not (shutil.which(cpp_extension.get_cxx_compiler()) and shutil.which("ninja")):
        pytest.skip("emulated devices are compiled: they need a C++ compiler and ninja")
    source = Path(__file__).with_suffix(".cpp")
    # what is kept serves this version of PyTorch alone
    version = "".join(c if c.isalnum() else "_" for c in torch.__version__)
    name = f"emulated_devices_{version}"
    kept = Path(cpp_extension.get_default_build_root(), name)
    kept.mkdir(parents=True, exist_ok=True)
    with FileLock(kept / "one_process.lock"):
        # PyTorch's own lock outlives a process that was killed, and all later ones wait for it
        (kept / "lock").unlink(missing_ok=True)
        cpp_extension.load(
            name,
            [str(source)],
            extra_cflags=["-O0"],
            build_directory=str(kept),
            is_python_module=False,
        )
    torch.utils.rename_privateuse1_backend(NAME)
    torch._register_device_module(NAME, _module())


def _module() -> types.ModuleType:
    """What PyTorch asks of the Python module of a kind of device."""
    module = types.ModuleType(f"torch.{NAME}")
    module.__dict__.update(
        is_available=lambda: True,
        device_count=lambda: COUNT,
        current_device=lambda: 0,
        manual_seed_all=lambda seed: None,
        _is_in_bad_fork=lambda: False,
        _lazy_init=lambda: None,
    )
    return module


@contextmanager
def memories(*sizes: int, cpu: int | None = None) -> Iterator[None]:
    """As many devices as sizes, with so many bytes free, and so many in the CPU's memory.

    accelerate asks for devices of the few kinds that it knows by name, and else for CUDA's: it
    is told of these in their place. The numbers that it gives them then, 0 and 1, mean a device
    of whatever kind PyTorch has here. Nothing else of accelerate is touched.
    """
    # garbage of earlier tests would make room while this one runs
    gc.collect()
    rooms = [torch.ops.emulated.room(i) for i in range(COUNT)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.cuda, "device_count", lambda: len(sizes))
        # what a run notes of the machine that it is on
        patch.setattr(torch.cuda, "get_device_name", lambda i: f"{NAME}:{i}")
        patch.setattr(torch.cuda, "mem_get_info", lambda i: (torch.ops.emulated.room(i), sizes[i]))
        if cpu is not None:
            free = psutil.virtual_memory()._replace(available=cpu)
            patch.setattr(psutil, "virtual_memory", lambda: free)
        for i, size in enumerate(sizes):
            set_room(i, size)
        try:
            yield
        finally:
            for i, size in enumerate(sizes):
                used = size - torch.ops.emulated.room(i)
                set_room(i, rooms[i] - used)


def set_room(device: int, size: int) -> None:
    """So many bytes are free on a device from now on."""
    torch.ops.emulated.set_room(device, size)
