package writers

import (
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
	"github.com/rollway/rollway/bench/internal/rivals"
	"github.com/rollway/rollway/file"
	"github.com/rollway/rollway/slab"
	"go.uber.org/zap"
)

// A combo is a logger over a writer over a real file.
type combo struct {
	name   string
	file   bool // a file.File; otherwise one of the system
	lossy  bool // drops lines by design rather than wait
	logger newLog
	writer rivals.Opener
}

// A newLog makes a logger over w: a function that logs message with a worker's
// number, a sequence number and padding.
type newLog func(w io.Writer) (logFunc, error)

type logFunc func(worker, seq int, pad string)

const message = "payment settled"

// combos lists the combinations, our own first.
func combos() []combo {
	slabs := rivals.Slab(slab.Options{Full: slab.Block})
	all := []combo{{"rollway over slab", true, false, rollwayLog, slabs}}
	if rivals.CanPersist {
		all = append(all, combo{"rollway over slab persisted", true, false, rollwayLog, rivals.Persisted(slab.Options{Full: slab.Block})})
	}
	return append(all,
		combo{"zerolog over slab", true, false, zerologLog, slabs},
		combo{"phuslu/log over slab", true, false, phusluLog, slabs},
		combo{"zap over slab", true, false, zapLog, slabs},
		combo{"log/slog over slab", true, false, slogLog, slabs},
		combo{"zerolog over slab design as published", false, false, zerologLog, rivals.Published},
		combo{"phuslu/log over slab design as published", false, false, phusluLog, rivals.Published},
		combo{"phuslu/log over mutex and bufio 256 KiB", false, false, phusluLog, rivals.Bufio(256 << 10)},
		combo{"zerolog over diode 1000", false, true, zerologLog, rivals.Diode(1000)},
		combo{"zerolog over diode 100000", false, true, zerologLog, rivals.Diode(100_000)},
		combo{"zap over BufferedWriteSyncer", false, false, zapLog, rivals.Zap},
		combo{phusluOwn, false, false, phusluLog, nil},
		combo{"by hand over slab", true, false, handLog, slabs},
	)
}

// phusluOwn is phuslu/log as its manual recommends it for speed, with a file
// that does not rotate.
const phusluOwn = "phuslu/log over its AsyncWriter and FileWriter"

// open returns a function that logs one line, safe for concurrent use, and one
// that closes everything once all is in files in dir.
func (c combo) open(dir string) (log logFunc, closeAll func() error, err error) {
	path := filepath.Join(dir, "log")
	if c.name == phusluOwn {
		w := &plog.AsyncWriter{ChannelSize: 4096, Writer: &plog.FileWriter{Filename: path, FileMode: 0o640}}
		return phusluTo(w), w.Close, nil
	}
	var dst io.WriteCloser
	if c.file {
		dst, err = file.Open(path, file.Options{})
	} else {
		dst, err = os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o640)
	}
	if err != nil {
		return nil, nil, err
	}
	w, err := c.writer(dst)
	if err != nil {
		return nil, nil, err
	}
	log, err = c.logger(w)
	return log, func() error {
		defer dst.Close() // some close it, some do not
		return w.Close()
	}, err
}

func rollwayLog(w io.Writer) (logFunc, error) {
	log, err := rollway.New(rollway.Options{Outputs: []rollway.Output{{Writer: w}}, Caller: rollway.LevelOff})
	ctx := context.Background()
	return func(worker, seq int, pad string) {
		log.Info(ctx, message, slog.Int("worker", worker), slog.Int("seq", seq), slog.String("pad", pad))
	}, err
}

func zerologLog(w io.Writer) (logFunc, error) {
	log := rivals.Zerolog(w)
	return func(worker, seq int, pad string) {
		log.Info().Int("worker", worker).Int("seq", seq).Str("pad", pad).Msg(message)
	}, nil
}

func zapLog(w io.Writer) (logFunc, error) {
	log := zap.New(rivals.ZapCore(w))
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
	log := rivals.PhusluLogger(w)
	return func(worker, seq int, pad string) {
		log.Info().Int("worker", worker).Int("seq", seq).Str("pad", pad).Msg(message)
	}
}

// handLog appends what a line needs and writes it.
func handLog(w io.Writer) (logFunc, error) {
	buffers := make([]struct {
		b []byte
		_ [64]byte // workers do not share cache lines
	}, workers)
	return func(worker, seq int, pad string) {
		s := &buffers[worker%workers]
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

// padding returns a pad that makes the logger's lines LineBytes long: the
// longest, as times lose their last zeros in most of them.
func (c combo) padding() (string, error) {
	var b bytes.Buffer
	log, err := c.logger(&b)
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
