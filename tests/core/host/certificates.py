"""Certificates made by the openssl program: a CA that is trusted, one that is not, a server's own."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from pathlib import Path

from tests.support import require


class Authority:
    """A certificate authority in a folder."""

    def __init__(self, folder: Path, name: str) -> None:
        require(shutil.which("openssl"), "the openssl program makes the certificates")
        self._folder, self._name = folder, name
        self._openssl(
            *("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}"),
            *("-keyout", f"{name}.key", "-out", f"{name}.pem"),
            *("-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign"),
        )

    def client(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self._folder / f"{self._name}.pem"))

    def server(self, host: str, *, days: int = 2) -> ssl.SSLContext:
        (self._folder / f"{host}.ext").write_text(f"subjectAltName=DNS:{host}\n")
        self._openssl(
            *("req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={host}"),
            *("-keyout", f"{host}.key", "-out", f"{host}.csr"),
        )
        self._openssl(
            *("x509", "-req", "-in", f"{host}.csr", "-days", str(days), "-out", f"{host}.pem"),
            *("-CA", f"{self._name}.pem", "-CAkey", f"{self._name}.key", "-CAcreateserial", "-extfile", f"{host}.ext"),
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._folder / f"{host}.pem", self._folder / f"{host}.key")
        return context

    def _openssl(self, *arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=self._folder, check=True, capture_output=True)
