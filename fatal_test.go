package rollway_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rollway/rollway"
	"github.com/rollway/rollway/file"
	"github.com/rollway/rollway/remote"
	"github.com/rollway/rollway/slab"
)

// lastWriters are the writers a FATAL line must get out of before the process
// ends. Each opens one to target, a path or a URL.
var lastWriters = map[string]func(target string) (io.Writer, error){
	"os.File": func(path string) (io.Writer, error) { return os.Create(path) },
	"bufio.Writer": func(path string) (io.Writer, error) {
		f, err := os.Create(path)
		return bufio.NewWriterSize(f, 1<<20), err
	},
	"file.File": func(path string) (io.Writer, error) { return file.Open(path, file.Options{}) },
	"slab over os.File": func(path string) (io.Writer, error) {
		f, err := os.Create(path)
		if err != nil {
			return nil, err
		}
		return slab.New(f, slab.Options{Full: slab.Block, FlushInterval: time.Hour})
	},
	"slab over file.File, dropping": func(path string) (io.Writer, error) {
		f, err := file.Open(path, file.Options{})
		if err != nil {
			return nil, err
		}
		return slab.New(f, slab.Options{FlushInterval: time.Hour, SlabCount: 64, Full: slab.Drop})
	},
	"remote, http": func(url string) (io.Writer, error) { return remote.Open(url, remote.Options{}) },
	"remote, tcp":  func(address string) (io.Writer, error) { return remote.Open(address, remote.Options{}) },
	"slab over remote, tcp": func(address string) (io.Writer, error) {
		w, err := remote.Open(address, remote.Options{})
		if err != nil {
			return nil, err
		}
		return slab.New(w, slab.Options{Full: slab.Block, FlushInterval: time.Hour})
	},
	"slab over remote, http": func(url string) (io.Writer, error) {
		w, err := remote.Open(url, remote.Options{})
		if err != nil {
			return nil, err
		}
		return slab.New(w, slab.Options{Full: slab.Block, FlushInterval: time.Hour})
	},
}

const fatalLines = 500

// TestFatalChild is run by TestFatalLineGetsOut in a process of its own.
func TestFatalChild(t *testing.T) {
	name := os.Getenv("ROLLWAY_TEST_FATAL")
	if name == "" {
		return // TestFatalLineGetsOut looks at what it does
	}
	w, err := lastWriters[name](os.Getenv("ROLLWAY_TEST_TARGET"))
	if err != nil {
		t.Fatal(err)
	}
	// A busy machine may take longer than the default of 5 s.
	l, err := rollway.New(rollway.Options{Outputs: []rollway.Output{{Writer: w}}, CloseTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	for range fatalLines {
		l.Info(t.Context(), "before")
	}
	l.Fatal(t.Context(), "the last word")
}

// TestFatalLineGetsOut: everything logged before, and the FATAL line as the
// last, is at its destination after os.Exit, whatever buffers on the way.
func TestFatalLineGetsOut(t *testing.T) {
	for name := range lastWriters {
		t.Run(name, func(t *testing.T) {
			var got func() []byte
			target := filepath.Join(t.TempDir(), "log")
			if strings.Contains(name, "tcp") {
				target, got = listen(t)
			} else if strings.Contains(name, "remote") {
				server := &bodies{}
				s := httptest.NewServer(server)
				defer s.Close()
				target, got = s.URL+"/api/logs", server.all
			} else {
				got = func() []byte {
					b, err := os.ReadFile(target)
					if err != nil {
						t.Fatal(err)
					}
					return b
				}
			}
			cmd := exec.Command(os.Args[0], "-test.run=^TestFatalChild$")
			cmd.Env = append(os.Environ(), "ROLLWAY_TEST_FATAL="+name, "ROLLWAY_TEST_TARGET="+target)
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != 1 || bytes.Contains(out, []byte("FAIL")) {
				t.Fatalf("child: %v, want exit status 1\n%s", err, out)
			}
			lines := bytes.Split(bytes.TrimSpace(got()), []byte("\n"))
			if len(lines) != fatalLines+1 || !bytes.Contains(lines[fatalLines], []byte(`"level":"FATAL","msg":"the last word"`)) {
				t.Errorf("%d lines, the last is %s", len(lines), lines[len(lines)-1])
			}
		})
	}
}

// listen returns the address of a listener and a function that waits for the
// FATAL line and returns all that has come.
func listen(t *testing.T) (address string, all func() []byte) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var b bodies
	var conns sync.WaitGroup
	accepted := make(chan struct{})
	go func() {
		defer close(accepted)
		for {
			c, err := ln.Accept()
			if err != nil {
				return // closed
			}
			conns.Go(func() {
				defer c.Close()
				got, _ := io.ReadAll(c) // what came before an error counts as well
				b.mu.Lock()
				defer b.mu.Unlock()
				b.got = append(b.got, got...)
			})
		}
	}()
	return "tcp://" + ln.Addr().String(), func() []byte {
		for end := time.Now().Add(30 * time.Second); time.Now().Before(end) && !bytes.Contains(b.all(), []byte("the last word")); {
			time.Sleep(10 * time.Millisecond) // the connection may not even be accepted
		}
		ln.Close()
		<-accepted
		conns.Wait()
		return b.all()
	}
}

// bodies keeps what is posted.
type bodies struct {
	mu  sync.Mutex
	got []byte
}

func (b *bodies) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.got = append(b.got, body...)
}

func (b *bodies) all() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Clone(b.got)
}
