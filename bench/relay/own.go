package relay

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/rollway/rollway/relay"
)

func own() []contender {
	return []contender{{name: Ours, plain: true, job: job{Own: true}}}
}

// startOwn serves by our relay, in the background.
func startOwn(ln net.Listener, j job, config *tls.Config) error {
	if j.TLS {
		return errors.New("no TLS")
	}
	r, err := relay.New(relay.Options{To: []string{"tcp://" + j.To}})
	if err != nil {
		return err
	}
	go func() { fmt.Fprintln(os.Stderr, "relay:", r.Serve(context.Background(), ln)) }()
	return nil
}
