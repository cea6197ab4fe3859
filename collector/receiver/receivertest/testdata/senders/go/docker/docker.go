// Package docker is a container whose output a driver of Docker passes on: log/slog's JSON.
package docker

import (
	"bytes"
	"context"
	"log/slog"
	"time"

	"github.com/docker/docker/api/types/backend"
	"github.com/docker/docker/daemon/logger"

	"senders/events"
)

const part = 16 << 10 // bytes

// Run has a container log all events.
func Run(open func(logger.Info) (logger.Logger, error), config map[string]string) {
	driver, err := open(logger.Info{Config: config, ContainerID: "0123456789abcdef0123456789abcdef", ContainerName: "/shop", ContainerImageID: "sha256:0123456789abcdef", ContainerImageName: "shop:1.2.3", ContainerCreated: time.Unix(1779972000, 0), DaemonName: "docker"})
	events.Check(err)
	var line bytes.Buffer
	log := slog.New(slog.NewJSONHandler(&line, &slog.HandlerOptions{Level: slog.LevelDebug})).With("logger", "shop.cart")
	levels := map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError, "fatal": slog.LevelError + 4}
	for _, e := range events.All() {
		var attrs []any
		for k, v := range e.Extra() {
			attrs = append(attrs, slog.Any(k, v))
		}
		if e.Error != nil {
			attrs = append(attrs, "err", e.Error)
		}
		line.Reset()
		log.Log(context.Background(), levels[e.Level], e.Msg, attrs...)
		// The daemon splits what is longer than 16 KiB, and marks the parts.
		text := bytes.TrimSuffix(line.Bytes(), []byte("\n"))
		for n, whole := 1, len(text) <= part; len(text) > 0; n++ {
			m := logger.NewMessage()
			m.Line, m.Source, m.Timestamp = append(m.Line, text[:min(len(text), part)]...), "stdout", time.Now()
			if text = text[len(m.Line):]; !whole {
				m.PLogMetaData = &backend.PartialLogMetaData{ID: "1f2e3d", Ordinal: n, Last: len(text) == 0}
			}
			events.Check(driver.Log(m))
		}
	}
	events.Check(driver.Close())
	events.Await()
}
