[
  {
    apiVersion: 'topology.volcano.sh/v1alpha1',
    kind: 'HyperNode',
    metadata: { name: each.name, labels: { 'app.kubernetes.io/managed-by': 'basalt' } },
    spec: {
      tier: 1,
      tierName: 'rack',
      members: [{ type: 'Node', selector: { exactMatch: { name: node } } } for node in each.nodes],
    },
  }
  for each in std.parseJson(importstr 'hypernodes.json').hyperNodes
]
