package receiver

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/internal/jsonline"
)

// shortAnswer bounds an answer to Fluent Bit, without its end. With the header it must
// be below 4 KiB.
const shortAnswer = 3 << 10

// AppendAnswer appends the JSON object that answers a request at /api/logs.
func AppendAnswer(dst []byte, a *Answer) []byte {
	b, stored, fault := a.Batch, a.Stored, a.Text
	dst = append(dst, '{')
	if fault != "" {
		dst = append(dst, `"error":`...)
		dst = jsonline.AppendString(dst, fault)
		dst = append(dst, ',')
	}
	dropped := 0
	if fault == "" {
		dropped = a.Dropped
	}
	dst = append(dst, `"accepted":`...)
	dst = strconv.AppendInt(dst, int64(stored+dropped), 10)
	if stored > 0 {
		dst = append(dst, `,"first_offset":`...)
		dst = strconv.AppendUint(dst, a.First, 10)
	}
	if dropped > 0 {
		dst = append(dst, `,"dropped":`...)
		dst = strconv.AppendInt(dst, int64(dropped), 10)
	}
	if b.RejectedTotal > 0 {
		dst = append(dst, `,"rejected":[`...)
		short := a.ToFluentBit()
		for i := range b.Rejected {
			before := len(dst)
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendRejection(dst, &b.Rejected[i])
			if short && len(dst) > shortAnswer {
				dst = dst[:before]
				break
			}
		}
		dst = append(dst, `],"rejected_total":`...)
		dst = strconv.AppendInt(dst, int64(b.RejectedTotal), 10)
	}
	return append(dst, "}\n"...)
}

func appendRejection(dst []byte, r *normalize.Rejection) []byte {
	dst = fmt.Appendf(dst, `{"index":%d`, r.Index)
	if r.Line > 0 {
		dst = fmt.Appendf(dst, `,"line":%d`, r.Line)
	}
	dst = fmt.Appendf(dst, `,"offset":%d,"reason":"%s","detail":`, r.Offset, r.Reason)
	return append(jsonline.AppendString(dst, r.Detail), '}')
}

func appendError(dst []byte, text string) []byte {
	dst = append(dst, `{"error":`...)
	dst = jsonline.AppendString(dst, text)
	return append(dst, ",\"accepted\":0}\n"...)
}

// nothingAccepted sums up a batch whose events were all rejected.
func nothingAccepted(b *normalize.Batch) string {
	first := b.Rejected[0].Detail
	if b.RejectedTotal == 1 {
		return "nothing was stored: " + first
	}
	return fmt.Sprintf("nothing was stored, all %d events were rejected; the first: %s", b.RejectedTotal, first)
}

// logSome logs at most one line a second.
func (r *Receiver) logSome(level slog.Level, msg string, args ...any) {
	now, last := time.Now(), r.logged.Load() // by a clock that nobody sets
	if (last == nil || now.Sub(*last) >= time.Second) && r.logged.CompareAndSwap(last, &now) {
		r.opts.Log.Log(context.Background(), level, msg, args...)
	}
}
