//go:build !unix

package relay

import "errors"

// canWait says whether a socket can be waited on without a buffer to read into.
const canWait = false

var errNoWait = errors.New("sockets cannot be waited on here")

func readSocket(uintptr, []byte) (int, error) { return 0, errNoWait }

func (p *pump) readSocket() (int, error) { return 0, errNoWait }
