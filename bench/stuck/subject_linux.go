package stuck

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/phuslu/log"
	"github.com/rollway/rollway"
	"github.com/rollway/rollway/bench/internal/rivals"
	"github.com/rollway/rollway/file"
	"github.com/rollway/rollway/line"
	"github.com/rollway/rollway/remote"
	"github.com/rollway/rollway/slab"
	"github.com/rs/zerolog"
	"github.com/rs/zerolog/diode"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// A subject is a logger with the stuck output and the healthy one.
type subject struct {
	info, err, fatal, panic func(msg string)

	term  func()       // makes SIGTERM end the process in good order
	close func() error // nil: there is nothing to close

	// ledgers returns the accounts that do not balance, and how many lines were
	// dropped for the stuck output. nil: the logger keeps none.
	ledgers func() (broken []string, dropped uint64)
}

// opener opens a subject. exit, which may be nil, is called before the process
// ends.
type opener func(j *job, stuck, healthy io.Writer, exit func()) (*subject, error)

var (
	local     = []string{Hung, Pipe, Disk}
	collector = []string{Stopped, Absent}
	all       = append(append([]string{}, local...), collector...)
	dialled   = append(append([]string{}, local...), Stopped) // a connection that does not come about is no destination
)

// Writers lists the contenders, ours first.
func Writers() []Writer {
	notFatal := []string{Info, Error, Close}
	list := []Writer{
		{Name: "Logger", Direct: true, situations: local, open: own(func(_ *job, w io.Writer) (io.Writer, func() line.Ledger, error) { return w, nil, nil })},
		{Name: "slab", situations: all, open: own(buffered(slab.Options{}))},
		{Name: "slab, 4 shards", situations: all, open: own(buffered(slab.Options{Shards: 4}))},
		{Name: "slab, Drop", situations: all, open: own(buffered(slab.Options{Full: slab.Drop}))},
		{Name: "slab with failover", Lossless: true, maxWait: failoverWait, situations: all, open: own(withFailover)},
		{Name: "slab, spill", situations: collector, open: own(buffered(slab.Options{}))},
	}
	for _, w := range list[:2] { // at the other position in the list as well
		w.Name, w.Last = w.Name+", last", true
		list = append(list, w)
	}
	for i := range list {
		list[i].Own = true
	}
	return append(list,
		Writer{Name: "zap", Direct: true, situations: dialled, open: openZap(func(w zapcore.WriteSyncer) zapcore.WriteSyncer { return zapcore.Lock(w) })},
		Writer{Name: "zap, buffered", situations: dialled, open: openZap(func(w zapcore.WriteSyncer) zapcore.WriteSyncer {
			return &zapcore.BufferedWriteSyncer{WS: w}
		})},
		Writer{Name: "zerolog", Direct: true, situations: dialled, open: openZerolog(func(w io.Writer) io.Writer { return zerolog.SyncWriter(w) })},
		Writer{Name: "zerolog, diode", situations: dialled, open: openZerolog(func(w io.Writer) io.Writer {
			return diode.NewWriter(w, 1000, 0, func(int) {})
		})},
		Writer{Name: "phuslu/log", Direct: true, situations: dialled, open: openPhuslu(func(w io.Writer) log.Writer { return &log.IOWriter{Writer: w} })},
		Writer{Name: "phuslu/log, async", situations: dialled, open: openPhuslu(func(w io.Writer) log.Writer {
			return &log.AsyncWriter{ChannelSize: 4096, Writer: &log.IOWriter{Writer: w}}
		})},
		Writer{Name: "slog", Direct: true, situations: dialled, acts: notFatal, open: openSlog},
	)
}

// named returns the Writer with that name.
func named(name string) (Writer, error) {
	for _, w := range Writers() {
		if w.Name == name {
			return w, nil
		}
	}
	return Writer{}, fmt.Errorf("there is no writer %q", name)
}

// destination opens what is stuck. Our own loggers take a file as file.File and
// a collector over HTTP; the others a file of the system and a TCP connection.
func (j *job) destination(own bool) (io.Writer, error) {
	switch j.Situation {
	case Hung:
		return hung{}, nil
	case Pipe:
		return os.NewFile(3, "pipe"), nil
	case Disk:
		return j.fullDisk(own)
	}
	if !own {
		return net.Dial("tcp", j.TCP)
	}
	o := remote.Options{}
	if j.Writer == "slab, spill" {
		o.Spill.Dir = filepath.Join(j.Dir, "spill")
	}
	return remote.Open("http://"+j.HTTP+"/api/logs", o)
}

// hung never returns from Write.
type hung struct{}

func (hung) Write([]byte) (int, error) { select {} }

// own opens our Logger. wrap puts what is measured in front of the destination.
func own(wrap func(*job, io.Writer) (io.Writer, func() line.Ledger, error)) opener {
	return func(j *job, stuck, healthy io.Writer, exit func()) (*subject, error) {
		w, ledger, err := wrap(j, stuck)
		if err != nil {
			return nil, err
		}
		outputs := []rollway.Output{{Name: "stuck", Writer: w}, {Name: "healthy", Writer: healthy}}
		if j.Last {
			outputs[0], outputs[1] = outputs[1], outputs[0]
		}
		l, err := rollway.New(rollway.Options{
			Outputs:      outputs,
			MaxWait:      maxWait,
			CloseTimeout: closeTimeout,
			Exit: func(code int) {
				exit()
				os.Exit(code)
			},
		})
		if err != nil {
			return nil, err
		}
		ctx := context.Background()
		return &subject{
			info:  func(msg string) { l.Info(ctx, msg) },
			err:   func(msg string) { l.Error(ctx, msg) },
			fatal: func(msg string) { l.Fatal(ctx, msg) },
			panic: func(msg string) { l.Panic(ctx, msg) },
			term:  func() { l.ExitOnSignal() },
			close: l.Close,
			ledgers: func() (broken []string, dropped uint64) {
				add := func(name string, l line.Ledger) {
					if err := l.Err(); err != nil {
						broken = append(broken, name+": "+err.Error())
					}
					dropped += l.Dropped.Total()
				}
				for _, o := range l.Stats().Outputs {
					add(o.Name, o.Ledger)
				}
				if ledger != nil {
					add("writer", ledger())
				}
				return broken, dropped
			},
		}, nil
	}
}

func buffered(o slab.Options) func(*job, io.Writer) (io.Writer, func() line.Ledger, error) {
	return func(_ *job, dst io.Writer) (io.Writer, func() line.Ledger, error) {
		o.MaxWait, o.CloseTimeout = cmp.Or(o.MaxWait, maxWait), closeTimeout
		w, err := slab.New(dst, o)
		if err != nil {
			return nil, nil, err
		}
		return w, func() line.Ledger { return w.Stats().Ledger }, nil
	}
}

// failoverWait is MaxWait with a failover, in which its goroutine has to run: on a
// busy machine that takes more than 100 ms at times.
const failoverWait = time.Second

func withFailover(j *job, dst io.Writer) (io.Writer, func() line.Ledger, error) {
	second, err := file.Open(filepath.Join(j.Dir, "failover.log"), file.Options{})
	if err != nil {
		return nil, nil, err
	}
	return buffered(slab.Options{Failover: second, MaxWait: failoverWait})(j, dst)
}

// synced is a destination of zap, which wants a Sync.
type synced struct{ io.Writer }

func (synced) Sync() error { return nil }

func openZap(wrap func(zapcore.WriteSyncer) zapcore.WriteSyncer) opener {
	return func(_ *job, stuck, healthy io.Writer, _ func()) (*subject, error) {
		enc := zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig())
		l := zap.New(zapcore.NewTee(
			zapcore.NewCore(enc, wrap(synced{stuck}), zap.InfoLevel),
			zapcore.NewCore(enc, zapcore.Lock(synced{healthy}), zap.InfoLevel),
		))
		return &subject{
			info:  func(msg string) { l.Info(msg) },
			err:   func(msg string) { l.Error(msg) },
			fatal: func(msg string) { l.Fatal(msg) },
			panic: func(msg string) { l.Panic(msg) },
			close: l.Sync,
		}, nil
	}
}

func openZerolog(wrap func(io.Writer) io.Writer) opener {
	return func(_ *job, stuck, healthy io.Writer, _ func()) (*subject, error) {
		w := wrap(stuck)
		l := rivals.Zerolog(zerolog.MultiLevelWriter(w, zerolog.SyncWriter(healthy)))
		s := &subject{
			info:  func(msg string) { l.Info().Msg(msg) },
			err:   func(msg string) { l.Error().Msg(msg) },
			fatal: func(msg string) { l.Fatal().Msg(msg) },
			panic: func(msg string) { l.Panic().Msg(msg) },
		}
		if c, ok := w.(io.Closer); ok {
			s.close = c.Close
		}
		return s, nil
	}
}

func openPhuslu(wrap func(io.Writer) log.Writer) opener {
	return func(_ *job, stuck, healthy io.Writer, _ func()) (*subject, error) {
		w := wrap(stuck)
		l := rivals.PhusluLogger(&log.MultiEntryWriter{w, &log.IOWriter{Writer: healthy}})
		s := &subject{
			info:  func(msg string) { l.Info().Msg(msg) },
			err:   func(msg string) { l.Error().Msg(msg) },
			fatal: func(msg string) { l.Fatal().Msg(msg) },
			panic: func(msg string) { l.Panic().Msg(msg) },
		}
		if c, ok := w.(*log.AsyncWriter); ok {
			s.close = c.Close
		}
		return s, nil
	}
}

func openSlog(_ *job, stuck, healthy io.Writer, _ func()) (*subject, error) {
	l := slog.New(slog.NewMultiHandler(slog.NewJSONHandler(stuck, nil), slog.NewJSONHandler(healthy, nil)))
	return &subject{info: func(msg string) { l.Info(msg) }, err: func(msg string) { l.Error(msg) }}, nil
}

// message is the text of a line that audit finds again.
func message(producer, sequence int) string {
	return fmt.Sprintf("line %d %d %s.", producer, sequence, strings.Repeat("x", 180))
}
