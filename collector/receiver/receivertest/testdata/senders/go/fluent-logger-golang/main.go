// client: fluent-logger-golang 1.10.2
// sends: Fluent forward, with acknowledgements
// to: forward

package main

import (
	"net"
	"strconv"

	"github.com/fluent/fluent-logger-golang/fluent"

	"senders/events"
)

func main() {
	host, port, _ := net.SplitHostPort(events.Addr())
	n, _ := strconv.Atoi(port)
	log, err := fluent.New(fluent.Config{FluentHost: host, FluentPort: n, RequestAck: true, SubSecondPrecision: true})
	events.Check(err)
	for _, e := range events.All() {
		record := e.Extra()
		record["level"], record["message"], record["logger"] = e.Level, e.Msg, "shop.cart"
		if e.Error != nil {
			record["error"] = e.Error.Error()
		}
		events.Check(log.Post("shop.cart", record))
	}
	events.Check(log.Close())
}
