package receiver_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/receiver"
)

func Example() {
	write := func(_ context.Context, b *normalize.Batch, _ receiver.StoreOptions) (s receiver.Stored, err error) {
		_, err = os.Stdout.Write(b.Lines)
		return s, err
	}
	r := receiver.New(receiver.StoreFunc(write), receiver.Options{})
	server := httptest.NewServer(r)
	defer server.Close()

	events := `[{"ts":1779972000,"msg":"charged","retry":2}, "no event"]`
	res, err := http.Post(server.URL, "application/json", strings.NewReader(events))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer res.Body.Close()
	fmt.Println(res.Status)
	io.Copy(os.Stdout, res.Body)
	// Output:
	// {"time":"2026-05-28T12:40:00.000000000Z","level":"INFO","msg":"charged","attrs":{"retry":2}}
	// 200 OK
	// {"accepted":1,"first_offset":0,"rejected":[{"index":1,"line":1,"offset":46,"reason":"not_object","detail":"event 1 is a string, expected an object"}],"rejected_total":1}
}
