package spool_test

import (
	"fmt"

	"github.com/rollway/rollway/internal/disktest"
	"github.com/rollway/rollway/internal/spool"
)

func Example() {
	s, err := spool.Open("/spool", spool.Options{Disk: disktest.NewMem()})
	if err != nil {
		panic(err)
	}
	defer s.Close()
	if err := s.Append([]byte("first\nsecond\n")); err != nil {
		panic(err)
	}
	for {
		b, err := s.Next(1 << 20)
		if err != nil || b == nil {
			break
		}
		fmt.Printf("from line %d: %q\n", b.Line, b.Data)
		if err := s.Ack(b, len(b.Data)); err != nil { // when they are delivered
			panic(err)
		}
	}
	fmt.Println(s.Stats().Lines, "lines left")
	// Output:
	// from line 0: "first\nsecond\n"
	// 0 lines left
}
