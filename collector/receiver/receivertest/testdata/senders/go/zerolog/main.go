// client: zerolog 1.35.1 for Go
// sends: lines of JSON over TCP
// to: tcp

package main

import (
	"senders/events"

	"github.com/rs/zerolog"
)

func main() {
	log := zerolog.New(events.Output()).With().Timestamp().Str("logger", "shop.cart").Logger()
	for _, e := range events.All() {
		level, _ := zerolog.ParseLevel(e.Level)
		log.WithLevel(level).Fields(e.Extra()).Err(e.Error).Msg(e.Msg)
	}
}
