// Package examples has code for programs that use other loggers beside package rollway,
// as examples with checked output, and compiles that of docs/MIGRATE.md.
package examples

import (
	"fmt"
	"os"
	"regexp"

	"github.com/rollway/rollway/slab"
	"github.com/rs/zerolog"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// stable is an io.Writer that replaces what differs from run to run.
type stable struct{}

var varies = regexp.MustCompile(`("ts":|"time":)[^,}]*`)

func (stable) Write(p []byte) (int, error) {
	if _, err := os.Stdout.Write(varies.ReplaceAll(p, []byte(`${1}…`))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// zap is kept as it is and gets a slab.Writer: lines reach the destination in batches,
// from one goroutine, in order and counted. It is a zapcore.WriteSyncer, so Sync works too,
// and needs no zapcore.Lock.
func Example_zap() {
	lines, err := slab.New(stable{}, slab.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	encoder := zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig())
	log := zap.New(zapcore.NewCore(encoder, lines, zapcore.InfoLevel))

	log.Info("charged", zap.String("customer", "cus_123"), zap.Int("retry", 2))
	log.Warn("card expires soon", zap.Int("month", 12))

	if err := log.Sync(); err != nil {
		fmt.Println(err)
	}
	if err := lines.Close(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// {"level":"info","ts":…,"msg":"charged","customer":"cus_123","retry":2}
	// {"level":"warn","ts":…,"msg":"card expires soon","month":12}
}

// zerolog likewise.
func Example_zerolog() {
	lines, err := slab.New(stable{}, slab.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	log := zerolog.New(lines).With().Timestamp().Logger()

	log.Info().Str("customer", "cus_123").Int("retry", 2).Msg("charged")
	log.Warn().Int("month", 12).Msg("card expires soon")

	if err := lines.Close(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// {"level":"info","customer":"cus_123","retry":2,"time":…,"message":"charged"}
	// {"level":"warn","month":12,"time":…,"message":"card expires soon"}
}
