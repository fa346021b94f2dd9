"""Certificates and a secret for the members of a round, and what its clients trust."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import trustme


def protect(folder: Path, settings: dict[str, object], hosts: Sequence[str]) -> dict[str, str]:
    """Have ``settings`` name the files of a certificate of all ``hosts``, and of a secret; the
    options with which clients connect."""
    authority = trustme.CA()
    issued = authority.issue_cert(*hosts)
    certificate, key, ca = (folder / name for name in ("member.pem", "member.key", "ca.pem"))
    secret = folder / "secret"
    for place, blob in ((key, issued.private_key_pem), (ca, authority.cert_pem)):
        blob.write_to_path(place)
    certificate.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    secret.write_text("a secret of the whole cluster, for one round\n")
    for place in (key, secret):
        place.chmod(0o600)
    settings |= {
        "tls_certificate": str(certificate),
        "tls_key": str(key),
        "tls_ca": str(ca),
        "secret_file": str(secret),
    }
    return {"ca": str(ca)}
