package zstd_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rollway/rollway/bridge/zstd"
	"github.com/rollway/rollway/remote"
)

// What remote sends with this Compressor is zstd, says so, and a server that
// unpacks it has every line.
func TestRemote(t *testing.T) {
	var mu sync.Mutex
	var taken bytes.Buffer
	var packed int64
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if e := r.Header.Get("Content-Encoding"); e != "zstd" {
			t.Errorf("Content-Encoding: %q, want zstd", e)
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(rw, err.Error(), http.StatusBadRequest)
			return
		}
		if !bytes.HasPrefix(body, []byte{0x28, 0xb5, 0x2f, 0xfd}) {
			t.Errorf("the body begins with % x, which is not zstd's magic number", body[:min(4, len(body))])
		}
		data, err := unpack(body)
		if err != nil {
			t.Errorf("unpack %d bytes: %v", len(body), err)
			http.Error(rw, err.Error(), http.StatusBadRequest)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		packed += int64(len(body))
		taken.Write(data)
	}))
	defer server.Close()
	w, err := remote.Open(server.URL+"/", remote.Options{Compress: zstd.Compressor{}, MaxBatch: 64 << 10, CloseTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	for i := range 20 {
		lines := strings.Repeat(fmt.Sprintf(`{"level":"INFO","msg":"charged","attrs":{"batch":%d}}`+"\n", i), 1+i*200)
		want.WriteString(lines)
		if n, err := io.WriteString(w, lines); n != len(lines) || err != nil {
			t.Fatalf("Write of %d bytes = %d, %v", len(lines), n, err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if taken.String() != want.String() {
		t.Errorf("the server has %d bytes, want %d", taken.Len(), want.Len())
	}
	if packed > int64(taken.Len()/10) {
		t.Errorf("%d bytes were sent for %d", packed, taken.Len())
	}
	lines := uint64(strings.Count(want.String(), "\n"))
	if s := w.Stats(); s.Accepted != lines || s.Written != lines || s.Pending != 0 || s.Requests <= 20 {
		t.Errorf("Stats = %+v, want %d lines written in more than 20 requests", s, lines)
	}
}
