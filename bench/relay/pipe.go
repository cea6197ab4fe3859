package relay

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync"
	"time"

	"github.com/rollway/rollway/bench/internal/measure"
)

// What the client of an in-memory relay wraps its bytes in.
const (
	wrapNone    = "raw"
	wrapRecords = "records" // TLS's framing without its encryption, as the original had
	wrapTLS     = "TLS"
)

// A pipeTransfer sends one stream from an in-memory pipe through one pump to
// another, as the published benchmark did. There are no system calls in it.
type pipeTransfer struct {
	name   string
	wrap   string
	chunk  int // bytes of one write
	length int
	times  int // streams of one sample
}

// take returns times per byte and the Reads on the pipe for one stream.
func (t pipeTransfer) take(r *rig, j job) (measure.Sample, error) {
	p, err := pumpOf(j.Pump, j.Size)
	if err != nil {
		return measure.Sample{}, err
	}
	config, err := j.serverTLS()
	if err != nil {
		return measure.Sample{}, err
	}
	runtime.GC()
	var reads int
	meter := measure.StartMeter()
	for range t.times {
		if reads, err = t.once(p, r.client, config); err != nil {
			return measure.Sample{}, err
		}
	}
	took, cpu, others := meter.Read()
	n := float64(t.length * t.times)
	return measure.Sample{
		Ops: t.length * t.times, NsPerOp: float64(took) / n, CPUNsPerOp: float64(cpu) / n, OthersPct: others,
		Extra: map[string]float64{"reads": float64(reads)},
	}, nil
}

// once sends one stream and returns how often the pipe was read.
func (t pipeTransfer) once(p pump, client, server *tls.Config) (reads int, err error) {
	near, far := net.Pipe()
	upstream, sink := net.Pipe()
	counted := &countedConn{Conn: far}
	var from net.Conn = counted
	var to io.WriteCloser = near
	switch t.wrap {
	case wrapRecords:
		from, to = &recordReader{Conn: counted}, &recordWriter{WriteCloser: near}
	case wrapTLS:
		from, to = tls.Server(counted, server), tls.Client(near, client)
	}
	var all sync.WaitGroup
	errs := make([]error, 2)
	all.Go(func() { errs[0] = errors.Join(send(to, t.length, t.chunk), to.Close()) })
	all.Go(func() { errs[1] = errors.Join(p(upstream, from), upstream.Close()) })
	got, err := receive(sink, t.length)
	if err == nil {
		if _, end := sink.Read(make([]byte, 1)); end != io.EOF {
			err = fmt.Errorf("the end came through as %v", end)
		}
	}
	near.SetDeadline(time.Now()) // TLS would wait to send an alert that is not read
	sink.Close()
	all.Wait()
	far.Close()
	if t.wrap == wrapTLS {
		errs[0] = ignoreTimeout(errs[0])
	}
	return counted.reads, errors.Join(err, checkSum(got, t.length), errs[0], errs[1])
}

func ignoreTimeout(err error) error {
	if t, ok := errors.AsType[net.Error](err); ok && t.Timeout() {
		return nil
	}
	return err
}

// A countedConn counts Reads. One goroutine reads.
type countedConn struct {
	net.Conn
	reads int
}

func (c *countedConn) Read(p []byte) (int, error) {
	c.reads++
	return c.Conn.Read(p)
}

// A record is a header of five bytes, the last two of them the length of what
// follows, as in RFC 8446 section 5.1; nothing is encrypted.
const (
	recordHeader = 5
	recordBytes  = stackBytes
)

// A recordWriter cuts what is written into records.
type recordWriter struct {
	io.WriteCloser
	buf []byte
}

func (w *recordWriter) Write(p []byte) (int, error) {
	for at := 0; at < len(p); {
		n := min(recordBytes, len(p)-at)
		w.buf = binary.BigEndian.AppendUint16(append(w.buf[:0], 23, 3, 3), uint16(n))
		w.buf = append(w.buf, p[at:at+n]...)
		if _, err := w.WriteCloser.Write(w.buf); err != nil {
			return at, err
		}
		at += n
	}
	return len(p), nil
}

// A recordReader takes records apart; it reads the connection into a buffer of
// its own, so that the size of the caller's does not matter.
type recordReader struct {
	net.Conn
	buf  [recordHeader + recordBytes]byte
	have []byte // of buf, not yet taken apart
	left int    // payload of the current record not yet returned
}

func (r *recordReader) Read(p []byte) (int, error) {
	for r.left == 0 || len(r.have) == 0 {
		if r.left == 0 && len(r.have) >= recordHeader {
			r.left = int(binary.BigEndian.Uint16(r.have[3:]))
			r.have = r.have[recordHeader:]
			continue
		}
		kept := copy(r.buf[:], r.have)
		n, err := r.Conn.Read(r.buf[kept:])
		r.have = r.buf[:kept+n]
		if n == 0 && err != nil {
			return 0, err
		}
	}
	n := copy(p, r.have[:min(len(r.have), r.left)])
	r.have = r.have[n:]
	r.left -= n
	return n, nil
}

// getPut is what a sync.Pool costs beside an array on the stack.
func getPut() []measure.Subject {
	pool := &sync.Pool{New: func() any { b := make([]byte, 16<<10); return &b }}
	subject := func(name string, loop func(n int)) measure.Subject {
		return measure.Subject{Case: caseGetPut, Library: name, Mode: modePipe, Goroutines: 1, Prepare: func() (measure.Run, error) {
			return measure.Run{Loop: func(_, n int) { loop(n) }}, nil
		}}
	}
	return []measure.Subject{
		subject("sync.Pool.Get and Put, 16 KiB", func(n int) {
			for range n {
				buf := pool.Get().(*[]byte)
				(*buf)[n&1023]++
				pool.Put(buf)
			}
		}),
		subject("the array on the stack, not cleared", func(n int) {
			var buf [stackBytes]byte
			for i := range n {
				buf[(n+i)&1023]++
			}
			runtime.KeepAlive(buf[n&1023])
		}),
		subject("the array on the stack, cleared as a new one is", func(n int) {
			var sum byte
			for i := range n {
				sum += cleared(i)
			}
			runtime.KeepAlive(sum)
		}),
	}
}

//go:noinline
func cleared(i int) byte {
	var buf [stackBytes]byte
	buf[i&1023]++
	return buf[(i+1)&1023]
}
