package zstd_test

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/rollway/rollway/bridge/zstd"
	"github.com/rollway/rollway/file"
)

func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	f, err := file.Open(filepath.Join(dir, "service.log"), file.Options{Every: 24 * time.Hour, Compress: zstd.Compressor{}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Fprintln(f, `{"msg":"of the day"}`)
	f.Rotate() // as midnight does
	f.Close()  // waits for the packing
	packed, _ := filepath.Glob(filepath.Join(dir, "service-*.log.zst"))
	fmt.Println(len(packed), "packed file")
	// Output: 1 packed file
}
