package config

import (
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"
)

// Name matches names of tenants, tokens and rules. Some become labels of metrics.
var Name = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// Addr is an address for a protocol other than HTTP.
type Addr struct {
	Network string // such as udp, tcp or tls
	Host    string // host:port
	Tenant  string // of its events; "": none
}

func (a Addr) String() string { return a.Network + "://" + a.Host }

// ParseAddrs parses addresses separated by blanks, each network://host:port with one of
// the networks. Without a host it is loopback. ?tenant=NAME after it sets the tenant.
func ParseAddrs(text string, networks ...string) (list []Addr, err error) {
	for _, word := range strings.Fields(text) {
		addr, option, hasOption := strings.Cut(word, "?")
		network, host, found := strings.Cut(addr, "://")
		if !found || !slices.Contains(networks, network) {
			return nil, fmt.Errorf("%q is not an address: write %s://host:port, with blanks between several", word, strings.Join(networks, ":// or "))
		}
		if err := checkAddr(host); err != nil {
			return nil, err
		}
		tenant, is := strings.CutPrefix(option, "tenant=")
		if hasOption && (!is || !Name.MatchString(tenant)) {
			return nil, fmt.Errorf("%q: ?tenant=NAME is all that an address takes, with 1 to 64 letters, digits, dots, hyphens and underscores", word)
		}
		if strings.HasPrefix(host, ":") {
			host = net.JoinHostPort("127.0.0.1", host[1:])
		}
		list = append(list, Addr{network, host, tenant})
	}
	return list, nil
}

func checkAddrs(networks ...string) func(string) error {
	return func(text string) error {
		_, err := ParseAddrs(text, networks...)
		return err
	}
}
