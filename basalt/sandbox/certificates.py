"""The sandbox's certificates, made anew for each: one authority, what the servers show, and who the clients are."""

import base64
import datetime as dt
import ipaddress
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_VALID = dt.timedelta(days=30)  # nobody keeps a sandbox that long
_EARLIER = dt.timedelta(minutes=5)  # clocks differ
ADMINISTRATOR = ("basalt-sandbox", ("system:masters",))  # a group that is allowed everything without any role


class Certificate(NamedTuple):
    """A certificate and its key, as PEM."""

    certificate: bytes
    key: bytes


@dataclass(frozen=True)
class Authority:
    """Signs every certificate of one sandbox."""

    name: x509.Name
    key: ec.EllipticCurvePrivateKey
    certificate: bytes

    @classmethod
    def new(cls) -> "Authority":
        name, key = _name("basalt-sandbox-ca", ()), ec.generate_private_key(ec.SECP256R1())
        builder = _builder(name, name, key).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        signed = builder.sign(key, hashes.SHA256())
        return cls(name, key, signed.public_bytes(serialization.Encoding.PEM))

    @classmethod
    def read(cls, found: Certificate) -> "Authority":
        key = serialization.load_pem_private_key(found.key, None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        return cls(x509.load_pem_x509_certificate(found.certificate).subject, key, found.certificate)

    @property
    def pem(self) -> Certificate:
        return Certificate(self.certificate, _private(self.key))

    def server(self, *names: str) -> Certificate:
        """For a server that is reached under the names, DNS names or IP addresses."""
        alternatives = x509.SubjectAlternativeName([_alternative(name) for name in names])
        return self._signed(_name(names[0], ()), ExtendedKeyUsageOID.SERVER_AUTH, alternatives)

    def client(self, user: str, groups: Sequence[str] = ()) -> Certificate:
        """For a client that the API server takes for that user of those groups."""
        return self._signed(_name(user, groups), ExtendedKeyUsageOID.CLIENT_AUTH, None)

    def _signed(
        self, subject: x509.Name, usage: x509.ObjectIdentifier, alternatives: x509.SubjectAlternativeName | None
    ) -> Certificate:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(subject, self.name, key).add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        if alternatives is not None:
            builder = builder.add_extension(alternatives, critical=False)
        signed = builder.sign(self.key, hashes.SHA256())
        return Certificate(signed.public_bytes(serialization.Encoding.PEM), _private(key))


def service_account_key() -> Certificate:
    """What the API server signs the tokens of service accounts with: the public and the private key, as PEM."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    return Certificate(public, _private(key))


def kubeconfig(name: str, server: str, authority: Authority, user: str, groups: Sequence[str]) -> str:
    """A kubeconfig of one context, which holds the certificates themselves."""
    client = authority.client(user, groups)
    cluster = {"server": server, "certificate-authority-data": _encoded(authority.certificate)}
    login = {"client-certificate-data": _encoded(client.certificate), "client-key-data": _encoded(client.key)}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": user, "user": login}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": user}}],
        "current-context": name,
    }
    return json.dumps(config, indent=2) + "\n"  # JSON is YAML


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _EARLIER)
        .not_valid_after(now + _VALID)
    )


def _name(common_name: str, groups: Sequence[str]) -> x509.Name:
    """Kubernetes reads the user from the common name, and its groups from the organisations."""
    organisations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*organisations, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _private(key: PrivateKeyTypes) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _encoded(text: bytes) -> str:
    return base64.b64encode(text).decode()
