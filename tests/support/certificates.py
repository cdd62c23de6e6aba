"""Certificates and keys as files: an authority, a server on loopback, and nodes."""

import datetime
import ipaddress

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = datetime.timedelta(days=1)


def write_certificates(folder):
    """`ca.crt`, and `server.pem` with `server.key` for 127.0.0.1."""
    authority, server = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    root = _named("an authority")
    here = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    basic = x509.BasicConstraints(ca=True, path_length=None)
    certificates = {
        "ca.crt": _signed(root, authority, root, authority, (basic, True)),
        "server.pem": _signed(_named("a server"), server, root, authority, (here, False)),
    }
    for name, certificate in certificates.items():
        (folder / name).write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    key = server.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "server.key").write_bytes(key)


def write_keys(folder, name):
    """NAME and NAME.pub, as `ssh-keygen -t ecdsa -b 384` makes them."""
    key, kind = ec.generate_private_key(ec.SECP384R1()), serialization
    text = key.private_bytes(
        kind.Encoding.PEM, kind.PrivateFormat.OpenSSH, kind.NoEncryption()
    )  # fmt: skip
    (folder / name).write_bytes(text)
    known = key.public_key().public_bytes(kind.Encoding.OpenSSH, kind.PublicFormat.OpenSSH)
    (folder / f"{name}.pub").write_bytes(known)


def _named(name):
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _signed(name, key, issuer, by, extension):
    now = datetime.datetime.now(datetime.UTC)
    made = x509.CertificateBuilder().subject_name(name).issuer_name(issuer)
    made = made.public_key(key.public_key()).serial_number(x509.random_serial_number())
    made = made.not_valid_before(now - DAY).not_valid_after(now + DAY)
    return made.add_extension(*extension).sign(by, hashes.SHA256())
