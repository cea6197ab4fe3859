package otlp

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/receiver/decodetest"
)

// What is stored, only not durably, is answered 500, at which clients give up;
// what is not is answered 503, to be sent again. A key that was given to another
// request is the client's mistake.
func TestAnswersToErrorsOfStore(t *testing.T) {
	broken, undurable, reused := errors.New("broken"), errors.New("not durable"), errors.New("reused")
	for _, c := range []struct {
		err    error
		code   int
		retry  string
		status string
		grpc   string
	}{
		{broken, http.StatusServiceUnavailable, "1", `{"code":14,`, "14"},
		{undurable, http.StatusInternalServerError, "", `{"code":13,`, "13"},
		{reused, http.StatusUnprocessableEntity, "", `{"code":3,`, "3"},
	} {
		s := decodetest.NewServer(t, func(o *receiver.Options) {
			store := o.Store
			o.IsStored = func(err error) bool { return err == undurable }
			o.IsReused = func(err error) bool { return err == reused }
			o.Store = func(ctx context.Context, b *normalize.Batch) error {
				if c.err == undurable {
					store(ctx, b)
				}
				return c.err
			}
		})
		rec := decodetest.Send(s.Handler(Protocol), "/v1/logs", oneRecord(`"body":{"stringValue":"x"}`), "Content-Type", "application/json")
		if rec.Code != c.code || rec.Header().Get("Retry-After") != c.retry || !strings.HasPrefix(rec.Body.String(), c.status) {
			t.Errorf("%v: %d %v %s", c.err, rec.Code, rec.Header(), rec.Body)
		}
		message := inRecord()
		rec = decodetest.Send(s.GRPC(GRPC), GRPCPath, "\x00\x00\x00\x00"+string([]byte{byte(len(message))})+message, "Content-Type", inGRPC)
		if got := rec.Header().Get(grpcStatus); got != c.grpc {
			t.Errorf("%v: %s over gRPC, %v", c.err, got, rec.Header())
		}
	}
}

// A body that came too slowly is to be sent again, too.
func TestSlowBody(t *testing.T) {
	decodetest.CheckSlowBody(t, Protocol, "application/json", `{"resourceLogs":[`, `{"code":14,"message":"the body did not arrive within`)
}
