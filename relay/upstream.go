package relay

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
)

// upstreams choose where a connection goes.
type upstreams struct {
	list []address
	next atomic.Uint64
}

func newUpstreams(urls []string) (*upstreams, error) {
	u := new(upstreams)
	var errs []error
	for _, url := range urls {
		a, err := parseAddress(url, false)
		if err != nil {
			errs = append(errs, fmt.Errorf("upstream: %w", err))
			continue
		}
		u.list = append(u.list, a)
	}
	return u, errors.Join(errs...)
}

// dial connects an upstream: the next one in turn, or one behind it if that
// cannot be reached.
func (r *Relay) dial(ctx context.Context) (s side, release func(), err error) {
	u := r.upstreams
	first := u.next.Add(1) - 1
	var errs []error
	for i := range u.list {
		a := u.list[(first+uint64(i))%uint64(len(u.list))]
		attempt, cancel := context.WithTimeout(ctx, r.options.DialTimeout)
		c, err := new(net.Dialer).DialContext(attempt, a.network, a.dial)
		cancel()
		if err == nil {
			return newSide(c), func() {}, nil
		}
		r.counts.dialErrors.Add(1)
		errs = append(errs, err)
		if ctx.Err() != nil {
			break
		}
	}
	return side{}, nil, errors.Join(errs...)
}
