package testkit

import (
	"net"
	"testing"
)

// An address of FreeAddr stays free whatever others take of 127.0.0.1.
func TestFreeAddr(t *testing.T) {
	for range 100 {
		addr, err := FreeAddr()
		if err != nil {
			t.Fatal(err)
		}
		host, port, err := net.SplitHostPort(addr)
		if err != nil || !net.ParseIP(host).IsLoopback() {
			t.Fatal(addr, err)
		}
		if host == "127.0.0.1" {
			return // all that there is here
		}
		other, err := net.Listen("tcp", "127.0.0.1:"+port)
		if err != nil {
			continue // another process was faster
		}
		defer other.Close()
		l, err := net.Listen("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
		return
	}
	t.Error("no port of 127.0.0.1 is free")
}
