// client: logrus 1.10.2 for Go
// sends: lines of JSON over TCP
// to: tcp

package main

import (
	"senders/events"

	"github.com/sirupsen/logrus"
)

func main() {
	log := logrus.New()
	log.Out, log.Level, log.ExitFunc = events.Output(), logrus.DebugLevel, func(int) {}
	log.Formatter = new(logrus.JSONFormatter)
	for _, e := range events.All() {
		level, _ := logrus.ParseLevel(e.Level)
		entry := log.WithField("logger", "shop.cart").WithFields(e.Extra())
		if e.Error != nil {
			entry = entry.WithError(e.Error)
		}
		entry.Log(level, e.Msg)
	}
}
