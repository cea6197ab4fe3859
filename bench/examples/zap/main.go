// Command zap keeps zap as it is and gives it a slab.Writer: lines reach
// the destination in batches, from one goroutine, in order and counted. A
// slab.Writer is a zapcore.WriteSyncer, so Sync works too.
package main

import (
	"fmt"
	"os"

	"github.com/rollway/rollway/slab"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	lines, err := slab.New(os.Stdout, slab.Options{})
	if err != nil {
		return err
	}
	encoder := zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig())
	log := zap.New(zapcore.NewCore(encoder, lines, zapcore.InfoLevel)) // no zapcore.Lock: lines is safe for concurrent use

	log.Info("charged", zap.String("customer", "cus_123"), zap.Int("retry", 2))
	log.Warn("card expires soon", zap.Int("month", 12))

	if err := log.Sync(); err != nil {
		return err
	}
	return lines.Close()
}
