package remote_test

import (
	stdflate "compress/flate"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/rollway/rollway/remote"
)

// flate is a Compressor of raw DEFLATE.
type flate struct {
	name string // default deflate
	fail error  // from NewWriter
}

func (f flate) Encoding() string {
	if f.name != "" {
		return f.name
	}
	return "deflate"
}

func (f flate) NewWriter(w io.Writer) (io.WriteCloser, error) {
	if f.fail != nil {
		return nil, f.fail
	}
	return stdflate.NewWriter(w, 1)
}

func (f flate) NewReader(r io.Reader) (io.ReadCloser, error) { return stdflate.NewReader(r), nil }

func TestCompressor(t *testing.T) {
	t.Parallel()
	peer := startHTTPPeer(t)
	var got strings.Builder
	peer.always = func(rw http.ResponseWriter, r *http.Request) {
		if e := r.Header.Get("Content-Encoding"); e != "deflate" {
			t.Errorf("Content-Encoding is %q", e)
		}
		z, _ := flate{}.NewReader(r.Body)
		if _, err := io.Copy(&got, z); err != nil {
			t.Error(err)
		}
	}
	w := open(t, peer.URL+"/", remote.Options{Compress: flate{}, MaxBatch: 10_000})
	all := numbered(0, 1000)
	write(t, w, all)
	if got.String() != all {
		t.Errorf("the peer unpacked %d bytes, want %d", got.Len(), len(all))
	}
	if s := w.Stats(); s.BytesSent > uint64(len(all)/2) || s.Requests < 3 {
		t.Errorf("Stats = %+v: not compressed, or not in several requests", s)
	}
	settled(t, w, 1000, 1000)

	boom := errors.New("no memory")
	w = open(t, peer.URL+"/", remote.Options{Compress: flate{fail: boom}})
	if n, err := w.Write([]byte(all)); n != 0 || !errors.Is(err, boom) {
		t.Errorf("Write = %d, %v, want the Compressor's error and the lines kept", n, err)
	}
	settled(t, w, 0, 0)
}
