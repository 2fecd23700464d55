// volcano judges a scheduler configuration on standard input as Volcano's scheduler does when it starts, and whether
// the plugins that it names exist, which the scheduler only logs. It exits with 1 and says why it is refused.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"volcano.sh/volcano/pkg/scheduler"
	_ "volcano.sh/volcano/pkg/scheduler/actions"
	"volcano.sh/volcano/pkg/scheduler/framework"
	_ "volcano.sh/volcano/pkg/scheduler/plugins"
)

func main() {
	text, err := io.ReadAll(os.Stdin)
	if err == nil {
		err = judge(string(text))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// judge takes the steps of Scheduler.loadSchedulerConf in pkg/scheduler/scheduler.go, and of OpenSession.
func judge(text string) (err error) {
	_, tiers, _, _, err := scheduler.UnmarshalSchedulerConf(strings.TrimSpace(text))
	if err != nil {
		return err
	}
	for _, tier := range tiers {
		for _, plugin := range tier.Plugins {
			if _, found := framework.GetPluginBuilder(plugin.Name); !found {
				err = errors.Join(err, fmt.Errorf("failed to get plugin %s", plugin.Name))
			}
		}
	}
	return err
}
