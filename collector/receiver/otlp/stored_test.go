package otlp

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/receiver/decodetest"
)

// What is stored, only not durably, is answered 500, at which clients give up;
// what is not is answered 503, to be sent again. A key that was given to another
// request is the client's mistake.
func TestAnswersToErrorsOfStore(t *testing.T) {
	for _, c := range []struct {
		err    error
		code   int
		retry  string
		status string
		grpc   string
	}{
		{errors.New("broken"), http.StatusServiceUnavailable, "1", `{"code":14,`, "14"},
		{receiver.ErrNotSynced, http.StatusInternalServerError, "", `{"code":13,`, "13"},
		{receiver.ErrKeyReused, http.StatusUnprocessableEntity, "", `{"code":3,`, "3"},
	} {
		s := decodetest.NewServer(t, nil)
		s.Fail = c.err
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
