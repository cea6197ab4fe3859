package logruslog_test

import (
	"errors"
	"os"
	"regexp"

	"github.com/rollway/rollway"
	"github.com/rollway/rollway/bridge/logruslog"
	"github.com/sirupsen/logrus"
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

func ExampleRedirect() {
	own, err := rollway.New(rollway.Options{Outputs: []rollway.Output{{Writer: stable{}}}})
	if err != nil {
		panic(err)
	}
	log := logrus.New() // or logrus.StandardLogger()
	logruslog.Redirect(log, own)
	log.WithFields(logrus.Fields{"service": "payment-api", "customer": "cus_123"}).Info("charged")
	log.WithError(errors.New("card declined")).Error("not charged")
	// Output:
	// {"time":…,"level":"INFO","msg":"charged","service":"payment-api","attrs":{"customer":"cus_123"}}
	// {"time":…,"level":"ERROR","msg":"not charged","error":"card declined"}
}
