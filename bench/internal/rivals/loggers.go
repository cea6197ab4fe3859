package rivals

import (
	"io"
	"time"

	"github.com/phuslu/log"
	"github.com/rs/zerolog"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// TimeFormat is the format of times in all loggers' lines.
const TimeFormat = time.RFC3339Nano

// Settings of loggers that are package variables: nanoseconds, and the same key
// for the message.
func init() {
	zerolog.TimeFieldFormat = TimeFormat
	zerolog.MessageFieldName = "msg"
	zerolog.DurationFieldUnit = time.Nanosecond
	zerolog.DurationFieldFormat = zerolog.DurationFormatInt
	log.MessageKey = "msg"
}

// Zerolog is a zerolog.Logger at level INFO.
func Zerolog(w io.Writer) zerolog.Logger {
	return zerolog.New(w).Level(zerolog.InfoLevel).With().Timestamp().Logger()
}

// ZapCore is zap's production encoder with the times of the other libraries.
// The writers here are safe for concurrent use, so there is no zapcore.Lock.
func ZapCore(w io.Writer) zapcore.Core {
	config := zap.NewProductionEncoderConfig()
	config.TimeKey = "time"
	config.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	config.EncodeDuration = zapcore.NanosDurationEncoder
	return zapcore.NewCore(zapcore.NewJSONEncoder(config), zapcore.AddSync(w), zapcore.InfoLevel)
}

// PhusluLogger is phuslu's Logger at level INFO.
func PhusluLogger(w log.Writer) *log.Logger {
	return &log.Logger{Level: log.InfoLevel, TimeFormat: TimeFormat, Writer: w}
}
