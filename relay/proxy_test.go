package relay

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

func addrs(from, to string) origin {
	return origin{netip.MustParseAddrPort(from), netip.MustParseAddrPort(to)}
}

// fromHex is bytes written as the specification has them.
func fromHex(s string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		panic(err)
	}
	return b
}

const signatureHex = "0d0a0d0a000d0a515549540a"

func TestParseProxy(t *testing.T) {
	four := addrs("192.0.2.1:56324", "198.51.100.2:443")
	six := addrs("[2001:db8::1]:56324", "[2001:db8::2]:443")
	fourV2 := fromHex(signatureHex + "21 11 000c c0000201 c6336402 dc04 01bb")
	for name, c := range map[string]struct {
		header []byte
		want   origin
	}{
		"v1 IPv4":          {[]byte("PROXY TCP4 192.0.2.1 198.51.100.2 56324 443\r\n"), four},
		"v1 IPv6":          {[]byte("PROXY TCP6 2001:db8::1 2001:db8::2 56324 443\r\n"), six},
		"v1 unknown":       {[]byte("PROXY UNKNOWN\r\n"), origin{}},
		"v1 unknown, more": {[]byte("PROXY UNKNOWN ffff:: ffff:: 65535 65535\r\n"), origin{}},
		"v2 IPv4":          {fourV2, four},
		"v2 IPv6":          {fromHex(signatureHex + "21 21 0024 20010db8000000000000000000000001 20010db8000000000000000000000002 dc04 01bb"), six},
		"v2 local":         {fromHex(signatureHex + "20 00 0000"), origin{}},
		"v2 local, more":   {fromHex(signatureHex + "20 11 000c c0000201 c6336402 dc04 01bb"), origin{}},
		"v2 local, odd":    {fromHex(signatureHex + "20 ff 0003 030001"), origin{}},
		"v2 unspecified":   {fromHex(signatureHex + "21 00 0000"), origin{}},
		"v2 unix":          {append(fromHex(signatureHex+"21 31 00d8"), make([]byte, 216)...), origin{}},
		"v2 datagram":      {fromHex(signatureHex + "21 12 000c c0000201 c6336402 dc04 01bb"), origin{}},
		"v2 TLVs":          {fromHex(signatureHex + "21 11 0013 c0000201 c6336402 dc04 01bb 02 0001 61 04 0000"), four},
		"v2 checksum":      {withChecksum(fourV2), four},
	} {
		t.Run(name, func(t *testing.T) {
			for i := range c.header {
				if _, _, err := parseProxy(c.header[:i]); err != errShortProxy {
					t.Fatalf("%d of %d bytes: %v", i, len(c.header), err)
				}
			}
			got, n, err := parseProxy(append(bytes.Clone(c.header), "bytes after"...))
			if got != c.want || n != len(c.header) || err != nil {
				t.Errorf("%v, %d, %v, want %v, %d", got, n, err, c.want, len(c.header))
			}
		})
	}
}

// withChecksum adds the TLV with a checksum to a header.
func withChecksum(header []byte) []byte {
	h := bytes.Clone(header)
	binary.BigEndian.PutUint16(h[14:], binary.BigEndian.Uint16(h[14:])+7)
	h = append(h, tlvCRC32C, 0, 4, 0, 0, 0, 0)
	binary.BigEndian.PutUint32(h[len(h)-4:], crc32.Checksum(h, castagnoli))
	return h
}

var malformedProxy = map[string][]byte{
	"nothing of the kind":  []byte("<13>a line of syslog\n"),
	"lower case":           []byte("proxy TCP4 192.0.2.1 198.51.100.2 56324 443\r\n"),
	"v1 words":             []byte("PROXY TCP4 192.0.2.1 198.51.100.2 56324\r\n"),
	"v1 protocol":          []byte("PROXY UDP4 192.0.2.1 198.51.100.2 56324 443\r\n"),
	"v1 family":            []byte("PROXY TCP4 2001:db8::1 2001:db8::2 56324 443\r\n"),
	"v1 address":           []byte("PROXY TCP4 192.0.2.256 198.51.100.2 56324 443\r\n"),
	"v1 port":              []byte("PROXY TCP4 192.0.2.1 198.51.100.2 65536 443\r\n"),
	"v1 port with zero":    []byte("PROXY TCP4 192.0.2.1 198.51.100.2 056324 443\r\n"),
	"v1 two spaces":        []byte("PROXY TCP4  192.0.2.1 198.51.100.2 56324 443\r\n"),
	"v1 too long":          []byte("PROXY TCP4 " + strings.Repeat("1", 200)),
	"v2 version":           fromHex(signatureHex + "11 11 000c c0000201 c6336402 dc04 01bb"),
	"v2 command":           fromHex(signatureHex + "22 11 000c c0000201 c6336402 dc04 01bb"),
	"v2 family":            fromHex(signatureHex + "21 41 000c c0000201 c6336402 dc04 01bb"),
	"v2 protocol":          fromHex(signatureHex + "21 13 000c c0000201 c6336402 dc04 01bb"),
	"v2 addresses short":   fromHex(signatureHex + "21 11 000b c0000201 c6336402 dc04 01"),
	"v2 TLV short":         fromHex(signatureHex + "21 11 000e c0000201 c6336402 dc04 01bb 0200"),
	"v2 TLV too long":      fromHex(signatureHex + "21 11 0010 c0000201 c6336402 dc04 01bb 02000261"),
	"v2 wrong checksum":    fromHex(signatureHex + "21 11 0013 c0000201 c6336402 dc04 01bb 030004 00000000"),
	"v2 checksum's length": fromHex(signatureHex + "21 11 000f c0000201 c6336402 dc04 01bb 030000"),
	"v2 larger than taken": fromHex(signatureHex + "21 11 ffff"),
}

func TestMalformedProxy(t *testing.T) {
	w := newWay(t, road{listen: "tcp://127.0.0.1:0", options: Options{TrustProxy: loopback}})
	for name, header := range malformedProxy {
		if _, _, err := parseProxy(header); err == nil || err == errShortProxy {
			t.Errorf("%s: parsed with %v", name, err)
		}
		c := w.dial()
		if _, err := c.Write(header); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 1)); !isReset(err) {
			t.Errorf("%s: the client has %v, want a reset", name, err)
		}
	}
	w.closed(ReasonProxyHeader, uint64(len(malformedProxy)))
	// One that breaks off.
	gone := w.dial()
	send(t, gone, "PROXY TCP4 192.0.2.1")
	gone.Close()
	w.closed(ReasonProxyHeader, uint64(len(malformedProxy))+1)
	// None of that keeps a good one out.
	client := w.dial()
	send(t, client, "PROXY UNKNOWN\r\nhello")
	receive(t, w.accept(), "hello")

	// One that never becomes whole.
	w = newWay(t, road{listen: "tcp://127.0.0.1:0", options: Options{TrustProxy: loopback, HandshakeTimeout: 50 * time.Millisecond}})
	_, _ = io.WriteString(w.dial(), "PROXY TCP4 192.0.2.1") // fails if the time is up already
	w.closed(ReasonProxyHeader, 1)
}

// The header that comes in goes out, whatever the versions, and the bytes on
// both sides of it stay in order.
func TestProxyInAndOut(t *testing.T) {
	for _, version := range []int{1, 2} {
		w := newWay(t, road{listen: "tcp://127.0.0.1:0", options: Options{TrustProxy: loopback, SendProxy: version}})
		for _, in := range []int{1, 2} {
			o := addrs("192.0.2.1:56324", "198.51.100.2:443")
			header := appendProxyV1(nil, o)
			if in == 2 {
				header = appendProxyV2(nil, false, o, nil)
			}
			client := w.dial()
			send(t, client, string(header)+"after it")
			upstream := w.accept()
			got, rest := readHeader(t, upstream)
			if got != o || rest != "" {
				t.Errorf("version %d in, %d out: %v and %q arrived", in, version, got, rest)
			}
			receive(t, upstream, "after it")
			send(t, client, ", and more")
			receive(t, upstream, ", and more")
		}
	}
}

// readHeader reads a PROXY header byte by byte.
func readHeader(t *testing.T, c net.Conn) (o origin, rest string) {
	t.Helper()
	var b []byte
	for {
		b = append(b, 0)
		if _, err := io.ReadFull(c, b[len(b)-1:]); err != nil {
			t.Fatal(err)
		}
		o, n, err := parseProxy(b)
		if err == nil {
			return o, string(b[n:])
		}
		if !errors.Is(err, errShortProxy) {
			t.Fatalf("%v in %q", err, b)
		}
	}
}

// From whom is not trusted a header is bytes as any other, and the relay tells
// the upstream who really connects.
func TestProxyOfAStranger(t *testing.T) {
	w := newWay(t, road{listen: "tcp://127.0.0.1:0", options: Options{SendProxy: 1, TrustProxy: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}})
	client := w.dial()
	const lie = "PROXY TCP4 192.0.2.7 192.0.2.8 1 2\r\n"
	send(t, client, lie)
	upstream := w.accept()
	got, _ := readHeader(t, upstream)
	if want := client.LocalAddr().String(); got.from.String() != want {
		t.Errorf("the upstream is told %v, want %s", got.from, want)
	}
	receive(t, upstream, lie)
}

// The header comes before the handshake, on both sides, and tells of it.
func TestProxyAndTLS(t *testing.T) {
	a := newAuthority(t)
	server := a.config("127.0.0.1")
	server.ClientAuth, server.ClientCAs = tls.RequireAndVerifyClientCert, a.pool
	w := newWay(t, road{listen: "tls://127.0.0.1:0", options: Options{ServerTLS: server, TrustProxy: loopback, SendProxy: 2}})
	socket, err := net.Dial("tcp", w.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	config := a.config("the client")
	config.RootCAs, config.ServerName = a.pool, "127.0.0.1"
	o := addrs("[2001:db8::1]:56324", "[2001:db8::2]:443")
	// In one write with the handshake's first message, so that the relay reads
	// both at once.
	client := tls.Client(&prefixWriter{socket, appendProxyV1(nil, o)}, config)
	send(t, client, "hello")
	upstream := w.accept()
	b := make([]byte, 1024)
	n, err := io.ReadAtLeast(upstream, b, proxyV2Header+36)
	if err != nil {
		t.Fatal(err)
	}
	got, size, err := parseProxy(b[:n])
	if err != nil || got != o {
		t.Fatalf("%v, %v, want %v", got, err, o)
	}
	for _, want := range []string{"\x22\x00\x0athe client", "\x21\x00\x07TLSv1.3", "\x20\x00\x1c\x03\x00\x00\x00\x00"} {
		if !strings.Contains(string(b[:size]), want) {
			t.Errorf("%q lacks %q", b[:size], want)
		}
	}
	rest := make([]byte, len("hello")-(n-size))
	if _, err := io.ReadFull(upstream, rest); err != nil || string(b[size:n])+string(rest) != "hello" {
		t.Errorf("after the header %q%q, %v", b[size:n], rest, err)
	}
	client.Close()
}

// A prefixWriter puts bytes before the first write.
type prefixWriter struct {
	net.Conn
	prefix []byte
}

func (p *prefixWriter) Write(b []byte) (int, error) {
	_, err := p.Conn.Write(append(p.prefix, b...))
	if p.prefix = nil; err != nil {
		return 0, err
	}
	return len(b), nil
}

func TestSameFamily(t *testing.T) {
	got := addrs("192.0.2.1:1", "[2001:db8::2]:2").sameFamily()
	header := appendProxyV1(nil, got)
	if o, _, err := parseProxy(header); err != nil || o != got {
		t.Errorf("%q parses as %v, %v", header, o, err)
	}
	b := appendProxy(nil, 2, nil)
	if o, n, err := parseProxy(b); err != nil || o != (origin{}) || n != len(b) {
		t.Errorf("the header of a check parses as %v, %v", o, err)
	}
}

// FuzzProxy: what parses is written as it was meant, in both versions, no
// header is taken before it is whole, and bytes after it change nothing.
func FuzzProxy(f *testing.F) {
	for _, header := range malformedProxy {
		f.Add(header)
	}
	f.Add([]byte("PROXY TCP4 192.0.2.1 198.51.100.2 56324 443\r\nmore"))
	f.Add([]byte("PROXY TCP6 2001:db8::1 2001:db8::2 56324 443\r\n"))
	f.Add([]byte("PROXY UNKNOWN a b c\r\n"))
	f.Add([]byte("PROXY TCP6 ::ffff:192.0.2.1 :: 0 65535\r\n"))
	f.Add([]byte("PROXY TCP4 0.0.0.0 255.255.255.255 0 65535\r\n" + proxySignature))
	f.Add(fromHex(signatureHex + "20 ff 0003 030001"))
	f.Add(fromHex(signatureHex + "21 21 0024 20010db8000000000000000000000001 20010db8000000000000000000000002 dc04 01bb"))
	f.Add(fromHex(signatureHex + "21 11 0013 c0000201 c6336402 dc04 01bb 02 0001 61 04 0000"))
	f.Add(append(fromHex(signatureHex+"21 31 00d8"), make([]byte, 216)...))
	f.Add(append(fromHex(signatureHex+"20 00 0ff0"), make([]byte, 0xff0)...))
	f.Add(withChecksum(fromHex(signatureHex + "21 11 000c c0000201 c6336402 dc04 01bb")))
	f.Fuzz(func(t *testing.T, b []byte) {
		o, n, err := parseProxy(b)
		if err == errShortProxy {
			if len(b) >= maxProxyHeader {
				t.Fatalf("more is waited for behind %d bytes", len(b))
			}
			return
		}
		o2, n2, err2 := parseProxy(append(bytes.Clone(b), "PROXY \r\n\x00"...))
		if o2 != o || n2 != n || (err2 == nil) != (err == nil) || err2 == errShortProxy {
			t.Fatalf("%v, %d, %v with more bytes after it: %v, %d, %v", o, n, err, o2, n2, err2)
		}
		if err != nil {
			return
		}
		if n <= 0 || n > len(b) {
			t.Fatalf("%d bytes of %d", n, len(b))
		}
		for i := range n {
			if _, _, err := parseProxy(b[:i]); err != errShortProxy {
				t.Fatalf("%d of its %d bytes: %v", i, n, err)
			}
		}
		for _, again := range [][]byte{appendProxyV1(nil, o.sameFamily()), appendProxyV2(nil, false, o.sameFamily(), nil)} {
			if p, m, err := parseProxy(again); err != nil || p != o.sameFamily() || m != len(again) {
				t.Fatalf("%v written as %q parses as %v, %v", o, again, p, err)
			}
		}
	})
}
