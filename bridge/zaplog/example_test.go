package zaplog_test

import (
	"errors"
	"os"
	"regexp"

	"github.com/rollway/rollway"
	"github.com/rollway/rollway/bridge/zaplog"
	"go.uber.org/zap"
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
	own, err := rollway.New(rollway.Options{Outputs: []rollway.Output{{Writer: stable{}}}})
	if err != nil {
		panic(err)
	}
	log := zap.New(zaplog.New(own), zap.AddCaller())
	log.Named("billing").With(zap.String("service", "payment-api")).Info("charged", zap.String("customer", "cus_123"), zap.Namespace("card"), zap.Int("month", 12))
	log.Error("not charged", zap.Error(errors.New("card declined")))
	// Output:
	// {"time":…,"level":"INFO","msg":"charged","service":"payment-api","logger":"billing","attrs":{"customer":"cus_123","card":{"month":12}}}
	// {"time":…,"level":"ERROR","msg":"not charged","source":"zaplog/example_test.go:33","error":"card declined"}
}
