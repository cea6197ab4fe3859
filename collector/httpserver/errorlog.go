package httpserver

import (
	"net"
	"net/netip"
	"strings"
)

// errorLog gets the lines of net/http's log. Of a handshake that fails it tells
// Options.Refused instead of the log, which would get a line for each.
type errorLog struct{ s *Server }

func (l *errorLog) Write(line []byte) (int, error) {
	const handshake = "http: TLS handshake error from "
	rest, is := strings.CutPrefix(string(line), handshake)
	from, why, whole := strings.Cut(rest, ": ")
	addr, err := netip.ParseAddrPort(from)
	switch {
	case !is || !whole || err != nil || l.s.o.Refused == nil:
		l.s.o.ErrorLog.Print(string(line))
	case why != "EOF\n": // a health check, which sends nothing
		l.s.refused(net.TCPAddrFromAddrPort(addr), "tls", strings.TrimSuffix(why, "\n"))
	}
	return len(line), nil
}
