package rollway_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"regexp"
	"time"

	"github.com/rollway/rollway"
)

// newLog returns a Logger for the examples, whose lines have no source and
// always the same time.
func newLog(o rollway.Options) *rollway.Logger {
	if o.Outputs == nil {
		o.Outputs = []rollway.Output{{Writer: stableTime{}}}
	}
	o.Caller = rollway.LevelOff
	log, err := rollway.New(o)
	if err != nil {
		panic(err)
	}
	return log
}

// Every line that is logged with a context has what it carries.
func ExampleContextWith() {
	log := newLog(rollway.Options{})
	ctx := rollway.ContextWith(context.Background(), slog.String("request_id", "r1"))
	ctx = rollway.NewContext(ctx, log.Named("http"))

	// In a handler, which gets the context alone:
	rollway.FromContext(ctx).Info(ctx, "charged", slog.String("customer", "cus_123"))
	// Output:
	// {"time":"2026-05-28T12:40:00.123456789Z","level":"INFO","msg":"charged","logger":"http","attrs":{"request_id":"r1","customer":"cus_123"}}
}

// Attributes that other packages keep in a context, and the ids of a trace.
func ExampleOptions_extract() {
	type tenant struct{}
	log := newLog(rollway.Options{
		Extract: []func(context.Context, []slog.Attr) []slog.Attr{func(ctx context.Context, dst []slog.Attr) []slog.Attr {
			if t, ok := ctx.Value(tenant{}).(string); ok {
				dst = append(dst, slog.String("tenant", t))
			}
			return dst
		}},
		Trace: func(context.Context) (traceID [16]byte, spanID [8]byte, ok bool) { // see otellog.Trace
			return [16]byte{0x4b, 15: 0x36}, [8]byte{0xf0, 7: 0xb7}, true
		},
	})
	log.Info(context.WithValue(context.Background(), tenant{}, "acme"), "charged")
	// Output:
	// {"time":"2026-05-28T12:40:00.123456789Z","level":"INFO","msg":"charged","trace_id":"4b000000000000000000000000000036","span_id":"f0000000000000b7","attrs":{"tenant":"acme"}}
}

// The first of a message and every third after it, in each minute; what was
// left out is said.
func ExampleSampling() {
	log := newLog(rollway.Options{Sampling: &rollway.Sampling{Period: time.Minute, First: 1, Then: 3}})
	ctx := context.Background()
	for i := range 6 {
		log.Info(ctx, "cache miss", slog.Int("i", i))
	}
	log.Error(ctx, "errors are always written")
	if err := log.Close(); err != nil {
		panic(err)
	}
	// Output:
	// {"time":"2026-05-28T12:40:00.123456789Z","level":"INFO","msg":"cache miss","attrs":{"i":0}}
	// {"time":"2026-05-28T12:40:00.123456789Z","level":"INFO","msg":"cache miss","attrs":{"i":3}}
	// {"time":"2026-05-28T12:40:00.123456789Z","level":"ERROR","msg":"errors are always written"}
	// {"time":"2026-05-28T12:40:00.123456789Z","level":"INFO","msg":"rollway: 4 lines left out by sampling","attrs":{"of":"cache miss","left_out":4}}
}

// Values are hidden by the path of their keys and by patterns, in structs too.
func ExampleRedaction() {
	log := newLog(rollway.Options{Redact: &rollway.Redaction{
		Keys:     []string{"password", "user.ssn", "http.headers.*"},
		Patterns: []*regexp.Regexp{regexp.MustCompile(`\b\d{4}-\d{4}-\d{4}-\d{4}\b`)},
	}})
	log.Info(context.Background(), "card 1234-5678-9012-3456 refused",
		slog.Group("user", slog.Int("id", 7), slog.String("ssn", "078-05-1120")),
		slog.Any("login", map[string]string{"name": "ann", "password": "hunter2"}))
	// Output:
	// {"time":"2026-05-28T12:40:00.123456789Z","level":"INFO","msg":"card [REDACTED] refused","attrs":{"user":{"id":7,"ssn":"[REDACTED]"},"login":{"name":"ann","password":"[REDACTED]"}}}
}

// A main that loses nothing: Close at its end, FlushOnPanic where it panics,
// Fatal where it gives up.
func ExampleLogger_Fatal() {
	log := newLog(rollway.Options{
		Exit: func(code int) { fmt.Println("exit status", code) }, // os.Exit, if it is not set
	})
	defer log.Close()        // at the end of main
	defer log.FlushOnPanic() // here and in every goroutine

	log.Fatal(context.Background(), "no configuration", slog.Any("error", fs.ErrNotExist))
	// Output:
	// {"time":"2026-05-28T12:40:00.123456789Z","level":"FATAL","msg":"no configuration","error":"file does not exist"}
	// exit status 1
}

// The level of each part of a program by its logger's name, while it runs.
func ExampleLevels() {
	levels, err := rollway.NewLevels("info,db.*=debug,db.pool=error")
	if err != nil {
		panic(err)
	}
	log := newLog(rollway.Options{Levels: levels})
	ctx := context.Background()
	db, pool := log.Named("db"), log.Named("db").Named("pool")
	log.Debug(ctx, "below info")
	db.Debug(ctx, "db is at debug")
	pool.Warn(ctx, "db.pool is at error")
	if err := levels.SetLevel("db.pool", slog.LevelWarn); err != nil { // or httplog.LevelHandler
		panic(err)
	}
	pool.Warn(ctx, "and now at warn")
	fmt.Println(levels)
	// Output:
	// {"time":"2026-05-28T12:40:00.123456789Z","level":"DEBUG","msg":"db is at debug","logger":"db"}
	// {"time":"2026-05-28T12:40:00.123456789Z","level":"WARN","msg":"and now at warn","logger":"db.pool"}
	// info,db.*=debug,db.pool=warn
}

// Outputs by level and format: each record is encoded once per format and goes
// to those that take its level.
func ExampleOutput() {
	level := new(slog.LevelVar) // may change while the program runs
	log := newLog(rollway.Options{Outputs: []rollway.Output{
		{Writer: stableTime{}, Level: level},
		{Writer: os.Stdout, Level: slog.LevelError, Encoder: rollway.Console{TimeFormat: "[console]"}},
		{Writer: os.Stdout, Level: rollway.LevelRange{Min: slog.LevelInfo, Max: slog.LevelInfo}, Encoder: rollway.Logfmt{Layout: "msg attrs"}},
	}})
	ctx := context.Background()
	log.Info(ctx, "charged", slog.Int("cents", 1250))
	log.Error(ctx, "not charged", slog.Int("cents", 1250))
	level.Set(rollway.LevelOff)
	log.Error(ctx, "for the console alone")
	// Output:
	// {"time":"2026-05-28T12:40:00.123456789Z","level":"INFO","msg":"charged","attrs":{"cents":1250}}
	// msg=charged cents=1250
	// {"time":"2026-05-28T12:40:00.123456789Z","level":"ERROR","msg":"not charged","attrs":{"cents":1250}}
	// [console] ERROR not charged cents=1250
	// [console] ERROR for the console alone
}

// A line for people, with what an error is and wraps below it.
func ExampleConsole() {
	log := newLog(rollway.Options{Outputs: []rollway.Output{
		{Writer: os.Stdout, Encoder: rollway.Console{TimeFormat: "[time]", Errors: rollway.ErrorDetail}},
	}})
	err := fmt.Errorf("load rules: %w", &fs.PathError{Op: "open", Path: "rules.yaml", Err: fs.ErrNotExist})
	log.Named("rules").Warn(context.Background(), "keeping the old rules", slog.Any("error", err), slog.Int("rules", 12))
	log.Info(context.Background(), "user said\n12:40:00.124 FATAL forged", slog.String("name", "\x1b[31mred"))
	// Output:
	// [time] WARN  rules: keeping the old rules error="load rules: open rules.yaml: file does not exist" rules=12
	//     error      *fmt.wrapError
	//     caused by  *fs.PathError: open rules.yaml: file does not exist
	//     caused by  *errors.errorString: file does not exist
	// [time] INFO  user said\n12:40:00.124 FATAL forged name="\x1b[31mred"
}

func ExampleLogfmt() {
	log := newLog(rollway.Options{Outputs: []rollway.Output{
		{Writer: os.Stdout, Encoder: rollway.Logfmt{Layout: "level:lvl msg error attrs", Duration: rollway.Milliseconds}},
	}})
	log.WithGroup("http").Error(context.Background(), "no answer", slog.Any("error", errors.New("timed out")), slog.Duration("took", 1530_000))
	// Output:
	// lvl=ERROR msg="no answer" http.error="timed out" http.took=1.53
}

// Names and order as another system wants them.
func ExampleJSON() {
	log := newLog(rollway.Options{Outputs: []rollway.Output{
		{Writer: os.Stdout, Encoder: rollway.JSON{Layout: "level:severity msg:message service attrs:", Time: rollway.UnixMilli}},
	}})
	log.With(slog.String("service", "pay")).Info(context.Background(), "charged", slog.Int("cents", 1250), slog.String("message", "an attribute"))
	// Output:
	// {"severity":"INFO","message":"charged","service":"pay","cents":1250,"attrs.message":"an attribute"}
}

type upper struct{}

func (*upper) AppendLine(dst []byte, r *rollway.Record) []byte {
	dst = append(dst, r.Level.String()...)
	dst = append(dst, '|')
	dst = append(dst, r.Message...)
	for a := range r.Attrs {
		dst = append(dst, '|')
		dst = append(dst, a.Key...)
		dst = append(dst, '=')
		dst = rollway.AppendJSON(dst, a.Value) // whatever it is
	}
	return dst
}

// A format of one's own, in a few lines and without an allocation.
func ExampleCustom() {
	log := newLog(rollway.Options{Outputs: []rollway.Output{{Writer: os.Stdout, Encoder: rollway.Custom{LineEncoder: new(upper)}}}})
	log.Info(context.Background(), "charged", slog.Int("cents", 1250), slog.Any("tags", []string{"a", "b"}))
	// Output:
	// INFO|charged|cents=1250|tags=["a","b"]
}

type customer struct {
	id   string
	plan string
}

func (c *customer) AppendLog(o *rollway.Object) {
	o.Add(slog.String("id", c.id), slog.String("plan", c.plan))
}

// Types that log themselves, without reflection.
func ExampleObjectAppender() {
	log := newLog(rollway.Options{})
	log.Info(context.Background(), "charged", slog.Any("customer", &customer{"cus_123", "team"}))
	// Output:
	// {"time":"2026-05-28T12:40:00.123456789Z","level":"INFO","msg":"charged","attrs":{"customer":{"id":"cus_123","plan":"team"}}}
}
