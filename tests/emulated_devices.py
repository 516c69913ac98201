"""Four devices emulated in the CPU's memory, which refuse to be mixed like CUDA devices.

`emulated:0` to `emulated:3` are devices of PyTorch's type for external backends (PrivateUse1), so
tensors, parameters, storages, hooks, copies and the device checks common to all backends are
PyTorch's own; `emulated_devices.cpp` adds the others. It is compiled once, in about 20 seconds, and
cached where PyTorch keeps extensions.
"""

from __future__ import annotations

import gc
import hashlib
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
    """Register the devices in this process; without a C++ compiler the test is skipped."""
    if hasattr(torch, NAME):
        return
    if not (shutil.which(cpp_extension.get_cxx_compiler()) and shutil.which("ninja")):
        pytest.skip("emulated devices are compiled: they need a C++ compiler and ninja")
    source = Path(__file__).with_suffix(".cpp").read_bytes()
    # a cached extension fits this source and this version of PyTorch, in whichever checkout; one
    # that is built for PyTorch at another place would be built anew by every process in turn
    version = "".join(c if c.isalnum() else "_" for c in torch.__version__)
    of = hashlib.sha256(source + torch.__file__.encode())
    name = f"emulated_devices_{version}_{of.hexdigest()[:12]}"
    kept = Path(cpp_extension.get_default_build_root(), name)
    kept.mkdir(parents=True, exist_ok=True)
    with FileLock(kept / "one_process.lock"):
        # PyTorch's own lock survives a killed process, and later ones would wait for it forever
        (kept / "lock").unlink(missing_ok=True)
        written = kept / "emulated_devices.cpp"
        if not written.exists() or written.read_bytes() != source:
            written.write_bytes(source)
        cpp_extension.load(
            name,
            [str(written)],
            extra_cflags=["-O0"],
            build_directory=str(kept),
            is_python_module=False,
        )
    torch.utils.rename_privateuse1_backend(NAME)
    torch._register_device_module(NAME, _module())


def _module() -> types.ModuleType:
    """The Python module that PyTorch requires for a type of device."""
    module = types.ModuleType(f"torch.{NAME}")
    module.__dict__.update(
        is_available=lambda: True,
        device_count=lambda: COUNT,
        current_device=lambda: 0,
        # they draw no numbers
        manual_seed_all=lambda seed: None,
        get_rng_state=lambda device=0: torch.empty(0, dtype=torch.uint8),
        set_rng_state=lambda state, device=0: None,
        _is_in_bad_fork=lambda: False,
        _lazy_init=lambda: None,
    )
    return module


@contextmanager
def memories(*sizes: int, cpu: int | None = None) -> Iterator[None]:
    """Emulates devices with the given numbers of free bytes, and `cpu` free bytes of CPU memory.

    accelerate asks for the few types of devices that it knows by name, else for CUDA devices: it
    gets these instead. Its device numbers, 0 and 1, then mean devices of the type that PyTorch has
    here. Nothing else of accelerate is changed.
    """
    # garbage of earlier tests would be freed during this one
    gc.collect()
    rooms = [torch.ops.emulated.room(i) for i in range(COUNT)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.cuda, "device_count", lambda: len(sizes))
        # the facts of the machine that a run records
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
    """Sets the number of free bytes of a device."""
    torch.ops.emulated.set_room(device, size)
