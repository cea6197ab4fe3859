package zstd_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rollway/rollway/bridge/zstd"
	"github.com/rollway/rollway/file"
	"github.com/rollway/rollway/internal/testkit"
)

var (
	_ file.Compressor = zstd.Compressor{}
	_ interface {
		Encoding() string
		NewWriter(io.Writer) (io.WriteCloser, error)
		NewReader(io.Reader) (io.ReadCloser, error)
	} = zstd.Compressor{}
)

func pack(t *testing.T, c zstd.Compressor, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := c.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func unpack(packed []byte) ([]byte, error) {
	r, err := zstd.Compressor{}.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

var sample = []byte(strings.Repeat(`{"level":"INFO","msg":"charged","attrs":{"customer":"c-19"}}`+"\n", 5000))

func TestRoundTrip(t *testing.T) {
	for _, level := range []int{0, 1, 3, 9, 22} {
		c := zstd.Compressor{Level: level}
		for _, data := range [][]byte{nil, []byte("x"), sample} {
			packed := pack(t, c, data)
			if len(packed) == 0 || len(data) > 100 && len(packed) > len(data)/10 {
				t.Errorf("level %d: %d bytes became %d", level, len(data), len(packed))
			}
			if got, err := unpack(packed); err != nil || !bytes.Equal(got, data) {
				t.Errorf("level %d: %d bytes came back as %d, %v", level, len(data), len(got), err)
			}
			if got, err := unpack(slices.Concat(packed, packed)); err != nil || len(got) != 2*len(data) {
				t.Errorf("level %d: two streams gave %d bytes, %v", level, len(got), err)
			}
		}
	}
}

func TestBadLevel(t *testing.T) {
	for _, level := range []int{-1, 23} {
		if _, err := (zstd.Compressor{Level: level}).NewWriter(io.Discard); err == nil || !strings.Contains(err.Error(), "1 to 22") {
			t.Errorf("level %d: %v", level, err)
		}
	}
}

// What a crash has cut off is not taken for whole.
func TestIncomplete(t *testing.T) {
	packed := pack(t, zstd.Compressor{}, sample)
	for n := range len(packed) {
		if n == 0 {
			continue // nothing at all is no stream, and no error
		}
		if _, err := unpack(packed[:n]); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("the first %d of %d bytes: %v", n, len(packed), err)
		}
	}
}

// A series is packed, read back by this package and by the zstd program, and
// what packed files contain is found.
func TestFileRotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "service.log")
	f, err := file.Open(path, file.Options{MaxSize: 4_000, Compress: zstd.Compressor{}, OnError: func(err error) { t.Error(err) }})
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	volume, inode, offset, err := f.Prepare(1)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2000 {
		line := fmt.Sprintf("line %d\n", i)
		want.WriteString(line)
		if _, err := io.WriteString(f, line); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if f, err = file.Open(path, file.Options{Compress: zstd.Compressor{}}); err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if n, err := f.Holds(volume, inode, offset, []byte("line 0\nline 1\n")); n != 14 || err != nil {
		t.Errorf("Holds in a packed file = %d, %v, want 14", n, err)
	}
	packed, err := filepath.Glob(filepath.Join(filepath.Dir(path), "service-*.log.zst"))
	if err != nil {
		t.Fatal(err)
	}
	if s := f.Stats(); len(packed) < 2 {
		t.Fatalf("%d packed files, Stats %+v", len(packed), s)
	}
	slices.Sort(packed)
	var all []byte
	for _, name := range packed {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		part, err := unpack(b)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all = append(all, part...)
	}
	last, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if all = append(all, last...); string(all) != want.String() {
		t.Errorf("the series has %d bytes, want %d", len(all), want.Len())
	}
	if program, err := exec.LookPath("zstd"); err == nil {
		out, err := exec.Command(program, append([]string{"-dc"}, packed...)...).Output()
		if err != nil || !strings.HasPrefix(want.String(), string(out)) || len(out) != want.Len()-len(last) {
			t.Errorf("zstd -dc gave %d bytes, %v", len(out), err)
		}
	} else if testkit.All() {
		t.Fatal("REQUIRE=all, but this needs the program zstd: ", err)
	} else {
		t.Log("not compared with the zstd program: ", err)
	}
}
