//go:build !linux

package remote_test

import (
	"net"
	"syscall"
	"testing"
)

// reserve returns an address of the loopback that is free now.
func reserve(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// reserveUDP returns an address of the loopback that is free now.
func reserveUDP(t testing.TB) string {
	t.Helper()
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return c.LocalAddr().String()
}

// shareAddress is not needed where nothing keeps the port.
func shareAddress(_, _ string, _ syscall.RawConn) error { return nil }
