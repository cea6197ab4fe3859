package slab_test

import (
	"fmt"
	"log"
	"os"

	"github.com/rollway/rollway/slab"
)

func Example() {
	w, err := slab.New(os.Stdout, slab.Options{})
	if err != nil {
		log.Fatal(err)
	}
	logger := log.New(w, "", 0)
	logger.Print("charged")
	logger.Print("shipped")
	if err := w.Close(); err != nil {
		log.Fatal(err)
	}

	s := w.Stats()
	fmt.Printf("accepted %d = written %d + dropped %d + pending %d\n", s.Accepted, s.Written, s.Dropped.Total(), s.Pending)
	// Output:
	// charged
	// shipped
	// accepted 2 = written 2 + dropped 0 + pending 0
}
