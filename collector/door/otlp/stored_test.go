package otlp

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/rollway/rollway/collector/door/decodetest"
	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/receive"
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
	}{
		{broken, http.StatusServiceUnavailable, "1", `{"code":14,`},
		{undurable, http.StatusInternalServerError, "", `{"code":13,`},
		{reused, http.StatusUnprocessableEntity, "", `{"code":3,`},
	} {
		s := decodetest.NewServer(t, func(o *receive.Options) {
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
	}
}
