// client: log/slog of Go, JSONHandler
// sends: lines of JSON over TCP
// to: tcp

package main

import (
	"context"
	"log/slog"

	"senders/events"
)

func main() {
	log := slog.New(slog.NewJSONHandler(events.Output(), &slog.HandlerOptions{Level: slog.LevelDebug})).With("logger", "shop.cart")
	levels := map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError, "fatal": slog.LevelError + 4}
	for _, e := range events.All() {
		var attrs []any
		for k, v := range e.Extra() {
			attrs = append(attrs, slog.Any(k, v))
		}
		if e.Error != nil {
			attrs = append(attrs, "err", e.Error)
		}
		log.Log(context.Background(), levels[e.Level], e.Msg, attrs...)
	}
}
