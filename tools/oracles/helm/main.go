// helm renders a chart as `helm template --include-crds` does, from a request on standard input, and writes what a
// cluster would be sent. It exits with 1 and says why where Helm refuses the chart or its values.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/releaseutil"
	"sigs.k8s.io/yaml"
)

type request struct {
	Chart      string         // its folder
	Name       string         // of the release
	Namespace  string         // of the release
	Kubernetes string         // the cluster's version
	Values     map[string]any // over those of the chart
}

type answer struct {
	Objects []json.RawMessage `json:"objects"`
	Left    []string          `json:"left"` // subcharts that the values switch on and that are not to be had
}

func main() {
	var asked request
	if err := json.NewDecoder(os.Stdin).Decode(&asked); err != nil {
		refuse(err)
	}
	rendered, err := render(asked)
	if err != nil {
		refuse(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(rendered); err != nil {
		refuse(err)
	}
}

func refuse(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// render takes the steps of pkg/action: Install.RunWithContext and Configuration.renderResources.
func render(asked request) (*answer, error) {
	loaded, err := loader.LoadDir(asked.Chart)
	if err != nil {
		return nil, err
	}
	if err := addNeighbours(loaded, filepath.Dir(asked.Chart)); err != nil {
		return nil, err
	}
	if err := chartutil.ProcessDependenciesWithMerge(loaded, asked.Values); err != nil {
		return nil, err
	}
	capabilities, err := capabilitiesOf(loaded, asked.Kubernetes)
	if err != nil {
		return nil, err
	}
	options := chartutil.ReleaseOptions{Name: asked.Name, Namespace: asked.Namespace, Revision: 1, IsInstall: true}
	values, err := chartutil.ToRenderValues(loaded, asked.Values, options, capabilities)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(loaded, values)
	if err != nil {
		return nil, err
	}
	return sorted(loaded, files, capabilities)
}

// addNeighbours takes the dependencies that are not packed into the chart from the folders beside it, as `helm
// dependency build` would from their repositories. Helm itself leaves out those whose version does not fit.
func addNeighbours(loaded *chart.Chart, beside string) error {
	for _, needed := range loaded.Metadata.Dependencies {
		folder := filepath.Join(beside, needed.Name)
		if _, err := os.Stat(filepath.Join(folder, "Chart.yaml")); err != nil || holds(loaded, needed.Name) {
			continue
		}
		found, err := loader.LoadDir(folder)
		if err != nil {
			return err
		}
		loaded.AddDependency(found)
	}
	return nil
}

func holds(loaded *chart.Chart, name string) bool {
	for _, each := range loaded.Dependencies() {
		if each.Name() == name {
			return true
		}
	}
	return false
}

func capabilitiesOf(loaded *chart.Chart, version string) (*chartutil.Capabilities, error) {
	kubernetes, err := chartutil.ParseKubeVersion(version)
	if err != nil {
		return nil, err
	}
	if wanted := loaded.Metadata.KubeVersion; wanted != "" && !chartutil.IsCompatibleRange(wanted, kubernetes.String()) {
		return nil, fmt.Errorf("chart requires kubeVersion: %s which is incompatible with Kubernetes %s", wanted, kubernetes)
	}
	capabilities := chartutil.DefaultCapabilities.Copy()
	capabilities.KubeVersion = *kubernetes
	return capabilities, nil
}

func sorted(loaded *chart.Chart, files map[string]string, capabilities *chartutil.Capabilities) (*answer, error) {
	for name := range files {
		if filepath.Base(name) == "NOTES.txt" {
			delete(files, name)
		}
	}
	hooks, manifests, err := releaseutil.SortManifests(files, capabilities.APIVersions, releaseutil.InstallOrder)
	if err != nil {
		return nil, err
	}
	var texts []string
	for _, crd := range loaded.CRDObjects() {
		for _, text := range releaseutil.SplitManifests(string(crd.File.Data)) {
			texts = append(texts, text)
		}
	}
	for _, manifest := range manifests {
		texts = append(texts, manifest.Content)
	}
	for _, hook := range hooks {
		texts = append(texts, hook.Manifest)
	}
	objects, err := parsed(texts)
	return &answer{Objects: objects, Left: left(loaded)}, err
}

// parsed reads the texts as the client of Helm does.
func parsed(texts []string) ([]json.RawMessage, error) {
	var objects []json.RawMessage
	for _, text := range texts {
		object, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			return nil, err
		}
		if string(object) != "null" {
			objects = append(objects, object)
		}
	}
	return objects, nil
}

func left(loaded *chart.Chart) []string {
	names := []string{}
	for _, needed := range loaded.Metadata.Dependencies { // those that are switched off are gone by now
		if !holds(loaded, needed.Name) {
			names = append(names, needed.Name)
		}
	}
	return names
}
