"""From LLVM IR to machine code in memory, with a cache on disk.

A cached object is found by the digest of the IR, the versions and the machine, and is used only if the digest of its
bytes is the one stored with it; otherwise it is compiled again.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import llvmlite
from llvmlite import binding as llvm

from p4gen import stored
from p4gen.version import __version__

_LEVEL = 1
"""The optimisation level of LLVM's code generator: higher ones take several times as long without a benefit here."""


@dataclass(frozen=True)
class Machine:
    """The processor for which code is generated."""

    name: str
    features: str

    @property
    def carryless(self) -> bool:
        """Whether it has a carry-less multiplication (x86 PCLMULQDQ)."""
        return "+pclmul" in self.features.split(",")


@functools.cache
def machine() -> Machine:
    """The processor that this process runs on."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return Machine(llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten())


class Code:
    """Machine code in memory; it lives as long as this object."""

    def __init__(self, image: bytes) -> None:
        target = _target()
        self._engine: Any = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target)
        self._engine.add_object_file(llvm.object_file.ObjectFileRef.from_data(image))
        self._engine.finalize_object()

    def address(self, name: str) -> int:
        """The address of a function's machine code."""
        found: int = self._engine.get_function_address(name)
        return found


def _target() -> Any:
    host = machine()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(
        cpu=host.name, features=host.features, opt=_LEVEL, jit=True, codemodel="jitdefault", reloc="default"
    )


def cache_directory() -> Path:
    """The folder for compiled programs."""
    return stored.cache_folder("jit")


def load(text: str, cache: Path | None) -> tuple[Code, bool]:
    """The code of ``text``, and whether it came from ``cache`` (None: none is used)."""
    if cache is None:
        return Code(compile_image(text)), False
    host = machine()
    path = cache / f"{stored.key((__version__, llvmlite.__version__, host.name, host.features, str(_LEVEL), text))}.o"
    image = stored.read(path)
    if image is not None:
        return Code(image), True
    image = compile_image(text)
    stored.write(path, image)
    return Code(image), False


def compile_image(text: str) -> bytes:
    """An object file of ``text``. Raises ``RuntimeError`` if the IR is wrong, which is a bug of the generator."""
    machine()
    target = _target()
    module = llvm.parse_assembly(text)
    # LLVM aborts the process for IR that does not verify.
    module.verify()
    builder = llvm.create_pass_builder(target, llvm.create_pipeline_tuning_options(speed_level=1))
    passes = llvm.create_new_function_pass_manager()
    passes.add_sroa_pass()
    passes.add_simplify_cfg_pass()
    for function in module.functions:
        if not function.is_declaration:
            passes.run(function, builder)
    image: bytes = target.emit_object(module)
    return image
