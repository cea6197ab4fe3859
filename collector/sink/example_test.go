package sink_test

import (
	"context"
	"fmt"
	"os"

	"github.com/rollway/rollway/collector/journal"
	"github.com/rollway/rollway/collector/sink"
)

type printer struct{ done func() }

func (p printer) Deliver(ctx context.Context, b *sink.Batch) error {
	for i := range b.Len() {
		fmt.Printf("%d %s\n", b.First+uint64(i), b.Line(i))
	}
	p.done()
	return nil
}

func Example() {
	dir, _ := os.MkdirTemp("", "journal")
	defer os.RemoveAll(dir)
	j, err := journal.Open(dir, journal.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer j.Close()
	j.Append(context.Background(), journal.Batch{Lines: []byte(`{"msg":"a"}` + "\n" + `{"msg":"b"}` + "\n"), Records: 2})
	ctx, cancel := context.WithCancel(context.Background())
	r, err := sink.New(j, printer{cancel}, sink.Options{Name: "print"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer r.Close()
	fmt.Println(r.Run(ctx), r.Stats().Delivered)
	// Output:
	// 0 {"msg":"a"}
	// 1 {"msg":"b"}
	// <nil> 2
}
