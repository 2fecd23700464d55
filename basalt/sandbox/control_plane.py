"""The order in which a sandbox's processes start, and what each waits for.

Sources of the flags and of the order: the programs' --help, and what was seen with exactly these versions. The
controllers start after the definitions, or the garbage collector does not know them for a while; nodes are there before
the scheduler's first session, which keeps the root queue's first guarantee.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import urllib3

from basalt import names
from basalt.cluster import connection, parallel, planning
from basalt.cluster.connection import Cluster, Refusal, Unreachable
from basalt.cluster.settling import has_condition
from basalt.gathering.documents import ref_of
from basalt.sandbox import certificates, manifests, processes
from basalt.sandbox.certificates import Authority
from basalt.sandbox.manifests import Value, Wanted
from basalt.sandbox.programs import Programs

MANAGER = "basalt-sandbox"
_HERE = "127.0.0.1"
_SERVICES = "10.0.0.0/24"
_SERVER_NAMES = (_HERE, "localhost", "10.0.0.1", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
_PATIENCE = 90  # seconds that a step has; each takes one or two on two cores
_PAUSE = 0.05  # seconds between the first two looks
_NODES_A_SECOND = 20  # at least
_CONTROLLERS = "*,-persistentvolume-attach-detach-controller,-service-cidr-controller"

_UNTHROTTLED = ("--kube-api-qps=1000", "--kube-api-burst=1000")  # by default clients hold themselves back

Progress = Callable[[str], None]


class Failed(Exception):
    """What did not start, in one line."""


class ControlPlane:
    """The processes of one sandbox, in its folder. record is told of every process that was started, at once."""

    def __init__(self, folder: Path, programs: Programs, record: Callable[[processes.Started], None]) -> None:
        self._folder = folder
        self._programs = programs
        self._record = record
        self._authority = Authority.new()
        self._started: list[processes.Started] = []
        self.kubeconfig = folder / "kubeconfig"

    def start(self, name: str, wanted: Wanted, progress: Progress) -> None:
        """Starts everything; returns when jobs can be submitted. Failed where something does not come up."""
        (self._folder / "logs").mkdir()
        for note in wanted.notes:
            progress(note)
        progress("starting etcd and the API server")
        server = self._api_server(self._etcd())
        self.kubeconfig.write_text(certificates.kubeconfig(name, server, self._authority, *certificates.ADMINISTRATOR))
        cluster = connection.connect(str(self.kubeconfig), None)
        self._wait("the API server", lambda: _is_ready(cluster))
        progress("adding Volcano's definitions")
        volcano = self._programs.text("volcano.yaml")
        self._define(cluster, manifests.definitions(volcano))
        self._stand_in(cluster, wanted, progress)
        progress(f"adding {len(wanted.nodes)} nodes")
        _create_nodes(cluster, wanted.nodes)
        self._controllers()
        progress("starting Volcano")
        self._webhooks(cluster, volcano)
        self._volcano(wanted.scheduler)
        self._wait("Volcano's scheduler", lambda: _is_open(cluster, "default"))
        progress("waiting for the nodes")
        ready = {each["metadata"]["name"] for each in wanted.nodes if each["metadata"].get("annotations")}
        self._wait("the nodes", lambda: ready <= _usable(cluster), _PATIENCE + len(ready) // _NODES_A_SECOND)
        cluster.close()

    def _stand_in(self, cluster: Cluster, wanted: Wanted, progress: Progress) -> None:
        """Makes what the environment needs and neither declares nor can have here."""
        kinds = {kind: each for kind, each in wanted.kinds.items() if cluster.resource(*kind) is None}
        self._define(cluster, manifests.stand_ins(kinds))
        made = {
            "kinds": sorted({kind for _, kind in kinds}),
            "namespaces": wanted.strange_namespaces,
            "claims": ["/".join(each) for each in wanted.claims],
        }
        for what, strange in made.items():
            if strange:
                progress(f"standing in for {what} that nothing here brings: {names.listed(strange, most=12)}")
        _apply(cluster, manifests.only(self._programs.text("storage-class.yaml")))
        for namespace in wanted.namespaces:
            _apply(cluster, namespace, planning.MANAGER)  # as `basalt apply` would
        for claim in wanted.claims:
            _apply(cluster, manifests.claim(*claim))

    def _run(self, name: str, *flags: str) -> None:
        with processes.undivided():  # or there would be a process that nobody knows of
            self._started.append(processes.start(name, [self._programs.program(name), *flags], self._folder))
            self._record(self._started[-1])

    def _wait(self, what: str, is_there: Callable[[], bool], patience: int = _PATIENCE) -> None:
        """Until it is there; Failed where that takes too long, or a process has ended meanwhile."""
        end, pause = time.monotonic() + patience, _PAUSE
        while not is_there():
            for process in self._started:
                if not process.is_running:
                    words = processes.last_words(self._folder / "logs" / f"{process.name}.log")
                    raise Failed(f"{process.name} ended: {words}")
            if time.monotonic() > end:
                raise Failed(f"{what} did not come up in {patience} s")
            time.sleep(pause)
            pause = min(pause * 1.2, 1)  # to look at many nodes is work, too

    def _file(self, name: str, content: bytes | str) -> str:
        path = self._folder / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    def _etcd(self) -> str:
        clients, peers = (f"http://{_HERE}:{processes.free_port()}" for _ in range(2))
        self._run(
            "etcd",
            f"--data-dir={self._folder / 'etcd'}",
            f"--listen-client-urls={clients}",
            f"--advertise-client-urls={clients}",
            f"--listen-peer-urls={peers}",
            f"--initial-advertise-peer-urls={peers}",
            f"--initial-cluster=default={peers}",
            "--unsafe-no-fsync",  # its data is thrown away
            "--log-level=warn",
        )
        self._wait("etcd", lambda: _answers(f"{clients}/health"))
        return clients

    def _api_server(self, etcd: str) -> str:
        authority = self._authority.pem
        serving, tokens = self._authority.server(*_SERVER_NAMES), certificates.service_account_key()
        port = processes.free_port()
        self._file("ca.key", authority.key)
        self._run(
            "kube-apiserver",
            f"--etcd-servers={etcd}",
            f"--bind-address={_HERE}",
            f"--secure-port={port}",
            f"--tls-cert-file={self._file('apiserver.crt', serving.certificate)}",
            f"--tls-private-key-file={self._file('apiserver.key', serving.key)}",
            f"--client-ca-file={self._file('ca.crt', authority.certificate)}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={self._file('sa.pub', tokens.certificate)}",
            f"--service-account-signing-key-file={self._file('sa.key', tokens.key)}",
            f"--service-cluster-ip-range={_SERVICES}",
            "--authorization-mode=Node,RBAC",
            "--allow-privileged=true",
            "--endpoint-reconciler-type=none",  # loopback is no address that it would advertise
            "--max-requests-inflight=0",
            "--max-mutating-requests-inflight=0",
            "--enable-priority-and-fairness=false",
        )
        return f"https://{_HERE}:{port}"

    def _define(self, cluster: Cluster, definitions: Iterable[Value]) -> None:
        applied = parallel.each(lambda each: _apply(cluster, each), definitions)
        names = {each["metadata"]["name"] for each in applied}
        self._wait("the definitions", lambda: names <= _established(cluster))
        cluster.forget_kinds()

    def _controllers(self) -> None:
        server = str(self.kubeconfig)
        stages = manifests.stages(self._programs.text("stages.yaml"))
        self._run(
            "kwok",
            f"--kubeconfig={server}",
            f"--config={self._file('stages.yaml', stages)}",
            f"--manage-nodes-with-annotation-selector={manifests.KUBELETS}",
            f"--server-address={_HERE}:{processes.free_port()}",
            f"--node-ip={_HERE}",
        )
        self._run(
            "kube-controller-manager",
            f"--kubeconfig={server}",
            "--leader-elect=false",
            f"--bind-address={_HERE}",
            f"--secure-port={processes.free_port()}",
            f"--cert-dir={self._folder / 'kube-controller-manager'}",
            "--use-service-account-credentials=true",
            f"--service-account-private-key-file={self._folder / 'sa.key'}",
            f"--root-ca-file={self._folder / 'ca.crt'}",
            f"--controllers={_CONTROLLERS}",
            "--node-monitor-grace-period=24h",  # KWOK's nodes send no heartbeats: each would be lost every 50 s
            *_UNTHROTTLED,
        )

    def _webhooks(self, cluster: Cluster, volcano: str) -> None:
        """The configurations come first: the webhook manager waits for them, one after the other."""
        port = processes.free_port()
        url = f"https://{_HERE}:{port}"
        serving = self._authority.server(_HERE)
        configurations = manifests.webhooks(volcano, url, self._authority.certificate)
        self._run(
            "vc-webhook-manager",
            f"--kubeconfig={self.kubeconfig}",
            f"--listen-address={_HERE}",
            f"--port={port}",
            f"--tls-cert-file={self._file('webhook.crt', serving.certificate)}",
            f"--tls-private-key-file={self._file('webhook.key', serving.key)}",
            f"--ca-cert-file={self._folder / 'ca.crt'}",
            f"--webhook-url={url}",
            f"--enabled-admission={','.join(manifests.paths(configurations, url))}",
        )
        parallel.each(lambda each: _apply(cluster, each), configurations)
        self._wait("Volcano's webhooks", lambda: processes.is_listening(port))

    def _volcano(self, scheduler: str) -> None:
        folder = self._folder / "scheduler"  # the scheduler watches the whole folder
        folder.mkdir()
        common = (f"--kubeconfig={self.kubeconfig}", "--leader-elect=false")
        self._run(
            "vc-scheduler",
            *common,
            f"--scheduler-conf={self._file('scheduler/volcano-scheduler.conf', scheduler)}",
            f"--listen-address={_HERE}:{processes.free_port()}",
            "--schedule-period=100ms",
            *_UNTHROTTLED,
            "--cache-dumper=false",
        )
        self._run(
            "vc-controller-manager",
            *common,
            f"--listen-address={_HERE}:{processes.free_port()}",
            *_UNTHROTTLED,
        )


def _answers(url: str) -> bool:
    try:
        return urllib3.PoolManager(retries=False, timeout=1.0).request("GET", url).status == 200
    except urllib3.exceptions.HTTPError:
        return False


def _is_ready(cluster: Cluster) -> bool:
    try:
        return cluster.is_ready()
    except (Refusal, Unreachable):
        return False


def _apply(cluster: Cluster, value: Value, manager: str = MANAGER) -> Value:
    ref = ref_of(value)
    assert ref is not None
    return cluster.apply(value, ref, manager)


def _established(cluster: Cluster) -> set[str]:
    found = cluster.list("apiextensions.k8s.io/v1", "CustomResourceDefinition")
    return {each["metadata"]["name"] for each in found if has_condition(each, "Established")}


def _create_nodes(cluster: Cluster, nodes: Sequence[Value]) -> None:
    def create(node: Value) -> None:
        ref = ref_of(node)
        assert ref is not None
        cluster.create(node, ref)

    parallel.each(create, nodes)


def _is_open(cluster: Cluster, queue: str) -> bool:
    queues = cluster.list("scheduling.volcano.sh/v1beta1", "Queue")
    return any(each["metadata"]["name"] == queue and each.get("status", {}).get("state") == "Open" for each in queues)


def _usable(cluster: Cluster) -> set[str]:
    """The nodes that are Ready and no longer tainted for not having been so."""
    found = [each for each in cluster.list("v1", "Node") if has_condition(each, "Ready")]
    return {each["metadata"]["name"] for each in found if not _is_tainted(each)}


def _is_tainted(node: Value) -> bool:
    return any(each["key"] == "node.kubernetes.io/not-ready" for each in node["spec"].get("taints") or [])
