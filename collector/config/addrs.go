package config

import (
	"fmt"
	"net"
	"slices"
	"strings"
)

// Addr is where something other than HTTP is taken.
type Addr struct {
	Network string // such as udp, tcp or tls
	Host    string // host:port
}

func (a Addr) String() string { return a.Network + "://" + a.Host }

// ParseAddrs reads addresses separated by blanks, each network://host:port with
// one of the networks. Without a host it is loopback.
func ParseAddrs(text string, networks ...string) (list []Addr, err error) {
	for _, word := range strings.Fields(text) {
		network, host, found := strings.Cut(word, "://")
		if !found || !slices.Contains(networks, network) {
			return nil, fmt.Errorf("%q is not an address here: write %s://host:port, and blanks between several", word, strings.Join(networks, ":// or "))
		}
		if err := checkAddr(host); err != nil {
			return nil, err
		}
		if strings.HasPrefix(host, ":") {
			host = net.JoinHostPort("127.0.0.1", host[1:])
		}
		list = append(list, Addr{network, host})
	}
	return list, nil
}

func checkAddrs(networks ...string) func(string) error {
	return func(text string) error {
		_, err := ParseAddrs(text, networks...)
		return err
	}
}
