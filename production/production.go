// Package production makes a Logger for a service with one call:
//
//	log, err := production.Open("payment-api", production.Options{})
//	if err != nil {
//		return err
//	}
//	defer log.Close()
//	log.Info(ctx, "charged", slog.String("customer", "cus_123"))
//
// Lines are JSON or of another format, on os.Stderr, in a file that is rotated, or sent to a collector. On a
// terminal they are for people. A log call waits for at most 100 ms, whatever the
// destination does; for a slow terminal, 1 s. log/slog writes to the same place.
//
// Operators choose by variables, which [Options] lists, or by a file:
//
//	ROLLWAY_FILE=/var/log/payment.log ROLLWAY_LEVEL=info,db=debug payment-api
//
// Programs that need more put packages rollway, slab, file and remote together
// themselves, as Open does.
package production

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/rollway/rollway"
	"github.com/rollway/rollway/file"
	"github.com/rollway/rollway/internal/terminal"
	"github.com/rollway/rollway/remote"
	"github.com/rollway/rollway/slab"
)

// Options says where lines go. A field that is zero is read from its variable, then from
// the file Config.
type Options struct {
	// Config is the path of a JSON file with the settings below, by the names of their
	// variables in lower case without ROLLWAY_, except the token:
	//
	//	{"file": "/var/log/payment.log", "max_size": 104857600, "level": "info,db=debug"}
	//
	// Variable: ROLLWAY_LOG_CONFIG. Default: none.
	Config string

	// Level is the lowest level, or rules as [rollway.Levels] takes them. Variable:
	// ROLLWAY_LEVEL. Default: info.
	Level string

	// Format is that of the lines: json, logfmt, console, or one of package preset: ecs, gcp
	// (with the project in GOOGLE_CLOUD_PROJECT), slog, zap, zerolog. If it is given and lines
	// go to os.Stderr, a terminal gets it too. Variable: ROLLWAY_FORMAT. Default: json.
	Format string

	// LevelText is how levels are written: upper, lower, number, syslog or severity, as
	// [rollway.LevelFormat]. Variable: ROLLWAY_LEVEL_TEXT. Default: that of Format.
	LevelText string

	// Source is how the place of a call is written: short, full, function or object, as
	// [rollway.SourceFormat]. Variable: ROLLWAY_SOURCE. Default: that of Format.
	Source string

	// File is the path of a file for the lines. It and Remote exclude each other. Without
	// both, lines go to os.Stderr. Variable: ROLLWAY_FILE.
	File string

	// MaxSize is the size in bytes at which File is rotated. Variable: ROLLWAY_MAX_SIZE.
	// Default: 100 MiB.
	MaxSize int64

	// Keep is how many rotated files stay, the newest as it is, the others compressed by
	// gzip. Variable: ROLLWAY_KEEP. Default: 10.
	Keep int

	// Remote is where lines are sent, in the form of [remote.Open]; for a collector
	// http://HOST:4318/api/logs or https://HOST:4318/api/logs. Variable: ROLLWAY_REMOTE.
	Remote string

	// Spill is a folder in which lines wait while Remote is away. Without it they wait in
	// half a megabyte of memory, and are dropped and counted beyond that. Variable:
	// ROLLWAY_SPILL.
	Spill string

	// Token identifies the service to Remote. Variable: ROLLWAY_TOKEN.
	Token string

	// CA is the path of PEM certificates of the authorities that Remote's certificate may
	// be from. Variable: ROLLWAY_CA. Default: those of the system.
	CA string

	// ExitOnSignal ends the process at SIGINT and SIGTERM, with every line written, as
	// [rollway.Logger.ExitOnSignal] does. It is for programs that do not shut down by
	// themselves.
	ExitOnSignal bool

	// NoDefault leaves [rollway.Default] and [slog.Default] as they are.
	NoDefault bool

	// Logger has all other options. Its Outputs get the lines too. Its Levels, if not
	// nil, are used instead of Level.
	Logger rollway.Options
}

// Logger is a [rollway.Logger] with its destination.
type Logger struct {
	*rollway.Logger

	// Levels can be changed while the program runs; httplog.LevelHandler does so.
	Levels *rollway.Levels

	metrics []func(io.Writer, ...string) error
}

// Open returns the Logger of a service. The name is on each line, as service; "" is
// the name of the program. The caller closes the Logger, which waits for pending lines for
// up to 5 s. Unless NoDefault is set, the Logger becomes [rollway.Default] and that of
// package slog.
func Open(service string, o Options) (*Logger, error) {
	o, err := o.fill(os.LookupEnv)
	if err != nil {
		return nil, fmt.Errorf("production: %w", err)
	}
	l, err := o.open()
	if err != nil {
		return nil, fmt.Errorf("production: %w", err)
	}
	if service == "" {
		service = strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe")
	}
	l.Logger = l.With(slog.String("service", service))
	if !o.NoDefault {
		rollway.SetDefault(l.Logger)
	}
	if o.ExitOnSignal {
		l.Logger.ExitOnSignal()
	}
	return l, nil
}

func (o Options) open() (*Logger, error) {
	l := &Logger{Levels: o.Logger.Levels}
	if l.Levels == nil {
		var err error
		if l.Levels, err = rollway.NewLevels(o.Level); err != nil {
			return nil, err
		}
		o.Logger.Levels = l.Levels
	}
	format, err := o.encoder()
	if err != nil {
		return nil, err
	}
	to, err := l.destination(o)
	if err != nil {
		return nil, err
	}
	var outputs []rollway.Output
	if terminal.Is(os.Stderr) && (to != nil || o.Format == "") {
		outputs = append(outputs, rollway.Output{Writer: os.Stderr, Encoder: rollway.Console{}})
	} else if to == nil {
		to = os.Stderr
	}
	if to != nil {
		lines, err := slab.New(to, slab.Options{OnError: o.Logger.OnError})
		if err != nil {
			return nil, errors.Join(err, closeUnlessStderr(to))
		}
		l.metrics = append(l.metrics, func(w io.Writer, labels ...string) error { return lines.Stats().WriteMetrics(w, labels...) })
		outputs = append(outputs, rollway.Output{Writer: lines, Encoder: format})
		to = lines
	}
	o.Logger.Outputs = append(outputs, o.Logger.Outputs...)
	if l.Logger, err = rollway.New(o.Logger); err != nil {
		return nil, errors.Join(err, closeUnlessStderr(to))
	}
	return l, nil
}

// destination opens what o names, or returns nil for os.Stderr.
func (l *Logger) destination(o Options) (io.WriteCloser, error) {
	switch {
	case o.File != "" && o.Remote != "":
		return nil, fmt.Errorf("the lines have two destinations, the file %s and %s: choose one, or add the other to Logger.Outputs", o.File, o.Remote)
	case o.Remote == "" && o.Spill != "":
		return nil, fmt.Errorf("lines can wait in %s only for a Remote (ROLLWAY_REMOTE), and there is none", o.Spill)
	case o.File != "":
		f, err := file.Open(o.File, file.Options{
			MaxSize: cmp.Or(o.MaxSize, 100<<20), KeepCount: cmp.Or(o.Keep, 10),
			Compress: file.Gzip{}, KeepPlain: 1, OnError: o.Logger.OnError,
		})
		if err != nil {
			return nil, err
		}
		l.metrics = append(l.metrics, func(w io.Writer, labels ...string) error { return f.Stats().WriteMetrics(w, labels...) })
		return f, nil
	case o.Remote != "":
		authorities, err := o.authorities()
		if err != nil {
			return nil, err
		}
		w, err := remote.Open(o.Remote, remote.Options{
			Token: o.Token, TLSConfig: authorities, Spill: remote.Spill{Dir: o.Spill}, OnError: o.Logger.OnError,
		})
		if err != nil {
			return nil, err
		}
		l.metrics = append(l.metrics, func(out io.Writer, labels ...string) error { return w.Stats().WriteMetrics(out, labels...) })
		return w, nil
	}
	return nil, nil
}

// authorities returns a configuration that trusts those in the file CA, or nil.
func (o Options) authorities() (*tls.Config, error) {
	if o.CA == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(o.CA)
	if err != nil {
		return nil, fmt.Errorf("certificates of authorities (ROLLWAY_CA): %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("certificates of authorities (ROLLWAY_CA): %s has no certificate in PEM form", o.CA)
	}
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, nil
}

func closeUnlessStderr(w io.WriteCloser) error {
	if w == nil || w == io.WriteCloser(os.Stderr) {
		return nil
	}
	return w.Close()
}

// WriteMetrics writes what became of the lines, here and at the destination, in the text
// format of Prometheus. labels are names and values in turn; all samples get them.
func (l *Logger) WriteMetrics(w io.Writer, labels ...string) error {
	if err := l.Stats().WriteMetrics(w, labels...); err != nil {
		return err
	}
	for _, write := range l.metrics {
		if err := write(w, labels...); err != nil {
			return err
		}
	}
	return nil
}

// MetricsHandler answers with WriteMetrics. Its clients learn paths and addresses of
// destinations, no lines.
func (l *Logger) MetricsHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "method "+r.Method+" is not allowed: GET shows the metrics", http.StatusMethodNotAllowed)
			return
		}
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_ = l.WriteMetrics(w) // the client may be gone
	})
}
