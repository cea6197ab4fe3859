package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/rollway/rollway/internal/testkit"
)

// from dials from an address of loopback, as another client than the victim.
func from(ip, addr string) (net.Conn, error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}, Timeout: 10 * time.Second}
	return d.Dial("tcp", addr)
}

// An assault is connections that attack at the same time, while a victim goes on.
type assault struct {
	conns int
	run   func(c net.Conn, stop <-chan struct{}) (times int) // until stop is closed or c fails
	times atomic.Int64
}

// under runs an assault for a time, and returns how long the victim's requests took
// meanwhile. None of them may be refused.
func (a *target) under(as *assault, how time.Duration) (p99 time.Duration) {
	a.t.Helper()
	stop := make(chan struct{})
	var attackers, victim sync.WaitGroup
	var open sync.Map
	for n := range as.conns {
		attackers.Go(func() {
			for ip := fmt.Sprintf("127.0.0.%d", 2+n%8); ; {
				select {
				case <-stop:
					return
				default:
				}
				c, err := from(ip, hostPort(a.addr))
				if err != nil {
					continue
				}
				open.Store(c, true)
				as.times.Add(int64(as.run(c, stop)))
				open.Delete(c)
				c.Close()
			}
		})
	}
	var took []time.Duration
	defer a.client.CloseIdleConnections()
	victim.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
			}
			begin := time.Now()
			req, err := http.NewRequest("POST", a.addr+"/api/logs", strings.NewReader(`{"msg":"of a victim under attack"}`))
			if err != nil {
				a.t.Error(err)
				return
			}
			req.Header.Set("Authorization", "Bearer "+a.token)
			resp, err := a.client.Do(req)
			if err != nil {
				a.t.Errorf("a victim under attack: %v", err)
				return
			}
			text, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if resp.StatusCode != 200 {
				a.t.Errorf("a victim under attack: %s %s", resp.Status, text)
				return
			}
			took = append(took, time.Since(begin))
		}
	})
	time.Sleep(how)
	close(stop)
	victim.Wait()
	open.Range(func(c, _ any) bool { c.(net.Conn).Close(); return true })
	attackers.Wait()
	if len(took) == 0 {
		a.t.Fatal("the victim has sent nothing")
	}
	slices.Sort(took)
	return took[len(took)*99/100]
}

// An h2 is a connection that speaks HTTP/2 as it likes.
type h2 struct {
	net.Conn
	*http2.Framer
	head *bytes.Buffer
	enc  *hpack.Encoder
	next uint32 // stream
}

// yielding lets other goroutines run before each write: the victim is in this process, and would
// wait for Go's scheduler, not for the collector.
type yielding struct{ net.Conn }

// Write implements io.Writer.
func (y yielding) Write(p []byte) (int, error) {
	runtime.Gosched()
	return y.Conn.Write(p)
}

func newH2(c net.Conn, reads bool, settings ...http2.Setting) (*h2, error) {
	h := &h2{Conn: c, Framer: http2.NewFramer(yielding{c}, c), head: new(bytes.Buffer), next: 1}
	h.enc = hpack.NewEncoder(h.head)
	h.AllowIllegalWrites = true
	if _, err := io.WriteString(c, http2.ClientPreface); err != nil {
		return nil, err
	}
	if reads {
		go io.Copy(io.Discard, c)
	}
	return h, h.WriteSettings(settings...)
}

// headers encodes a request; more are names and values.
func (h *h2) headers(method, path string, more ...string) []byte {
	h.head.Reset()
	fields := append([]string{":method", method, ":scheme", "http", ":authority", "127.0.0.1", ":path", path}, more...)
	for i := 0; i < len(fields); i += 2 {
		h.enc.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	return h.head.Bytes()
}

func (h *h2) open(block []byte, endHeaders, endStream bool) error {
	err := h.WriteHeaders(http2.HeadersFrameParam{StreamID: h.next, BlockFragment: block, EndHeaders: endHeaders, EndStream: endStream})
	h.next += 2
	return err
}

// asH2 is an assault by HTTP/2: step is called until it fails.
func asH2(conns int, reads bool, settings []http2.Setting, step func(h *h2) error) *assault {
	return &assault{conns: conns, run: func(c net.Conn, stop <-chan struct{}) (times int) {
		h, err := newH2(c, reads, settings...)
		for ; err == nil; times++ {
			select {
			case <-stop:
				return times
			default:
			}
			err = step(h)
		}
		return times
	}}
}

// hold does once, and then waits until the connection is closed.
func hold(once func(h *h2) error) func(h *h2) error {
	return func(h *h2) error {
		if err := once(h); err != nil {
			return err
		}
		h.SetReadDeadline(time.Now().Add(time.Minute))
		_, err := io.Copy(io.Discard, h.Conn)
		if err == nil {
			err = io.EOF
		}
		return err
	}
}

func http2Assaults(zeros []byte) map[string]func() *assault {
	post := []string{"content-type", "application/json"}
	return map[string]func() *assault{
		"rapid reset": func() *assault {
			return asH2(20, true, nil, func(h *h2) error {
				id := h.next
				if err := h.open(h.headers("POST", "/api/logs", post...), true, false); err != nil {
					return err
				}
				return h.WriteRSTStream(id, http2.ErrCodeCancel)
			})
		},
		"reset by a window of 0": func() *assault { // MadeYouReset: the server resets
			return asH2(20, true, nil, func(h *h2) error {
				id := h.next
				if err := h.open(h.headers("POST", "/api/logs", post...), true, false); err != nil {
					return err
				}
				return h.WriteWindowUpdate(id, 0)
			})
		},
		"CONTINUATION flood": func() *assault {
			return asH2(20, true, nil, func(h *h2) error {
				id := h.next
				if err := h.open(h.headers("POST", "/api/logs"), false, false); err != nil {
					return err
				}
				for n := 0; ; n++ {
					h.head.Reset()
					h.enc.WriteField(hpack.HeaderField{Name: fmt.Sprint("x-", n), Value: strings.Repeat("y", 1000)})
					if err := h.WriteContinuation(id, false, h.head.Bytes()); err != nil {
						return err
					}
				}
			})
		},
		"empty CONTINUATION frames": func() *assault {
			return asH2(20, true, nil, func(h *h2) error {
				id := h.next
				err := h.open(h.headers("POST", "/api/logs"), false, false)
				for err == nil {
					err = h.WriteContinuation(id, false, nil)
				}
				return err
			})
		},
		"a table of headers that is referred to again and again": func() *assault {
			return asH2(20, true, nil, func(h *h2) error {
				fields := post
				for range 3000 {
					fields = append(fields, "x-bomb", strings.Repeat("z", 3500))
				}
				block := h.headers("POST", "/api/logs", fields...)
				id, first := h.next, true
				for len(block) > 0 {
					part := block[:min(len(block), 16<<10)]
					block = block[len(part):]
					var err error
					if first {
						err = h.open(part, len(block) == 0, true)
					} else {
						err = h.WriteContinuation(id, len(block) == 0, part)
					}
					if first = false; err != nil {
						return err
					}
				}
				return nil
			})
		},
		"SETTINGS flood, answers not read": func() *assault {
			return asH2(60, false, nil, func(h *h2) error {
				h.SetWriteDeadline(time.Now().Add(20 * time.Second))
				return h.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 16}, http2.Setting{ID: http2.SettingHeaderTableSize, Val: 1 << 30})
			})
		},
		"PING flood, answers not read": func() *assault {
			return asH2(60, false, nil, func(h *h2) error {
				h.SetWriteDeadline(time.Now().Add(20 * time.Second))
				return h.WritePing(false, [8]byte{})
			})
		},
		"empty DATA frames": func() *assault {
			return asH2(20, true, nil, func(h *h2) error {
				id := h.next
				err := h.open(h.headers("POST", "/api/logs", post...), true, false)
				for err == nil {
					err = h.WriteData(id, false, nil)
				}
				return err
			})
		},
		"PRIORITY and unknown frames": func() *assault {
			return asH2(20, true, nil, func(h *h2) error {
				if err := h.WritePriority(h.next, http2.PriorityParam{StreamDep: h.next + 2}); err != nil {
					return err
				}
				return h.WriteRawFrame(0xbe, 0, 0, make([]byte, 16<<10))
			})
		},
		"queries whose window stays 0": func() *assault {
			return asH2(60, false, []http2.Setting{{ID: http2.SettingInitialWindowSize, Val: 0}}, hold(func(h *h2) error {
				for range 100 {
					if err := h.open(h.headers("GET", "/api/query?limit=1000"), true, true); err != nil {
						return err
					}
				}
				return nil
			}))
		},
		"answers whose window stays 0, to long headers": func() *assault {
			return asH2(200, true, []http2.Setting{{ID: http2.SettingInitialWindowSize, Val: 0}}, hold(func(h *h2) error {
				for n := range 250 {
					if err := h.open(h.headers("POST", "/nowhere", "x-long", strings.Repeat(fmt.Sprintf("%08d", n), 1500)), true, true); err != nil {
						return err
					}
				}
				return nil
			}))
		},
		"250 streams a connection without a body": func() *assault {
			return asH2(60, false, nil, hold(func(h *h2) error {
				for range 250 {
					if err := h.open(h.headers("POST", "/api/logs", append(post, "content-length", "1000", "x-long", strings.Repeat("l", 2000))...), true, false); err != nil {
						return err
					}
				}
				return nil
			}))
		},
		"the preface, and then nothing": func() *assault {
			return asH2(200, false, nil, hold(func(h *h2) error { return nil }))
		},
		"half a preface": func() *assault {
			return &assault{conns: 200, run: func(c net.Conn, stop <-chan struct{}) int {
				io.WriteString(c, "PRI * HTTP/2.0\r\n")
				c.SetReadDeadline(time.Now().Add(time.Minute))
				io.Copy(io.Discard, c)
				return 1
			}}
		},
		"gRPC: a message of 4 GiB, announced":   func() *assault { return grpcAssault(0, 1<<32-1, []byte("x"), "identity") },
		"gRPC: messages of 5 bytes without end": func() *assault { return grpcAssault(0, 0, nil, "identity") },
		"gRPC: a message that unpacks to 1 GiB": func() *assault {
			return grpcAssault(1, -1, zeros, "gzip")
		},
		"gRPC: frames of one byte each": func() *assault {
			return asH2(20, true, nil, func(h *h2) error {
				id := h.next
				err := h.open(h.headers("POST", "/opentelemetry.proto.collector.logs.v1.LogsService/Export", "content-type", "application/grpc", "te", "trailers"), true, false)
				for n := 0; err == nil && n < 10000; n++ {
					err = h.WriteData(id, false, []byte{0})
				}
				return err
			})
		},
	}
}

// grpcAssault sends one message after the other to OTLP's service, with a length of its own
// or, below 0, that of the body.
func grpcAssault(flag byte, length int64, body []byte, coding string) *assault {
	return asH2(20, true, nil, func(h *h2) error {
		id := h.next
		err := h.open(h.headers("POST", "/opentelemetry.proto.collector.logs.v1.LogsService/Export", "content-type", "application/grpc", "te", "trailers", "grpc-encoding", coding), true, false)
		announced := length
		if length < 0 {
			announced = int64(len(body))
		}
		message := append(binary.BigEndian.AppendUint32([]byte{flag}, uint32(announced)), body...)
		for n := 0; err == nil && n < 200; n++ {
			for rest := message; err == nil && len(rest) > 0; {
				part := rest[:min(len(rest), 16<<10)]
				rest = rest[len(part):]
				err = h.WriteData(id, false, part)
			}
		}
		if err == nil {
			err = h.WriteRSTStream(id, http2.ErrCodeCancel)
		}
		return err
	})
}

// TestRedteamHTTP2 attacks by HTTP/2 and gRPC, one way after the other.
func TestRedteamHTTP2(t *testing.T) {
	testkit.NoRace(t, "its victims wait for a collector that is ten times as slow")
	how := time.Duration(testkit.Rounds(t, testkit.Redteam, 200, 2500)) * time.Millisecond
	a := newTarget(t, "timeouts: {read_header: 2s, read: 4s, write: 4s, idle: 5s, query: 4s}\n")
	a.bound = mostResident(200) + 64<<20 // and what queries take
	for range 50 {
		a.request("POST", "/api/logs", strings.Repeat(`{"msg":"`+strings.Repeat("a line that is found ", 40)+`"}`+"\n", 1000))
	}
	a.ready()
	worst, times, all := time.Duration(0), 0, http2Assaults(gzipMembers(t, 64, 16<<20))
	for name, make := range all {
		as := make()
		p99 := a.under(as, how)
		t.Logf("%-60s %8d times, a victim's p99 %v, resident %d MiB", name, as.times.Load(), p99, residentPeak(t, a.cmd.Process.Pid)>>20)
		worst, times = max(worst, p99), times+int(as.times.Load())
	}
	left := a.unharmed()
	testkit.Attack{
		Attack: fmt.Sprintf("%d attacks by HTTP/2 and gRPC", len(all)), Times: times,
		Promised: "no victim is refused, p99 ≤ 2 s; nothing is left over",
		Measured: fmt.Sprintf("0 refused, p99 %v under the worst; %s", worst.Round(time.Millisecond), left),
	}.Report(t)
	if worst > 2*time.Second { // also beside other tests
		t.Errorf("a victim's p99 is %v", worst)
	}
}
