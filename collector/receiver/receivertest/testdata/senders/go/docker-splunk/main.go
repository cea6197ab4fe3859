// client: Docker's driver splunk 28.5.2, a container that prints JSON
// sends: Splunk's HTTP Event Collector, after OPTIONS
// to: http

package main

import (
	"github.com/docker/docker/daemon/logger/splunk"

	"senders/docker"
	"senders/events"
)

func main() {
	docker.Run(splunk.New, map[string]string{"splunk-url": "http://" + events.Addr(), "splunk-token": "secret", "tag": "{{.Name}}"})
}
