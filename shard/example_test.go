package shard_test

import (
	"fmt"
	"os"

	"github.com/rollway/rollway/shard"
)

func Example() {
	w, err := shard.New(os.Stdout, shard.Options{Shards: 4})
	if err != nil {
		panic(err)
	}
	if err := w.LogBytes([]byte(`{"msg":"charged"}`)); err != nil {
		fmt.Fprintln(os.Stderr, "not logged:", err)
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	fmt.Println(w.Stats().Written)
	// Output:
	// {"msg":"charged"}
	// 1
}

func ExampleCount() {
	fmt.Println(shard.Count(50), shard.Count(100), shard.Count(200))
	// Output: 4 8 16
}
