"""The same work by other programs and by Basalt. Each folder here but inputs pins one program: go.mod and go.sum,
package-lock.json, or requirements.txt with hashes; inputs is what they are given, written for this comparison."""
