// Writes dist/hypernodes.k8s.yaml from hypernodes.json in the working directory.
const { readFileSync } = require("node:fs");
const { ApiObject, App, Chart } = require("cdk8s");

const app = new App();
const chart = new Chart(app, "hypernodes");
for (const { name, nodes } of JSON.parse(readFileSync("hypernodes.json", "utf8")).hyperNodes) {
  new ApiObject(chart, name, {
    apiVersion: "topology.volcano.sh/v1alpha1",
    kind: "HyperNode",
    metadata: { name, labels: { "app.kubernetes.io/managed-by": "basalt" } },
    spec: {
      tier: 1,
      tierName: "rack",
      members: nodes.map((node) => ({ type: "Node", selector: { exactMatch: { name: node } } })),
    },
  });
}
app.synth();
