package ingest

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"

	"github.com/rollway/rollway/collector/journal"
)

// stored calls f with the number of each event that the server has stored. It
// has been stopped.
func (s *server) stored(f func(uint64) error) (err error) {
	if s.rival {
		return eachInQueue(s.dir, f)
	}
	j, err := journal.Open(filepath.Join(s.dir, "journal"), journal.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	return eachNumber(j, f)
}

// eachInQueue is stored for the queue that OpenTelemetry's file_storage keeps in
// dir: one bbolt file, in which each value is a request.
func eachInQueue(dir string, f func(uint64) error) error {
	files, err := filepath.Glob(filepath.Join(dir, "exporter_*"))
	if err != nil || len(files) != 1 {
		return errors.Join(errors.New("there is not one file of a queue"), err)
	}
	db, err := bbolt.Open(files[0], 0o600, &bbolt.Options{ReadOnly: true, Timeout: 10 * time.Second})
	if err != nil {
		return err
	}
	err = db.View(func(tx *bbolt.Tx) error {
		return tx.ForEach(func(_ []byte, bucket *bbolt.Bucket) error {
			return bucket.ForEach(func(_, value []byte) error { return eachInRequest(value, f) })
		})
	})
	return errors.Join(err, db.Close())
}

// eachInRequest calls f with the number of each event in a request of OTLP,
// whichever field of an attribute comes first: the collector turns them round.
func eachInRequest(request []byte, f func(uint64) error) error {
	for at := 0; ; {
		found := bytes.Index(request[at:], otlpKey)
		if found < 0 {
			return nil
		}
		at += found
		number := request[at+len(otlpKey):]
		if rest, ok := bytes.CutPrefix(number, otlpValue); ok {
			number = rest
		} else if start := at - len(zeros); start >= 0 && bytes.HasSuffix(request[:start], otlpValue) {
			number = request[start:]
		}
		n, err := parseNumber(number)
		if err == nil {
			err = f(n)
		}
		if err != nil {
			return err
		}
		at += len(otlpKey)
	}
}

// eachNumber calls f with the number of each event, in the order of the
// journal. A gap is an error, and so is a frame whose count of records is wrong.
func eachNumber(j *journal.Journal, f func(uint64) error) (err error) {
	r := j.NewReader(0)
	defer func() { err = errors.Join(err, r.Close()) }()
	for {
		frame, ok, err := r.TryNext()
		if err != nil || !ok {
			return err
		}
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
	}
}
