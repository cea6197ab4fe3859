package main

import (
	"fmt"
	"io"
	"log"

	"github.com/rollway/rollway/bench/writers"
)

// runWriters gives every sample the same number of lines: what a queue loses
// depends on how many come.
func runWriters(args []string) error {
	plan, out, err := measureFlags("writers", 1_000_000, args)
	if err != nil {
		return err
	}
	log.SetOutput(io.Discard) // zerolog's diode prints a line for each collision
	checked := 100_000
	if plan.Ops > 0 {
		checked = min(checked, plan.Ops)
	}
	if err := writers.Check(checked); err != nil {
		return fmt.Errorf("a writer breaks lines, so nothing is measured:\n%w", err)
	}
	return measureAndSave("writers", plan, out, writers.Subjects())
}
