package framed_test

import (
	"bytes"
	"fmt"
	"io"

	"github.com/rollway/rollway/internal/framed"
)

// A writer frames records as they come and seals the buffer when it knows
// where it goes.
func Example() {
	numbers := framed.NewNumbers()
	segment, err := framed.NewSegment(512, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	file := make([]byte, framed.SegmentHeaderSize)
	segment.PutHeader(file)

	buf := make([]byte, 4096)
	number := numbers.Next()
	seed := framed.SeedOf(number)
	used := framed.BatchHeaderSize
	for _, record := range []string{"one", "two"} {
		end := used + framed.RecordSize(len(record))
		seed.PutRecord(buf[used:end], []byte(record))
		used = end
	}
	file = append(file, segment.Seal(buf, used, 2, number)...)
	fmt.Println(len(file), segment.Next)

	r, err := framed.NewReader(bytes.NewReader(file), int64(len(file)), framed.Options{})
	for err == nil {
		var rec framed.Record
		if rec, err = r.Next(); err == nil {
			fmt.Printf("%s\n", rec.Data)
		}
	}
	fmt.Println(err == io.EOF, r.Summary().Records, r.Findings())
	// Output:
	// 4608 4608
	// one
	// two
	// true 2 []
}
