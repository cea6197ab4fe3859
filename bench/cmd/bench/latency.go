package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"github.com/rollway/rollway/bench/internal/measure"
	"github.com/rollway/rollway/bench/latency"
)

func runLatency(args []string) error {
	flags := flag.NewFlagSet("latency", flag.ExitOnError)
	rounds := flags.Int("rounds", 15, "how often everything is measured; 9 or more for tables that count")
	each := flags.Duration("time", time.Second, "how long each writer gets lines, in each round; many short rounds, as the machine's own pauses are in most of the long ones")
	short := flags.Bool("short", false, "one brief round, to see that everything runs")
	realtime := flags.Bool("realtime", false, "come before all other threads of the machine (SCHED_FIFO; takes root on Linux)")
	out := flags.String("o", "", "file for the raw results")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *short {
		*rounds, *each = 1, 300*time.Millisecond
	}
	if *out == "" || flags.NArg() > 0 || *rounds < 1 || *each < 100*time.Millisecond {
		return errors.New("want -o FILE, at least one round of 100 ms, and no other arguments")
	}
	log.SetOutput(io.Discard) // zerolog's diode prints a line for each collision
	scenarios, err := latency.Scenarios()
	if err != nil {
		return err
	}
	if *realtime {
		if err := measure.Realtime(); err != nil {
			return err
		}
	}
	results := measure.NewResults("latency", *rounds)
	samples, err := latency.Measure(os.Stderr, scenarios, *rounds, *each)
	if err != nil {
		return err
	}
	results.Samples = samples
	if err := results.Save(*out); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%d samples in %s\n", len(samples), *out)
	return nil
}
