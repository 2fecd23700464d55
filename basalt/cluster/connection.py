"""The rim to a Kubernetes API server: requests, what it knows, and why it refuses. Only here is the network touched.

The login is the business of the official client, which knows every kind that a kubeconfig can hold; objects go as they
are, since Basalt applies kinds that no client has classes for.
"""

import ipaddress
import json
import logging
import os
import re
import threading
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import proxy_bypass

import urllib3
from kubernetes.client import ApiClient, Configuration
from kubernetes.config import kube_config

from basalt import names
from basalt.findings import Ref
from basalt.loading.sources import Misuse

PARALLEL = 8  # requests at a time
_TIMEOUT = urllib3.Timeout(connect=5, read=35)  # seconds; a webhook may take 30
_RETRIES = urllib3.Retry(
    connect=1, read=0, other=0, status=4, backoff_factor=0.2, status_forcelist=(429,), allowed_methods=None,
    raise_on_status=False,
)  # fmt: skip
_NOT_YAML = re.compile("[\x7f-\xa0\u2028\u2029\ufeff\ufffe\uffff]")
_ADDRESS = re.compile(r"^<[^>]*>:? ?|^[\w.]*Connection\w*\([^)]*\): ")
_CONNECTION = (urllib3.exceptions.HTTPError, OSError)


class Refusal(Exception):
    """What the API server said no to: its HTTP status, its reason's name, its words, and the fields it blames."""

    def __init__(self, status: int, reason: str, message: str, fields: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.message = message
        self.fields = fields

    @property
    def is_conflict(self) -> bool:
        """Whether other managers own fields that would change."""
        return self.status == 409 and bool(self.fields)

    @property
    def is_of_webhook(self) -> bool:
        """Whether a webhook refused, and not the API server."""
        return "admission webhook" in self.message

    @property
    def is_of_account(self) -> bool:
        """Whether the account may not do it, whatever the object says."""
        return self.status == 403 and self.message.partition(": ")[2].startswith("User ")

    @property
    def is_final(self) -> bool:
        """Whether nothing that is applied before can change it: the object itself is wrong, or the account."""
        return self.is_of_account or (self.status in (400, 422) and not self.is_of_webhook)

    @property
    def may_pass(self) -> bool:
        """Whether the same request may succeed a moment later: a webhook that is just being started, a busy
        server, a namespace that a chart is about to make."""
        is_clash = self.status == 409 and not self.fields
        return self.status in (404, 408, 429) or self.status >= 500 or is_clash


class Unreachable(Exception):
    """No answer from the API server, and why."""


class Resource(NamedTuple):
    """Where the objects of a kind are found."""

    plural: str
    is_namespaced: bool


class Cluster:
    """The API server of a context."""

    def __init__(self, configuration: Configuration, context: str) -> None:
        configuration.connection_pool_maxsize = PARALLEL
        if not _is_proxied(configuration.host):
            configuration.proxy = None
        self.context = context
        self.server = str(configuration.host)
        self._api = ApiClient(configuration)
        self._known: dict[str, dict[str, Resource]] = {}
        self._lock = threading.Lock()

    def get(self, ref: Ref) -> dict[str, Any] | None:
        """The object, None where there is none. Refusal where its kind is unknown or it may not be read."""
        try:
            return self.request("GET", self._path(ref))
        except Refusal as refusal:
            if refusal.status == 404:
                return None
            raise

    def apply(
        self, value: Mapping[str, Any], ref: Ref, manager: str, *, dry_run: bool = False, force: bool = False
    ) -> dict[str, Any]:
        """Server-side apply, unknown fields refused; the object as it then is. force takes fields over from other
        managers; dry_run changes nothing."""
        query = {"fieldManager": manager, "fieldValidation": "Strict", "force": str(force).lower()}
        if dry_run:
            query["dryRun"] = "All"
        return self.request("PATCH", self._path(ref), query, value, "application/apply-patch+yaml")

    def create(self, value: Mapping[str, Any], ref: Ref, *, dry_run: bool = False) -> dict[str, Any]:
        """The object as the API server made it."""
        path = self.collection(ref.api_version, ref.kind, ref.namespace or "default")
        query = {"fieldValidation": "Strict", **({"dryRun": "All"} if dry_run else {})}
        return self.request("POST", path, query, value)

    def delete(self, ref: Ref) -> None:
        """Deletes the object, and what it owns after it; nothing where there is none."""
        try:
            self.request("DELETE", self._path(ref))
        except Refusal as refusal:
            if refusal.status != 404:
                raise

    def list(self, api_version: str, kind: str, namespace: str | None = None) -> list[dict[str, Any]]:
        """The objects of a kind, in one namespace or in all."""
        path = self.collection(api_version, kind, namespace)
        found: list[dict[str, Any]] = self.request("GET", path)["items"]
        return found

    def is_ready(self) -> bool:
        """Whether the API server takes requests."""
        return bool(self._answer("GET", f"{self.server}/readyz", {}, None))

    def resource(self, api_version: str, kind: str) -> Resource | None:
        """How the API server serves the kind; None where it does not."""
        with self._lock:
            if api_version not in self._known:
                self._known[api_version] = self._discovered(api_version)
            return self._known[api_version].get(kind)

    def forget_kinds(self) -> None:
        """Asks anew which kinds there are: definitions have been added."""
        with self._lock:
            self._known.clear()

    def _discovered(self, api_version: str) -> dict[str, Resource]:
        try:
            answer = self.request("GET", _root(api_version))
        except Refusal as refusal:
            if refusal.status == 404:
                return {}
            raise
        served = [each for each in answer["resources"] if "/" not in each["name"]]  # not subresources
        return {each["kind"]: Resource(each["name"], each["namespaced"]) for each in served}

    def _path(self, ref: Ref) -> str:
        return f"{self.collection(ref.api_version, ref.kind, ref.namespace or 'default')}/{quote(ref.name, safe='')}"

    def collection(self, api_version: str, kind: str, namespace: str | None) -> str:
        """The path of the kind's objects, in one namespace or in all. Refusal where it is not served."""
        resource = self.resource(api_version, kind)
        if resource is None:
            raise Refusal(404, "UnknownKind", f"the cluster has no kind {kind} of {api_version}")
        inside = f"/namespaces/{quote(namespace, safe='')}" if resource.is_namespaced and namespace else ""
        return f"{_root(api_version)}{inside}/{resource.plural}"

    def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = "application/json",
    ) -> dict[str, Any]:
        """The decoded answer. Refusal where it is an error, Unreachable where there is none."""
        headers = {"Accept": "application/json", "Content-Type": content_type, "User-Agent": "basalt"}
        self._api.update_params_for_auth(headers, [], ["BearerToken"])
        url = f"{self.server}{path}" + (f"?{urlencode(query)}" if query else "")
        data = self._answer(method, url, headers, body)
        try:
            decoded: dict[str, Any] = json.loads(data)
        except ValueError:
            raise Unreachable("it answers with something else than JSON: is there a login page in between?") from None
        return decoded

    def _answer(self, method: str, url: str, headers: dict[str, str], body: Any) -> bytes:
        content = None if body is None else _encoded(body)
        try:
            answer = self._api.rest_client.pool_manager.request(
                method, url, headers=headers, body=content, timeout=_TIMEOUT, retries=_RETRIES
            )
        except _CONNECTION as error:
            raise Unreachable(_why(error)) from None
        data: bytes = answer.data
        if not 200 <= answer.status < 300:
            raise _refusal(answer.status, data)
        return data

    def close(self) -> None:
        self._api.close()


def connect(kubeconfig: str | None = None, context: str | None = None) -> Cluster:
    """The cluster of a context, by default the current one of $KUBECONFIG, else of ~/.kube/config. Misuse where there
    is no such thing, or its login comes to nothing."""
    where = kubeconfig if kubeconfig is not None else os.environ.get("KUBECONFIG") or "~/.kube/config"
    said = _Said()
    logging.getLogger().addHandler(said)  # where the client tells why a login plugin failed
    configuration = Configuration()
    try:
        chosen, user = _chosen(where, context)
        kube_config.load_kube_config(where, chosen, configuration, persist_config=False)
    except Misuse:
        raise
    except OSError as error:
        raise Misuse(f"{where}: {error.strerror or error}") from None
    except Exception as error:  # noqa: BLE001 # the client lets through whatever a crooked file makes of its code
        raise Misuse(f"{where}: {_one_line(error)}; give --kubeconfig FILE, or set KUBECONFIG") from None
    finally:
        logging.getLogger().removeHandler(said)
    if user and not (configuration.api_key or configuration.cert_file or configuration.username):
        reason = f": {' '.join(said.lines)}" if said.lines else ""
        raise Misuse(f"the user {user} of context {chosen} has no login that works{reason}")
    return Cluster(configuration, chosen)


def _chosen(where: str, context: str | None) -> tuple[str, str | None]:
    """The context's name, and that of its user."""
    merged = kube_config.KubeConfigMerger(where).config
    if merged is None:
        raise Misuse(f"{where}: no such file; give --kubeconfig FILE, or set KUBECONFIG")
    chosen = context or merged.safe_get("current-context")
    if not chosen:
        raise Misuse(f"{where} has no current context; give --context NAME")
    contexts = {each["name"]: each["context"] for each in merged.value.get("contexts") or ()}
    if chosen not in contexts:
        raise Misuse(f"no context {chosen} in {where}; {names.did_you_mean(chosen, contexts)}".rstrip("; "))
    return str(chosen), contexts[chosen].safe_get("user")


class _Said(logging.Handler):
    """Keeps what is logged."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(" ".join(record.getMessage().split()))


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _root(api_version: str) -> str:
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"


def _is_proxied(server: str) -> bool:
    """As Go's net/http has it: never for this machine itself, else as no_proxy says."""
    host = urlsplit(server).hostname or ""
    try:
        is_here = ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_here = host == "localhost"
    return not is_here and not proxy_bypass(host)


def _encoded(body: Any) -> bytes:
    """As JSON that is YAML too, which the API server takes an apply patch for: YAML knows no pairs of surrogates, and
    breaks lines at more characters."""
    return _NOT_YAML.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(body, ensure_ascii=False)).encode()


def _refusal(code: int, body: bytes) -> Refusal:
    try:
        status = json.loads(body)
        causes: Sequence[Mapping[str, str]] = (status.get("details") or {}).get("causes") or ()
        fields = tuple((cause.get("field", ""), cause.get("message", "")) for cause in causes)
        return Refusal(code, status.get("reason") or "", status.get("message") or "", fields)
    except (ValueError, TypeError, AttributeError):  # not the API server's own words
        text = " ".join(body.decode(errors="replace").split())
        return Refusal(code, "", text[:300] or f"status {code}")


def _why(error: Exception) -> str:
    """The innermost reason: urllib3 wraps what happened in what it tried."""
    reason: Any = getattr(error, "reason", None)
    inner = reason if isinstance(reason, Exception) else error
    return _ADDRESS.sub("", str(inner)) or type(inner).__name__
