//go:build !linux

package remote_test

import (
	"net"
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
