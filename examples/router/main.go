// Command router sends what a program logs two ways: INFO and above as JSON
// into a file, through slab.Writer so that no call waits for the disk; WARN
// and above to the console for people. Each record is encoded once per format.
//
//	go run ./examples/router -file service.log
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/rollway/rollway"
	"github.com/rollway/rollway/file"
	"github.com/rollway/rollway/slab"
)

func main() {
	path := flag.String("file", "service.log", "log file, appended to")
	flag.Parse()
	if err := run(*path); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(path string) error {
	f, err := file.Open(path, file.Options{})
	if err != nil {
		return err
	}
	lines, err := slab.New(f, slab.Options{})
	if err != nil {
		return err
	}
	log, err := rollway.New(rollway.Options{Outputs: []rollway.Output{
		{Writer: lines, Level: slog.LevelInfo, Encoder: rollway.JSON{}},
		{Writer: os.Stderr, Level: slog.LevelWarn, Encoder: rollway.Console{}},
	}})
	if err != nil {
		return err
	}
	workErr := work(log)
	return errors.Join(workErr, log.Close()) // Close says whether every line is in the file
}

// work is the program's own code.
func work(log *rollway.Logger) error {
	ctx := context.Background()
	log.Info(ctx, "started", slog.Int("pid", os.Getpid()))

	orders := log.Named("orders").With(slog.String("region", "eu-west"))
	for i := range 3 {
		orders.Info(ctx, "charged", slog.Int("order", i), slog.Duration("took", 12*time.Millisecond))
	}
	orders.Warn(ctx, "card expires soon", slog.String("customer", "cus_123"))
	orders.Error(ctx, "failed to charge", slog.Any("error", errors.New("card declined")))
	return nil
}
