package httpserver

import (
	"net"
	"net/netip"
	"strings"
)

// errorLog gets the lines of net/http's log. What clients cause, a line for each
// connection, it tells Options.Refused instead of the log.
type errorLog struct{ s *Server }

func (l *errorLog) Write(line []byte) (int, error) {
	for _, of := range [][2]string{{"tls", "http: TLS handshake error from "}, {"protocol", "http2: server connection error from "}} {
		rest, is := strings.CutPrefix(string(line), of[1])
		from, why, _ := strings.Cut(rest, ": ")
		addr, err := netip.ParseAddrPort(from)
		if !is || err != nil || l.s.o.Refused == nil {
			continue
		}
		if why != "EOF\n" { // of a health check, which sends nothing
			l.s.refused(net.TCPAddrFromAddrPort(addr), of[0], strings.TrimSuffix(why, "\n"))
		}
		return len(line), nil
	}
	l.s.o.ErrorLog.Print(string(line))
	return len(line), nil
}
