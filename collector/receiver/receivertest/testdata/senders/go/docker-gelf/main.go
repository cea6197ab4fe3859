// client: Docker's driver gelf 28.5.2, a container that prints JSON
// sends: GELF over UDP, gzip, in chunks
// to: gelf-udp

package main

import (
	"github.com/docker/docker/daemon/logger/gelf"

	"senders/docker"
	"senders/events"
)

func main() {
	docker.Run(gelf.New, map[string]string{"gelf-address": "udp://" + events.Addr(), "tag": "{{.Name}}"})
}
