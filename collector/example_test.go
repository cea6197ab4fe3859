package collector_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/rollway/rollway/collector"
	"github.com/rollway/rollway/collector/config"
)

// A collector inside another program, on a free port.
func Example() {
	dir, err := os.MkdirTemp("", "rollway-example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	cfg := config.Default()
	cfg.Listen, cfg.Data = "127.0.0.1:0", dir
	c, err := collector.New(cfg, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- c.Run(ctx) }()

	base := "http://" + c.Addr().String()
	show := func(resp *http.Response, err error) {
		if err != nil {
			fmt.Println(err)
			return
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		fmt.Print(string(body))
		if err != nil {
			fmt.Println(err)
		}
	}
	show(http.Post(base+"/api/logs", "", strings.NewReader(`{"ts":1779972000.5,"severity":"warning","message":"charged twice","app":"payment","customer":"cus_1"}`)))
	show(http.Get(base + "/api/query?q=level>=warn+service=payment"))
	stop()
	fmt.Println("stopped:", <-stopped)
	// Output:
	// {"accepted":1,"first_offset":0}
	// {"time":"2026-05-28T12:40:00.500000000Z","level":"WARN","msg":"charged twice","service":"payment","attrs":{"customer":"cus_1"}}
	// stopped: <nil>
}
