// Command slogdefault keeps every log/slog call of a program as it is and writes
// them through package rollway: one line after New.
package main

import (
	"fmt"
	"log/slog"
	"os"

	"github.com/rollway/rollway"
)

func main() {
	log, err := rollway.New(rollway.Options{}) // JSON to stderr at INFO
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	slog.SetDefault(slog.New(log.Handler()))

	slog.Info("charged", "customer", "cus_123", "retry", 2)
	slog.With(slog.String("service", "payments")).Warn("card expires soon", slog.Group("card", "month", 12, "year", 2026))
	slog.Debug("not written: DEBUG is below INFO")
}
