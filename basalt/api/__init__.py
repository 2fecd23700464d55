"""What the APIs of Kubernetes and Volcano take: versions, kinds, schemas, CEL rules, names. Knows no rule."""
