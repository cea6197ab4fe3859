package rpclog_test

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rollway/rollway"
	"github.com/rollway/rollway/bridge/rpclog"
	"github.com/rollway/rollway/rollwaytest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	upstream "google.golang.org/grpc/grpclog"
)

var component = upstream.Component("test")

// library is what gRPC itself logs during all tests: it takes its logger
// without a lock, so it gets it before anything runs.
var (
	library rollwaytest.Recorder
	exits   atomic.Int32
)

func TestMain(m *testing.M) {
	log, err := rollway.New(rollway.Options{
		Outputs: []rollway.Output{{Writer: &library}},
		Caller:  slog.LevelInfo,
		Exit:    func(int) { exits.Add(1) },
	})
	if err != nil {
		panic(err)
	}
	upstream.SetLoggerV2(rpclog.NewLogger(log.Named("grpc"), 1))
	os.Exit(m.Run())
}

// TestLogger logs through gRPC's own package, as gRPC does.
func TestLogger(t *testing.T) {
	if !upstream.V(0) || !upstream.V(1) || upstream.V(2) {
		t.Error("V is wrong")
	}
	for _, c := range []struct {
		call  func()
		level slog.Level
		msg   string
	}{
		{func() { upstream.Info("m01", 1, 2, "b") }, slog.LevelInfo, "m011 2b"},
		{func() { upstream.Infoln("m02", 1) }, slog.LevelInfo, "m02 1"},
		{func() { upstream.Infof("m03%d\n", 1) }, slog.LevelInfo, "m031\n"},
		{func() { upstream.InfoDepth(0, "m04", 1) }, slog.LevelInfo, "m04 1"},
		{func() { upstream.Warning("m05") }, slog.LevelWarn, "m05"},
		{func() { upstream.Warningln("m06") }, slog.LevelWarn, "m06"},
		{func() { upstream.Warningf("%s", "m07") }, slog.LevelWarn, "m07"},
		{func() { upstream.WarningDepth(0, "m08") }, slog.LevelWarn, "m08"},
		{func() { upstream.Error("m09") }, slog.LevelError, "m09"},
		{func() { upstream.Errorln("m10") }, slog.LevelError, "m10"},
		{func() { upstream.Errorf("%s", "m11") }, slog.LevelError, "m11"},
		{func() { upstream.ErrorDepth(0, "m12") }, slog.LevelError, "m12"},
		{func() { component.Info("m13") }, slog.LevelInfo, "[test] m13"},
		{func() { component.Warningf("m14%d", 1) }, slog.LevelWarn, "[test] m141"},
		{func() { component.Errorln("m15") }, slog.LevelError, "[test] m15"},
		{func() { component.InfoDepth(0, "m16") }, slog.LevelInfo, "[test] m16"},
	} {
		c.call()
		r, ok := library.Find(c.msg)
		source, _ := r.Source.(string)
		if !ok || r.Level != c.level || r.Logger != "grpc" || !strings.HasPrefix(source, "rpclog/logger_test.go:") {
			t.Errorf("want %v %q, got %s", c.level, c.msg, r.Line)
		}
	}

	// A channel of gRPC's own says something.
	library.Reset()
	conn, err := grpc.NewClient("passthrough:///127.0.0.1:1", grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	conn.Connect()
	defer conn.Close()
	for deadline := time.Now().Add(time.Minute); len(library.Records()) == 0 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	if got := library.Records(); len(got) == 0 || !strings.HasPrefix(got[0].Msg, "[") || strings.Contains(got[0].Source.(string), "component.go") {
		t.Errorf("of a channel: %v", got)
	}
}

func TestLoggerFatal(t *testing.T) {
	var rec rollwaytest.Recorder
	before := exits.Load()
	log, err := rollway.New(rollway.Options{Outputs: []rollway.Output{{Writer: &rec}}, Exit: func(int) { exits.Add(1) }})
	if err != nil {
		t.Fatal(err)
	}
	g := rpclog.NewLogger(log, 0)
	g.Fatal("the", "end")
	g.Fatalln("the", "end")
	g.Fatalf("the %s", "end")
	g.FatalDepth(0, "the", "end")
	for _, r := range wait(t, &rec, 4) {
		if !strings.HasPrefix(r.Msg, "the") || r.Level != rollway.LevelFatal {
			t.Errorf("got %s", r.Line)
		}
	}
	if n := exits.Load() - before; n != 4 {
		t.Errorf("%d exits", n)
	}
}

// TestLoggerOff: arguments of lines that nobody takes are not formatted, and a
// fatal one ends the process all the same.
func TestLoggerOff(t *testing.T) {
	exited := false
	log, err := rollway.New(rollway.Options{
		Outputs: []rollway.Output{{Writer: &discard{}, Level: rollway.LevelOff}},
		Exit:    func(int) { exited = true },
	})
	if err != nil {
		t.Fatal(err)
	}
	g := rpclog.NewLogger(log, 9)
	if g.V(0) {
		t.Error("V(0) is on")
	}
	never := stringer(func() string { t.Error("formatted"); return "" })
	g.Info(never)
	g.Warningln(never)
	g.Errorf("%s", never)
	g.InfoDepth(1, never)
	if g.Fatal("end"); !exited {
		t.Error("Fatal went on")
	}
}

type stringer func() string

func (s stringer) String() string { return s() }

type discard struct{}

func (*discard) Write(p []byte) (int, error) { return len(p), nil }
func (*discard) Flush(context.Context) error { return nil }
