// client: hclog 1.6.3 for Go, JSON
// sends: lines of JSON over TCP
// to: tcp

package main

import (
	"senders/events"

	"github.com/hashicorp/go-hclog"
)

func main() {
	log := hclog.New(&hclog.LoggerOptions{Name: "shop.cart", Level: hclog.Debug, Output: events.Output(), JSONFormat: true})
	for _, e := range events.All() {
		var args []any
		for k, v := range e.Extra() {
			args = append(args, k, v)
		}
		if e.Error != nil {
			args = append(args, "error", e.Error)
		}
		level := hclog.LevelFromString(e.Level)
		if e.Level == "fatal" {
			level = hclog.Error
		}
		log.Log(level, e.Msg, args...)
	}
}
