"""The rim to a Kubernetes API server: requests, what it knows, and why it refuses. Only here is the network touched.

The login is the business of the official client, which knows every kind that a kubeconfig can hold; objects go as they
are, since Basalt applies kinds that no client has classes for.
"""

import ipaddress
import json
import os
import threading
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import proxy_bypass

import urllib3
from kubernetes.client import ApiClient, Configuration
from kubernetes.client.exceptions import ApiException
from kubernetes.config import ConfigException, kube_config

from basalt.findings import Ref
from basalt.loading.files import Misuse

PARALLEL = 8  # requests at a time
_SECONDS = 60  # for one request: the API server itself gives up after as many
_RETRIES = urllib3.Retry(total=4, connect=1, backoff_factor=0.2, status_forcelist=(429,), allowed_methods=None)
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
        configuration.retries = _RETRIES.new(raise_on_status=False)
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

    def create(
        self, value: Mapping[str, Any], ref: Ref, *, subresource: str = "", dry_run: bool = False
    ) -> dict[str, Any]:
        """The object as the API server made it."""
        path = f"{self._path(ref)}/{subresource}" if subresource else self._path(ref).rpartition("/")[0]
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
        path = self._collection(api_version, kind, namespace)
        found: list[dict[str, Any]] = self.request("GET", path)["items"]
        return found

    def is_ready(self) -> bool:
        """Whether the API server takes requests."""
        return bool(self._answer("GET", f"{self.server}/readyz", {}, None).status == 200)

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
        return f"{self._collection(ref.api_version, ref.kind, ref.namespace or 'default')}/{quote(ref.name, safe='')}"

    def _collection(self, api_version: str, kind: str, namespace: str | None) -> str:
        resource = self.resource(api_version, kind)
        if resource is None:
            raise Refusal(404, "UnknownKind", f"the cluster has no kind {kind} of {api_version}")
        inside = f"/namespaces/{quote(namespace)}" if resource.is_namespaced and namespace else ""
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
        decoded: dict[str, Any] = json.loads(self._answer(method, url, headers, body).data)
        return decoded

    def _answer(self, method: str, url: str, headers: dict[str, str], body: Any) -> Any:
        try:
            return self._api.rest_client.request(
                method, url, headers=headers, body=body, query_params=[], _request_timeout=_SECONDS
            )
        except ApiException as error:
            raise _refusal(error) from None
        except _CONNECTION as error:
            raise Unreachable(_why(error)) from None

    def close(self) -> None:
        self._api.close()


def connect(kubeconfig: str | None = None, context: str | None = None) -> Cluster:
    """The cluster of a context, by default the current one of $KUBECONFIG, else of ~/.kube/config. Misuse where there
    is no such thing."""
    where = kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config"
    try:
        contexts, current = kube_config.list_kube_config_contexts(kubeconfig)
        chosen = context or current["name"]
        if chosen not in {each["name"] for each in contexts}:
            raise Misuse(f"no context {chosen} in {where}")
        configuration = Configuration()
        kube_config.load_kube_config(kubeconfig, chosen, configuration, persist_config=False)
    except ConfigException as error:
        raise Misuse(f"{where}: {error}; give --kubeconfig FILE, or set KUBECONFIG") from None
    except OSError as error:
        raise Misuse(f"{where}: {error.strerror}") from None
    return Cluster(configuration, chosen)


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


def _refusal(error: ApiException) -> Refusal:
    try:
        status = json.loads(error.body)
        causes: Sequence[Mapping[str, str]] = (status.get("details") or {}).get("causes") or ()
        fields = tuple((cause.get("field", ""), cause.get("message", "")) for cause in causes)
        return Refusal(error.status, status.get("reason") or "", status.get("message") or "", fields)
    except (ValueError, TypeError, AttributeError):  # not the API server's own words
        text = error.body if isinstance(error.body, str) else str(error.reason)
        return Refusal(error.status, "", " ".join(text.split())[:300])


def _why(error: Exception) -> str:
    """The innermost reason: urllib3 wraps what happened in what it tried."""
    reason: Any = getattr(error, "reason", None)
    inner = reason if isinstance(reason, Exception) else error
    return str(inner).rpartition(">: ")[2].rpartition("object at ")[2].partition(": ")[2] or str(inner)
