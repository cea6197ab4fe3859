package relay

import (
	"context"
	"crypto/tls"
	"fmt"
	"os"

	"github.com/rollway/rollway/relay"
)

// startOwn serves by our relay, in the background, and returns its address.
func startOwn(j job, config *tls.Config) (addr string, err error) {
	o := relay.Options{To: []string{"tcp://" + j.To}}
	url := "tcp://127.0.0.1:0"
	if j.TLS {
		url, o.ServerTLS = "tls://127.0.0.1:0", config
	}
	r, err := relay.New(o)
	if err != nil {
		return "", err
	}
	ctx := context.Background()
	ln, err := relay.Listen(ctx, url)
	if err != nil {
		return "", err
	}
	go func() { fmt.Fprintln(os.Stderr, "relay:", r.Serve(ctx, ln)) }()
	return ln.Addr().String(), nil
}
