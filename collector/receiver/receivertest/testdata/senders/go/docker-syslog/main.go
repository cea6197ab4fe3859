// client: Docker's driver syslog 28.5.2, a container that prints JSON
// sends: syslog over TCP
// to: syslog-tcp

package main

import (
	"github.com/docker/docker/daemon/logger/syslog"

	"senders/docker"
	"senders/events"
)

func main() {
	docker.Run(syslog.New, map[string]string{"syslog-address": "tcp://" + events.Addr(), "syslog-format": "rfc5424micro", "tag": "{{.Name}}"})
}
