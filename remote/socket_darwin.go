package remote

import (
	"time"

	"golang.org/x/sys/unix"
)

// ackTimeoutOption is the socket option that setAckTimeout sets, in ackTimeoutUnits. It
// counts only what was sent and not acknowledged.
const ackTimeoutOption, ackTimeoutUnit = unix.TCP_RXT_CONNDROPTIME, time.Second
