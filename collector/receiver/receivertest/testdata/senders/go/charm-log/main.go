// client: charmbracelet/log 1.0.0 for Go, JSON
// sends: lines of JSON over TCP
// to: tcp

package main

import (
	"senders/events"

	"github.com/charmbracelet/log"
)

func main() {
	logger := log.NewWithOptions(events.Output(), log.Options{Level: log.DebugLevel, Formatter: log.JSONFormatter, ReportTimestamp: true, Prefix: "shop.cart"})
	for _, e := range events.All() {
		var args []any
		for k, v := range e.Extra() {
			args = append(args, k, v)
		}
		if e.Error != nil {
			args = append(args, "err", e.Error)
		}
		level, _ := log.ParseLevel(e.Level)
		logger.Log(level, e.Msg, args...)
	}
}
