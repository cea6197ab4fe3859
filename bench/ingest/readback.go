package ingest

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/rollway/rollway/collector/journal"
)

// eachNumber calls f with the number of each event, in the order of the
// journal. A gap is an error.
func eachNumber(j *journal.Journal, f func(uint64) error) (err error) {
	r := j.NewReader(0)
	defer func() { err = errors.Join(err, r.Close()) }()
	for {
		frame, ok, err := r.TryNext()
		if err != nil || !ok {
			return err
		}
		if err := eachInFrame(frame, f); err != nil {
			return err
		}
	}
}

// eachInFrame calls f with the number of each event of a frame, whose count of
// records must be true.
func eachInFrame(frame journal.Frame, f func(uint64) error) error {
	records := 0
	for line := range bytes.Lines(frame.Lines) {
		number, err := numberOf(line)
		if err == nil {
			err = f(number)
		}
		if err != nil {
			return err
		}
		records++
	}
	if records != frame.Records {
		return fmt.Errorf("a frame of %d records has %d lines", frame.Records, records)
	}
	return nil
}
