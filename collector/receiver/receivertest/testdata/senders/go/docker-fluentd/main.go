// client: Docker's driver fluentd 28.5.2, a container that prints JSON
// sends: Fluent forward
// to: forward

package main

import (
	"github.com/docker/docker/daemon/logger/fluentd"

	"senders/docker"
	"senders/events"
)

func main() {
	docker.Run(fluentd.New, map[string]string{"fluentd-address": events.Addr(), "fluentd-sub-second-precision": "true", "tag": "{{.Name}}"})
}
