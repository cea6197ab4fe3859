package remote

import (
	"time"

	"golang.org/x/sys/unix"
)

// silenceOption is the socket option that limitSilence sets, in silenceUnits. It
// counts only what was sent and not acknowledged.
const silenceOption, silenceUnit = unix.TCP_RXT_CONNDROPTIME, time.Second
