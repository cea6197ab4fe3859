// client: zap 1.28.0 for Go
// sends: lines of JSON over TCP
// to: tcp

package main

import (
	"senders/events"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

func main() {
	enc := zap.NewProductionEncoderConfig()
	core := zapcore.NewCore(zapcore.NewJSONEncoder(enc), zapcore.AddSync(events.Output()), zap.DebugLevel)
	log := zap.New(core, zap.AddStacktrace(zap.ErrorLevel), zap.WithFatalHook(zapcore.WriteThenPanic)).Named("shop.cart")
	levels := map[string]zapcore.Level{"debug": zap.DebugLevel, "info": zap.InfoLevel, "warn": zap.WarnLevel, "error": zap.ErrorLevel, "fatal": zap.FatalLevel}
	for _, e := range events.All() {
		var fields []zap.Field
		for k, v := range e.Extra() {
			fields = append(fields, zap.Any(k, v))
		}
		if e.Error != nil {
			fields = append(fields, zap.Error(e.Error))
		}
		func() {
			defer func() { recover() }()
			log.Log(levels[e.Level], e.Msg, fields...)
		}()
	}
	log.Sync()
}
