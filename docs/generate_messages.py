"""Makes src/remuda/rpc/messages/*_pb2.py of the .proto files: ``python docs/generate_messages.py``.

Generated modules need a protobuf that is at least as new as the compiler that made them. So the
compiler of the oldest protobuf that Remuda supports makes them, in an environment of its own, which
is thrown away. Needs the network. The stubs (``.pyi``) come from the compiler of this environment,
whose types are more exact.
"""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
COMPILER = "grpcio-tools==1.75.1"
PROTOBUF = "6.31.1"
"""What the compiler brings, and the lower end of the range in pyproject.toml."""


def main() -> None:
    with TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = str(Path(folder) / "bin" / "python")
        needed = [COMPILER, f"protobuf=={PROTOBUF}", "setuptools<81"]
        subprocess.run([python, "-m", "pip", "install", "--quiet", *needed], check=True)  # noqa: S603 (our own)
        source = ROOT / "src"
        files = sorted(
            str(path.relative_to(source)) for path in source.glob("remuda/rpc/messages/*.proto")
        )
        for compiler, kind in ((python, "--python_out=."), (sys.executable, "--pyi_out=.")):
            command = [compiler, "-m", "grpc_tools.protoc", "-I.", kind, *files]
            subprocess.run(command, cwd=source, check=True)  # noqa: S603


if __name__ == "__main__":
    main()
