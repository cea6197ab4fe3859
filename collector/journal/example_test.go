package journal_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/rollway/rollway/collector/journal"
)

func Example() {
	dir, err := os.MkdirTemp("", "journal")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	j, err := journal.Open(dir, journal.Options{})
	if err != nil {
		log.Fatal(err)
	}
	for _, found := range j.Recovery().Findings {
		fmt.Println(found)
	}
	first, err := j.Append(context.Background(), journal.Batch{
		Lines: []byte(`{"time":"2026-05-28T12:40:00.000000001Z","level":"INFO","msg":"charged"}` + "\n" +
			`{"time":"2026-05-28T12:40:00.000000002Z","level":"ERROR","msg":"failed"}` + "\n"),
		Records: 2,
		MinTime: 1779972000000000001, MaxTime: 1779972000000000002,
		Synced: true,
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("stored at", first, "next", j.Next())
	if err := j.Close(); err != nil {
		log.Fatal(err)
	}

	r := j.NewReader(1) // from the second record; readers outlive the journal
	defer r.Close()
	for {
		f, err := r.Next(context.Background())
		var gap *journal.Gap
		switch {
		case errors.As(err, &gap):
			fmt.Println(gap)
			continue
		case err == io.EOF:
			fmt.Println("end at", r.Offset())
			return
		case err != nil:
			log.Fatal(err)
		}
		fmt.Printf("%d: %s", f.First, f.Lines)
	}
	// Output:
	// stored at 0 next 2
	// 1: {"time":"2026-05-28T12:40:00.000000002Z","level":"ERROR","msg":"failed"}
	// end at 2
}
