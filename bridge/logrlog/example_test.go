package logrlog_test

import (
	"errors"
	"os"
	"regexp"

	"github.com/rollway/rollway"
	"github.com/rollway/rollway/bridge/logrlog"
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
	log, err := rollway.New(rollway.Options{
		Outputs: []rollway.Output{{Writer: stable{}, Level: rollway.LevelDebug}},
		Caller:  rollway.LevelOff,
	})
	if err != nil {
		panic(err)
	}
	l := logrlog.New(log, logrlog.Options{}).WithName("controller").WithValues("pod", "web-1")
	l.Info("reconciled", "replicas", 3)
	l.V(1).Info("cache is warm")
	l.V(2).Info("below the output's level")
	l.Error(errors.New("conflict"), "not updated")
	// Output:
	// {"time":…,"level":"INFO","msg":"reconciled","logger":"controller","attrs":{"pod":"web-1","replicas":3}}
	// {"time":…,"level":"DEBUG","msg":"cache is warm","logger":"controller","attrs":{"pod":"web-1"}}
	// {"time":…,"level":"ERROR","msg":"not updated","logger":"controller","error":"conflict","attrs":{"pod":"web-1"}}
}
