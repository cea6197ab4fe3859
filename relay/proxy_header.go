package relay

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// The PROXY protocol, by its specification at haproxy.org. Version 1 is a line:
//
//	PROXY TCP4 192.0.2.1 198.51.100.1 56324 443 CRLF
//	PROXY UNKNOWN … CRLF                              no address is told
//
// Version 2, integers being big-endian:
//
//	offset  bytes  what
//	0       12     signature 0D 0A 0D 0A 00 0D 0A 51 55 49 54 0A
//	12      1      version 2 in the upper half; 0 LOCAL or 1 PROXY in the lower
//	13      1      family in the upper half, 1 IPv4, 2 IPv6, 3 unix; 1 stream in
//	               the lower
//	14      2      length of what follows
//	16             source, destination, source port, destination port; then TLVs
//
// A TLV is type (1), length (2) and value. Ours are authority (02), the name that the
// client asked for, and ssl (20): client flags (1), verify (4), which is 0 if the client's
// certificate was verified, and sub-TLVs version (21) and common name (22).
const (
	proxySignature = "\r\n\r\n\x00\r\nQUIT\n"
	proxyV2Header  = 16
	proxyV1Longest = 107 // with CRLF
	proxyV1Prefix  = "PROXY "

	tlvAuthority  = 0x02
	tlvCRC32C     = 0x03
	tlvSSL        = 0x20
	tlvSSLVersion = 0x21
	tlvSSLName    = 0x22

	sslClientTLS  = 0x01
	sslClientCert = 0x02
)

// An origin is the connection that a proxy speaks for. Both addresses are invalid if the
// proxy does not say.
type origin struct{ from, to netip.AddrPort }

var (
	errShortProxy = errors.New("the PROXY header is incomplete")
	errNoProxy    = errors.New("no PROXY header, which connections from this source must begin with")
)

func badProxy(format string, args ...any) error {
	return fmt.Errorf("malformed PROXY header: "+format, args...)
}

// parseProxy reads the header at the beginning of b, and returns how long it is.
// errShortProxy says that b may be the beginning of one.
func parseProxy(b []byte) (o origin, n int, err error) {
	switch {
	case hasPrefixSoFar(b, proxySignature):
		if len(b) < proxyV2Header {
			return o, 0, errShortProxy
		}
		n = proxyV2Header + int(binary.BigEndian.Uint16(b[14:]))
		if n > maxProxyHeader {
			return o, 0, badProxy("%d bytes, and at most %d are taken", n, maxProxyHeader)
		}
		if len(b) < n {
			return o, 0, errShortProxy
		}
		o, err = parseProxyV2(b[:n])
		return o, n, err
	case hasPrefixSoFar(b, proxyV1Prefix):
		line := b[:min(len(b), proxyV1Longest)]
		end := bytes.Index(line, []byte("\r\n"))
		switch {
		case end >= 0:
			o, err = parseProxyV1(string(line[:end]))
			return o, end + 2, err
		case len(line) == proxyV1Longest:
			return o, 0, badProxy("no end of the line within %d bytes", proxyV1Longest)
		}
		return o, 0, errShortProxy
	}
	return o, 0, errNoProxy
}

// maxProxyHeader is the longest header that is accepted, TLVs included. It fits into
// the smallest buffer.
const maxProxyHeader = 4 << 10

// hasPrefixSoFar reports whether b begins with prefix, as far as it goes.
func hasPrefixSoFar(b []byte, prefix string) bool {
	n := min(len(b), len(prefix))
	return string(b[:n]) == prefix[:n]
}

func parseProxyV1(line string) (o origin, err error) {
	words := strings.Split(line, " ")
	if len(words) >= 2 && words[1] == "UNKNOWN" {
		return o, nil
	}
	if len(words) != 6 {
		return o, badProxy("%d words instead of 6", len(words))
	}
	four := words[1] == "TCP4"
	if !four && words[1] != "TCP6" {
		return o, badProxy("protocol %q", words[1])
	}
	if o.from, err = parseProxyAddr(words[2], words[4], four); err == nil {
		o.to, err = parseProxyAddr(words[3], words[5], four)
	}
	return o, err
}

func parseProxyAddr(ip, port string, four bool) (netip.AddrPort, error) {
	a, err := netip.ParseAddr(ip)
	if err != nil || a.Is4() != four || a.Zone() != "" {
		return netip.AddrPort{}, badProxy("address %q", ip)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || port != strconv.FormatUint(n, 10) {
		return netip.AddrPort{}, badProxy("port %q", port)
	}
	return netip.AddrPortFrom(a, uint16(n)), nil
}

// parseProxyV2 reads a whole header.
func parseProxyV2(b []byte) (o origin, err error) {
	version, command := b[12]>>4, b[12]&0xf
	if version != 2 || command > 1 {
		return o, badProxy("version %d, command %d", version, command)
	}
	if command == 0 {
		return o, nil // LOCAL: the specification says to ignore the rest
	}
	family, transport := b[13]>>4, b[13]&0xf
	if family > 3 || transport > 2 {
		return o, badProxy("family and protocol %#02x", b[13])
	}
	size := [...]int{0, 4, 16, 108}[family]
	rest := b[proxyV2Header:]
	addresses := 2 * size
	if family == 1 || family == 2 {
		addresses += 4
	}
	if len(rest) < addresses {
		return o, badProxy("%d bytes of addresses instead of %d", len(rest), addresses)
	}
	if err := checkTLVs(b, proxyV2Header+addresses); err != nil {
		return o, err
	}
	if transport != 1 || family != 1 && family != 2 {
		return o, nil // addresses that are none of TCP
	}
	from, _ := netip.AddrFromSlice(rest[:size])
	to, _ := netip.AddrFromSlice(rest[size : 2*size])
	o.from = netip.AddrPortFrom(from, binary.BigEndian.Uint16(rest[2*size:]))
	o.to = netip.AddrPortFrom(to, binary.BigEndian.Uint16(rest[2*size+2:]))
	return o, nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checkTLVs checks that the TLVs fill the header from at on, and a checksum.
func checkTLVs(header []byte, at int) error {
	for at < len(header) {
		if len(header)-at < 3 {
			return badProxy("a TLV of %d bytes", len(header)-at)
		}
		size := int(binary.BigEndian.Uint16(header[at+1:]))
		value := at + 3
		if len(header)-value < size {
			return badProxy("a TLV of %d bytes where %d are left", size, len(header)-value)
		}
		if header[at] == tlvCRC32C {
			if size != 4 {
				return badProxy("a checksum of %d bytes", size)
			}
			zeroed := bytes.Clone(header)
			clear(zeroed[value : value+4])
			if crc32.Checksum(zeroed, castagnoli) != binary.BigEndian.Uint32(header[value:]) {
				return badProxy("its checksum is wrong")
			}
		}
		at = value + size
	}
	return nil
}

// addresses are the client's and the one it connected to, as far as they are known.
func (s *peer) addresses() origin {
	if s.origin != nil && s.origin.from.IsValid() {
		return *s.origin
	}
	return origin{addrPort(s.socket.RemoteAddr()), addrPort(s.socket.LocalAddr())}
}

// addrPort is a TCP address without its zone; invalid for others.
func addrPort(a net.Addr) netip.AddrPort {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	ap := tcp.AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap().WithZone(""), ap.Port())
}

// appendProxy appends the header for a client; nil if the relay connects for itself.
func appendProxy(dst []byte, version int, client *peer) []byte {
	var o origin
	var tlvs []byte
	if client != nil {
		o = client.addresses().sameFamily()
		tlvs = client.appendTLVs(nil)
	}
	if version == 1 {
		return appendProxyV1(dst, o)
	}
	return appendProxyV2(dst, client == nil, o, tlvs)
}

// sameFamily makes both addresses IPv6 if only one is.
func (o origin) sameFamily() origin {
	if !o.from.IsValid() || !o.to.IsValid() {
		return origin{}
	}
	if o.from.Addr().Is4() != o.to.Addr().Is4() {
		o.from, o.to = mapped(o.from), mapped(o.to)
	}
	return o
}

func mapped(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom16(a.Addr().As16()), a.Port())
}

func appendProxyV1(dst []byte, o origin) []byte {
	dst = append(dst, proxyV1Prefix...)
	if !o.from.IsValid() {
		return append(dst, "UNKNOWN\r\n"...)
	}
	family := 6
	if o.from.Addr().Is4() {
		family = 4
	}
	return fmt.Appendf(dst, "TCP%d %s %s %d %d\r\n", family, o.from.Addr(), o.to.Addr(), o.from.Port(), o.to.Port())
}

func appendProxyV2(dst []byte, local bool, o origin, tlvs []byte) []byte {
	command, family := byte(0x21), byte(0)
	if local {
		command = 0x20
	}
	var addresses []byte
	if o.from.IsValid() {
		family = 0x21
		if o.from.Addr().Is4() {
			family = 0x11
		}
		addresses = append(o.from.Addr().AsSlice(), o.to.Addr().AsSlice()...)
		addresses = binary.BigEndian.AppendUint16(addresses, o.from.Port())
		addresses = binary.BigEndian.AppendUint16(addresses, o.to.Port())
	}
	dst = append(dst, proxySignature...)
	dst = append(dst, command, family)
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(addresses)+len(tlvs)))
	return append(append(dst, addresses...), tlvs...)
}

// appendTLVs appends what TLS knows of a client.
func (s *peer) appendTLVs(dst []byte) []byte {
	t, ok := s.conn.(*tls.Conn)
	if !ok {
		return dst
	}
	state := t.ConnectionState()
	if state.ServerName != "" {
		dst = appendTLV(dst, tlvAuthority, state.ServerName)
	}
	flags, verify, name := byte(sslClientTLS), uint32(1), ""
	if len(state.PeerCertificates) > 0 {
		flags |= sslClientCert
		name = state.PeerCertificates[0].Subject.CommonName
	}
	if len(state.VerifiedChains) > 0 {
		verify = 0
	}
	ssl := binary.BigEndian.AppendUint32([]byte{flags}, verify)
	ssl = appendTLV(ssl, tlvSSLVersion, strings.Replace(tls.VersionName(state.Version), "TLS ", "TLSv", 1))
	if name != "" && len(name) < 256 {
		ssl = appendTLV(ssl, tlvSSLName, name)
	}
	return appendTLV(dst, tlvSSL, string(ssl))
}

func appendTLV(dst []byte, kind byte, value string) []byte {
	dst = binary.BigEndian.AppendUint16(append(dst, kind), uint16(len(value)))
	return append(dst, value...)
}
