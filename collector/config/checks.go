package config

import (
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rollway/rollway/collector/forwarded"
)

// checkNamed returns the check of a string by its name in a tag; "": any string is valid.
func checkNamed(tag string) func(string) error {
	name, arg, _ := strings.Cut(tag, " ")
	args := strings.Fields(arg)
	switch name {
	case "":
		return func(string) error { return nil }
	case "addr": // and the words given; "or empty": none
		return func(s string) error {
			if len(args) > 0 && (s == "" || slices.Contains(args, s)) {
				return nil
			}
			return checkAddr(s)
		}
	case "addrs": // of these networks
		return func(s string) error { _, err := ParseAddrs(s, args...); return err }
	case "brokers":
		return func(s string) error {
			for _, addr := range strings.Fields(s) {
				if err := checkAddr(addr); err != nil {
					return err
				}
			}
			return nil
		}
	case "not":
		return func(s string) error {
			if strings.TrimSpace(s) == "" {
				return errors.New("it must not be empty")
			}
			return nil
		}
	case "one": // of these words
		return func(s string) error {
			switch {
			case slices.Contains(args, s):
				return nil
			case len(args) == 2:
				return fmt.Errorf("%q is neither %s nor %s", s, args[0], args[1])
			}
			return fmt.Errorf("%q is not one of %s", s, strings.Join(args, ", "))
		}
	case "proxies": // networks and addresses
		return func(s string) error { _, err := forwarded.New(s, forwarded.XForwardedFor); return err }
	case "header":
		return func(s string) error {
			if s != "" && !headerName.MatchString(s) || slices.Contains([]string{"authorization", "cookie", "host"}, strings.ToLower(s)) {
				return fmt.Errorf("%.60q is no header for this: write a name such as X-Forwarded-User", s)
			}
			return nil
		}
	case "zone":
		return func(s string) error {
			if _, err := time.LoadLocation(s); err != nil || s == "" {
				return fmt.Errorf("%q is no time zone that this machine knows: write UTC, Local, or a name such as Europe/Berlin", s)
			}
			return nil
		}
	case "topic":
		return checkTopic
	}
	panic("config: no check " + tag)
}

var headerName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]{0,63}$`)

// checkTopic admits what Kafka admits.
func checkTopic(s string) error {
	for _, c := range []byte(s) {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("._-", c) >= 0) {
			return fmt.Errorf("%q is no name of a topic: use letters, digits, and . _ -", s)
		}
	}
	if s == "" || len(s) > 249 || s == "." || s == ".." {
		return fmt.Errorf("%.300q is no name of a topic: use 1 to 249 letters, digits, and . _ -", s)
	}
	return nil
}

// checkAddr admits host:port with a numeric port; an empty host is every
// interface.
func checkAddr(s string) error {
	_, port, err := net.SplitHostPort(s)
	if err != nil {
		return fmt.Errorf("%q is not an address: write host:port, as in 127.0.0.1:4318 or [::1]:4318", s)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("%q has no usable port: write a number from 0 (any free port) to 65535", s)
	} else if port != strconv.FormatUint(n, 10) {
		return fmt.Errorf("%q has no usable port: %q is not written as a plain number", s, port)
	}
	return nil
}

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
// the networks; tcp, if it is the first of them, may be left out. Without a host it is
// loopback. ?tenant=NAME after it sets the tenant.
func ParseAddrs(text string, networks ...string) (list []Addr, err error) {
	for _, word := range strings.Fields(text) {
		addr, option, hasOption := strings.Cut(word, "?")
		network, host, found := strings.Cut(addr, "://")
		if !found && networks[0] == "tcp" {
			network, host, found = "tcp", addr, true
		}
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
