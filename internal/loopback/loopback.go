// Package loopback chooses addresses for programs that are started later, or once
// more at the same address. It is for tests and tools.
package loopback

import (
	"fmt"
	"net"
	"os"
)

// Host is an address of the loopback network that other processes leave alone: a
// port of it that is free stays free, unless somebody listens on all addresses.
// Where the loopback network is one address, it is that.
func Host() string {
	pid := os.Getpid()
	host := fmt.Sprintf("127.%d.%d.%d", 64+pid>>16&63, pid>>8&255, pid&255)
	l, err := net.Listen("tcp", host+":0")
	if err != nil {
		return "127.0.0.1"
	}
	l.Close()
	return host
}

// Free is a host:port of [Host] on which nobody listens.
func Free() (string, error) {
	l, err := net.Listen("tcp", Host()+":0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
