package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/rollway/rollway/internal/testkit"
)

// TestStories runs the sessions in testdata. Beside testscript's commands they
// have:
//
//	collector start [FLAG…]   run 'rollway serve' on a free port; sets ADDR
//	collector again [FLAG…]   the same on the port it had before
//	collector stop            SIGTERM; it must end with 0
//	collector kill            SIGKILL
//	await FILE TEXT           until the file holds the text
//	vars                      serve a page of expvar in this process; sets VARS
//
// What the collector printed is then in collector.out and collector.err.
func TestStories(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(e *testscript.Env) error {
			e.Setenv("XDG_CACHE_HOME", filepath.Join(e.WorkDir, "cache"))
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("TZ", "UTC")
			e.Setenv("GORACE", quickExit)
			e.Setenv("OWN_HOST", testkit.LoopbackHost()) // for a collector that comes again at its address
			d := new(*daemon)
			e.Values[scriptKey{}] = d
			e.Defer(func() {
				if *d != nil {
					(*d).kill()
				}
			})
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"collector": scriptCollector,
			"await":     scriptAwait,
			"vars":      scriptVars,
		},
	})
}

type scriptKey struct{}

func scriptCollector(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: collector start|again|stop|kill [FLAG…]")
	}
	d, _ := ts.Value(scriptKey{}).(**daemon)
	if d == nil {
		ts.Fatalf("internal error: no place for the collector")
	}
	keep := func() {
		for name, text := range map[string]string{"collector.out": (*d).stdout.String(), "collector.err": (*d).stderr.String()} {
			ts.Check(os.WriteFile(ts.MkAbs(name), []byte(text), 0o600))
		}
	}
	switch args[0] {
	case "start", "again":
		flags := args[1:]
		if args[0] == "again" {
			flags = append([]string{"-listen", strings.TrimPrefix((*d).addr, "http://")}, flags...)
		}
		env := []string{"HOME=" + ts.Getenv("HOME"), "PATH=" + ts.Getenv("PATH"), "TZ=UTC", "GORACE=" + quickExit, "GOMEMLIMIT=off"} // or it tells of a control group's
		started, err := startDaemon(ts.MkAbs("."), env, flags...)
		ts.Check(err)
		*d = started
		ts.Setenv("ADDR", started.addr)
		ts.Setenv("TCP", started.tcp)
		keep()
	case "stop":
		err := (*d).stop()
		keep()
		if err != nil {
			ts.Fatalf("the collector ended with %v\n%s", err, (*d).stderr.String())
		}
	case "kill":
		(*d).kill()
		keep()
	default:
		ts.Fatalf("unknown: collector %s", args[0])
	}
}

func scriptAwait(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: await FILE TEXT")
	}
	var text []byte
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		text, _ = os.ReadFile(ts.MkAbs(args[0]))
		if strings.Contains(string(text), args[1]) {
			return
		}
	}
	ts.Fatalf("%s", fmt.Sprintf("%s lacks %q after a minute:\n%s", args[0], args[1], text))
}
