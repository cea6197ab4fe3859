package file_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/rollway/rollway/file"
	"github.com/rollway/rollway/slab"
)

func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "service.log")

	// A crash has left half a line.
	os.WriteFile(path, []byte("{\"msg\":\"old\"}\n{\"ms"), 0o640)
	f, err := file.Open(path, file.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	out, err := slab.New(f, slab.Options{CloseDestination: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Fprintln(out, `{"msg":"new"}`)
	if err := out.Close(); err != nil {
		fmt.Println(err)
	}
	data, _ := os.ReadFile(path)
	fmt.Print(string(data))
	s := f.Stats()
	fmt.Println("written", s.Written, "cut bytes", s.CutBytes)
	// Output:
	// {"msg":"old"}
	// {"msg":"new"}
	// written 1 cut bytes 4
}
