// descheduler judges a policy on standard input as the descheduler does when it starts: decoded strictly,
// converted, defaulted and validated, and each profile built. It exits with 1 and says why it is refused.
package main

import (
	"context"
	"fmt"
	"os"

	scheduling "k8s.io/api/scheduling/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/descheduler/pkg/descheduler"
	"sigs.k8s.io/descheduler/pkg/descheduler/evictions"
	"sigs.k8s.io/descheduler/pkg/features"
	"sigs.k8s.io/descheduler/pkg/framework/pluginregistry"
	"sigs.k8s.io/descheduler/pkg/framework/profile"
)

func main() {
	descheduler.SetupPlugins()
	if err := judge(context.Background(), "/dev/stdin"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func judge(ctx context.Context, path string) error {
	high := &scheduling.PriorityClass{ObjectMeta: meta.ObjectMeta{Name: "high"}, Value: 1000000}
	client := fake.NewClientset(high)
	policy, err := descheduler.LoadPolicyConfig(path, client, pluginregistry.PluginRegistry)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	pods := factory.Core().V1().Pods().Informer()
	options := evictions.NewOptions()
	evictor, err := evictions.NewPodEvictor(ctx, client, &events.FakeRecorder{}, pods, features.DefaultMutableFeatureGate, options)
	if err != nil {
		return err
	}
	for _, each := range policy.Profiles {
		if _, err := profile.NewProfile(
			ctx, each, pluginregistry.PluginRegistry,
			profile.WithClientSet(client),
			profile.WithSharedInformerFactory(factory),
			profile.WithPodEvictor(evictor),
			profile.WithGetPodsAssignedToNodeFnc(nil),
		); err != nil {
			return fmt.Errorf("profile %q: %w", each.Name, err)
		}
	}
	return nil
}
