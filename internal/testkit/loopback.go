package testkit

import (
	"fmt"
	"net"
	"os"
)

// LoopbackHost returns an address of the loopback network that other processes
// leave alone: a free port of it stays free, unless a process listens on all
// addresses. Where the loopback network has one address, it returns that one.
func LoopbackHost() string {
	pid := os.Getpid()
	host := fmt.Sprintf("127.%d.%d.%d", 64+pid>>16&63, pid>>8&255, pid&255)
	l, err := net.Listen("tcp", host+":0")
	if err != nil {
		return "127.0.0.1"
	}
	l.Close()
	return host
}

// FreeAddr returns a host:port of [LoopbackHost] on which nothing listens, for a
// program that starts later, or again at the same address.
func FreeAddr() (string, error) {
	l, err := net.Listen("tcp", LoopbackHost()+":0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
