package writers

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"time"

	plog "github.com/phuslu/log"
	"github.com/rollway/rollway"
	"github.com/rollway/rollway/file"
	"github.com/rollway/rollway/slab"
	"github.com/rs/zerolog"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// A Combo is a logger over a writer over a real file.
type Combo struct {
	Name  string
	Own   bool // package rollway over this project's writer
	Lent  bool // another logger over this project's writer
	Floor bool // no logger: the line is put together by hand
	Lossy bool // drops lines by design rather than wait

	logger func(w io.Writer) (logFunc, error)

	// Open returns a function that logs one line, safe for concurrent use, and
	// one that closes everything once all is in files in dir.
	Open func(dir string) (log logFunc, closeAll func() error, err error)
}

// logFunc logs message with a worker's number, a sequence number and padding.
type logFunc func(worker, seq int, pad string)

const (
	message    = "payment settled"
	timeFormat = time.RFC3339Nano
)

// Loggers' settings that are package variables: nanoseconds in times, as the
// others have them, and the same key for the message.
func init() {
	zerolog.TimeFieldFormat = timeFormat
	zerolog.MessageFieldName = "msg"
	plog.MessageKey = "msg"
}

// Combos lists the combinations, our own first.
func Combos() []Combo {
	combos := []Combo{{Name: "rollway over slab", Own: true, logger: rollwayLog, Open: overSlab(rollwayLog, slab.Options{})}}
	if CanPersist() {
		combos = append(combos, Combo{Name: "rollway over slab persisted", Own: true, logger: rollwayLog, Open: overPersisted(rollwayLog)})
	}
	return append(combos,
		Combo{Name: "zerolog over slab", Lent: true, logger: zerologLog, Open: overSlab(zerologLog, slab.Options{})},
		Combo{Name: "phuslu/log over slab", Lent: true, logger: phusluLog, Open: overSlab(phusluLog, slab.Options{})},
		Combo{Name: "zap over slab", Lent: true, logger: zapLog, Open: overSlab(zapLog, slab.Options{})},
		Combo{Name: "log/slog over slab", Lent: true, logger: slogLog, Open: overSlab(slogLog, slab.Options{})},
		Combo{Name: "zerolog over slab design as published", logger: zerologLog, Open: overFile(zerologLog, openPublishedSlab)},
		Combo{Name: "phuslu/log over slab design as published", logger: phusluLog, Open: overFile(phusluLog, openPublishedSlab)},
		Combo{Name: "phuslu/log over mutex and bufio 256 KiB", logger: phusluLog, Open: overFile(phusluLog, openMutex)},
		Combo{Name: "zerolog over diode 1000", Lossy: true, logger: zerologLog, Open: overFile(zerologLog, openDiode(1000))},
		Combo{Name: "zerolog over diode 100000", Lossy: true, logger: zerologLog, Open: overFile(zerologLog, openDiode(100_000))},
		Combo{Name: "zap over BufferedWriteSyncer", logger: zapLog, Open: overFile(zapLog, func(dst io.Writer) (io.WriteCloser, error) {
			return zapWriter{&zapcore.BufferedWriteSyncer{WS: zapcore.AddSync(dst), FlushInterval: 100 * time.Millisecond}}, nil
		})},
		Combo{Name: "phuslu/log over its AsyncWriter and FileWriter", logger: phusluLog, Open: phusluOwn},
		Combo{Name: "by hand over slab", Floor: true, logger: handLog, Open: overSlab(handLog, slab.Options{})},
	)
}

func openPublishedSlab(dst io.Writer) (io.WriteCloser, error) {
	return NewPublishedSlab(dst, 64<<10, 8, 100*time.Millisecond), nil
}

func openMutex(dst io.Writer) (io.WriteCloser, error) {
	return &mutexWriter{buf: bufio.NewWriterSize(dst, 256<<10)}, nil
}

func overSlab(logger func(w io.Writer) (logFunc, error), o slab.Options) func(dir string) (logFunc, func() error, error) {
	return func(dir string) (logFunc, func() error, error) {
		f, err := file.Open(filepath.Join(dir, "log"), file.Options{})
		if err != nil {
			return nil, nil, err
		}
		o := o
		o.Full = slab.Block
		w, err := slab.New(f, o)
		if err != nil {
			return nil, nil, err
		}
		log, err := logger(w)
		return log, w.Close, err
	}
}

func overPersisted(logger func(w io.Writer) (logFunc, error)) func(dir string) (logFunc, func() error, error) {
	return func(dir string) (logFunc, func() error, error) {
		slabs, err := os.MkdirTemp(PersistDir(), "rollway-bench-")
		if err != nil {
			return nil, nil, err
		}
		log, closeAll, err := overSlab(logger, slab.Options{Persist: filepath.Join(slabs, "slabs")})(dir)
		return log, func() error {
			defer os.RemoveAll(slabs)
			return closeAll()
		}, err
	}
}

// overFile puts a writer between a logger and a plain *os.File.
func overFile(logger func(w io.Writer) (logFunc, error), open func(dst io.Writer) (io.WriteCloser, error)) func(dir string) (logFunc, func() error, error) {
	return func(dir string) (logFunc, func() error, error) {
		f, err := os.OpenFile(filepath.Join(dir, "log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o640)
		if err != nil {
			return nil, nil, err
		}
		w, err := open(f)
		if err != nil {
			return nil, nil, err
		}
		log, err := logger(w)
		return log, func() error {
			defer f.Close() // some close it, some do not
			return w.Close()
		}, err
	}
}

// phusluOwn is phuslu/log as its manual has it for the most speed, with a file
// that does not rotate.
func phusluOwn(dir string) (logFunc, func() error, error) {
	w := &plog.AsyncWriter{ChannelSize: 4096, Writer: &plog.FileWriter{Filename: filepath.Join(dir, "log"), FileMode: 0o640}}
	return phusluTo(w), w.Close, nil
}

func rollwayLog(w io.Writer) (logFunc, error) {
	log, err := rollway.New(rollway.Options{Outputs: []rollway.Output{{Writer: w}}, Caller: rollway.LevelOff})
	ctx := context.Background()
	return func(worker, seq int, pad string) {
		log.Info(ctx, message, slog.Int("worker", worker), slog.Int("seq", seq), slog.String("pad", pad))
	}, err
}

func zerologLog(w io.Writer) (logFunc, error) {
	log := zerolog.New(w).Level(zerolog.InfoLevel).With().Timestamp().Logger()
	return func(worker, seq int, pad string) {
		log.Info().Int("worker", worker).Int("seq", seq).Str("pad", pad).Msg(message)
	}, nil
}

// zapLog has zap's production encoder with the times of the others. Every
// writer here is safe for concurrent use, so there is no zapcore.Lock.
func zapLog(w io.Writer) (logFunc, error) {
	config := zap.NewProductionEncoderConfig()
	config.TimeKey = "time"
	config.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	log := zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(config), zapcore.AddSync(w), zapcore.InfoLevel))
	return func(worker, seq int, pad string) {
		log.Info(message, zap.Int("worker", worker), zap.Int("seq", seq), zap.String("pad", pad))
	}, nil
}

func slogLog(w io.Writer) (logFunc, error) {
	log := slog.New(slog.NewJSONHandler(w, nil))
	ctx := context.Background()
	return func(worker, seq int, pad string) {
		log.LogAttrs(ctx, slog.LevelInfo, message, slog.Int("worker", worker), slog.Int("seq", seq), slog.String("pad", pad))
	}, nil
}

func phusluLog(w io.Writer) (logFunc, error) { return phusluTo(plog.IOWriter{Writer: w}), nil }

func phusluTo(w plog.Writer) logFunc {
	log := &plog.Logger{Level: plog.InfoLevel, TimeFormat: timeFormat, Writer: w}
	return func(worker, seq int, pad string) {
		log.Info().Int("worker", worker).Int("seq", seq).Str("pad", pad).Msg(message)
	}
}

// handLog appends what a line needs and writes it.
func handLog(w io.Writer) (logFunc, error) {
	buffers := make([]struct {
		b []byte
		_ [64]byte // workers do not share cache lines
	}, Workers)
	return func(worker, seq int, pad string) {
		s := &buffers[worker%Workers]
		b := append(s.b[:0], `{"time":"`...)
		b = time.Now().UTC().AppendFormat(b, "2006-01-02T15:04:05.000000000Z07:00")
		b = append(b, `","level":"INFO","msg":"`+message+`","worker":`...)
		b = strconv.AppendInt(b, int64(worker), 10)
		b = append(b, `,"seq":`...)
		b = strconv.AppendInt(b, int64(seq), 10)
		b = append(b, `,"pad":"`...)
		b = append(b, pad...)
		b = append(b, "\"}\n"...)
		_, _ = w.Write(b) // what was refused is missing in the file
		s.b = b
	}, nil
}

// padding returns a pad that makes the combination's lines LineBytes long: the
// longest, as times lose their last zeros in most of them.
func padding(logger func(w io.Writer) (logFunc, error)) (string, error) {
	var b bytes.Buffer
	log, err := logger(&b)
	if err != nil {
		return "", err
	}
	longest := 0
	for range 50 {
		b.Reset()
		log(firstWorker, firstSeq, "")
		longest = max(longest, b.Len())
	}
	return string(bytes.Repeat([]byte{'x'}, LineBytes-longest)), nil
}
