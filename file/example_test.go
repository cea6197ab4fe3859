package file_test

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

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
	out, err := slab.New(f, slab.Options{})
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

// A series of at most 2 GiB, packed, which a signal reopens too.
func Example_rotation() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	f, err := file.Open(filepath.Join(dir, "service.log"), file.Options{
		MaxSize:  100 << 20,
		Every:    24 * time.Hour,
		KeepSize: 2 << 30,
		Compress: file.Gzip{},
		OnError:  func(err error) { fmt.Println(err) },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer f.ReopenOn(syscall.SIGHUP)()
	fmt.Fprintln(f, `{"msg":"yesterday"}`)
	if err := f.Rotate(); err != nil { // as midnight does
		fmt.Println(err)
	}
	fmt.Fprintln(f, `{"msg":"today"}`)
	if err := f.Close(); err != nil { // waits for the packing
		fmt.Println(err)
	}
	packed, _ := filepath.Glob(filepath.Join(dir, "service-*.log.gz"))
	data, _ := os.ReadFile(filepath.Join(dir, "service.log"))
	fmt.Printf("%d packed file and %s", len(packed), data)
	// Output: 1 packed file and {"msg":"today"}
}
