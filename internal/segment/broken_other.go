//go:build !unix

package segment

import (
	"errors"
	"os"
)

// broken are the errors after which a file is left for a new one. Systems
// without errno do not tell: a file is left when it can be used no more.
var broken = []error{os.ErrClosed}

var errQuota = errors.New("quota exceeded")
