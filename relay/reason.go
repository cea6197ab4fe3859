package relay

import "strings"

// A Reason says why a connection ended. The first cause counts.
type Reason int

const (
	_                     Reason = iota
	ReasonDone                   // both sides ended their streams
	ReasonClientReset            // the client reset, or was gone
	ReasonUpstreamReset          // the upstream reset, or was gone
	ReasonClientError            // another error of the client's side
	ReasonUpstreamError          // another error of the upstream's side
	ReasonDial                   // no upstream could be reached
	ReasonHandshake              // the client's TLS handshake failed
	ReasonProxyHeader            // a proxy's header was missing or malformed
	ReasonLimit                  // refused by MaxConns
	ReasonSourceLimit            // refused by MaxConnsPerSource
	ReasonIdle                   // no byte moved for IdleTimeout
	ReasonClientStalled          // the client took nothing for StallTimeout
	ReasonUpstreamStalled        // the upstream did
	ReasonDrained                // ended in order, by draining
	ReasonDrainCut               // cut off, as draining took too long
	reasons
)

var reasonNames = strings.Fields(`unknown done client_reset upstream_reset client_error upstream_error dial handshake
	proxy_header limit source_limit idle client_stalled upstream_stalled drained drain_cut`)

// String is the reason as metrics and records name it.
func (r Reason) String() string {
	if r <= 0 || r >= reasons {
		r = 0
	}
	return reasonNames[r]
}

// Error makes a Reason what Join returns.
func (r Reason) Error() string { return "relayed connection ended: " + r.String() }
