package stdlog_test

import (
	"os"
	"regexp"

	"github.com/rollway/rollway"
	"github.com/rollway/rollway/stdlog"
)

// stable is an io.Writer that replaces what differs from run to run, so that
// the example's output can be checked.
type stable struct{}

var varies = regexp.MustCompile(`"time":"[^"]*"`)

func (stable) Write(p []byte) (int, error) {
	if _, err := os.Stdout.Write(varies.ReplaceAll(p, []byte(`"time":…`))); err != nil {
		return 0, err
	}
	return len(p), nil
}

func ExampleNew() {
	l, err := rollway.New(rollway.Options{Outputs: []rollway.Output{{Writer: stable{}}}, Caller: rollway.LevelOff})
	if err != nil {
		panic(err)
	}
	std := stdlog.New(l.Named("raft"), stdlog.Options{Prefixes: true})
	std.Printf("[WARN] no leader for %d s:\nelection begins", 3)
	// Output:
	// {"time":…,"level":"WARN","msg":"no leader for 3 s:\nelection begins","logger":"raft"}
}
